// Fuzz targets of bulk connections as state machines, at both ends: the input is a program of what the other end says
// and of what happens meanwhile.

package transport

import (
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kith-io/kith/internal/base/spent"
	"github.com/kith-io/kith/internal/core/flow"
	"github.com/kith-io/kith/internal/core/hello"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

// Bounds of the worlds with large messages.
const (
	worldBulk     = 64 << 10  // largest message
	worldBulkRoom = 128 << 10 // of all of them
)

// The operations of a program on a bulk connection.
const (
	bulkOpRaw    = iota // length, bytes
	bulkOpFrame         // kind, length, up to 16 bytes that the body begins with
	bulkOpBegin         // 0: the number that is next, else that number; size in units of 300; odd: a reply
	bulkOpChunk         // number, length in units of 100
	bulkOpAbort         // number
	bulkOpGrant         // number, bytes in units of 300
	bulkOpWhole         // number
	bulkOpOver          // number, status
	bulkOpReplay        // what was said last
	bulkOpPiece         // size of reads
	bulkOpTime          // seconds
	bulkOpRider         // what the rider does: number, what
	bulkOpStuck         // answers are not taken any more
	bulkOps
)

// stream is a bulk connection in memory: reading it runs the program.
type stream struct {
	w     *bulkWorld
	input []byte
	piece int
	// wrote is closed when something was written, and read from before anything is: answers follow questions.
	wrote     chan struct{}
	wroteOnce sync.Once
	stuck     atomic.Bool
	closed    atomic.Bool
	ended     bool // the program is over
}

// bulkWorld is a world with a program for one bulk connection.
type bulkWorld struct {
	*world
	program
	s       *stream
	next    uint32 // number of the next begin
	last    []byte
	ops     int
	began   int
	own     int   // bytes that the node itself wants to send
	dial    *Bulk // the dialling end; nil: the accepting one
	sent    []*flow.BulkTransfer
	mu      sync.Mutex
	overs   map[*flow.BulkTransfer]int
	replies int
}

func newBulkWorld(t *testing.T, b []byte) *bulkWorld {
	w := &bulkWorld{program: program{b}, next: 1, overs: map[*flow.BulkTransfer]int{}}
	w.world = newWorld(t, func(c *Config) {
		c.Bulk, c.MaxBulk, c.BulkRoom, c.BulkWindow, c.BulkChunk = w, worldBulk, worldBulkRoom, 4096, 1024
	})
	w.tr.life.ended = false
	w.s = &stream{w: w, piece: memRead, wrote: make(chan struct{})}
	return w
}

func (s *stream) Read(p []byte) (int, error) {
	<-s.wrote
	for len(s.input) == 0 && !s.ended && !s.closed.Load() {
		if s.w.ops++; len(s.w.b) == 0 || s.w.ops > maxOps {
			s.ended = true
			break
		}
		s.input = append(s.input, s.w.step(s.w.u8()%bulkOps)...)
		s.w.check()
	}
	switch {
	case s.closed.Load():
		return 0, net.ErrClosed
	case len(s.input) == 0:
		return 0, io.EOF
	}
	n := copy(p[:min(len(p), s.piece)], s.input)
	s.input = s.input[n:]
	return n, nil
}

func (s *stream) Write(p []byte) (int, error) {
	s.wroteOnce.Do(func() { close(s.wrote) })
	switch {
	case s.closed.Load():
		return 0, net.ErrClosed
	case s.stuck.Load():
		return 0, os.ErrDeadlineExceeded
	}
	return len(p), nil
}

func (s *stream) Close() error {
	s.closed.Store(true)
	s.wroteOnce.Do(func() { close(s.wrote) })
	return nil
}

func (s *stream) SetDeadline(time.Time) error      { return nil }
func (s *stream) SetReadDeadline(time.Time) error  { return nil }
func (s *stream) SetWriteDeadline(time.Time) error { return nil }
func (s *stream) LocalAddr() net.Addr              { return nil }
func (s *stream) RemoteAddr() net.Addr             { return nil }

// step does one operation and returns what the other end says.
func (w *bulkWorld) step(op int) (b []byte) {
	frame := func(k wire.Kind, body []byte) []byte { return wire.AppendFrame(nil, k, 0, 0, body) }
	switch op {
	case bulkOpRaw:
		b = w.take(w.u8())
	case bulkOpFrame:
		kind := w.u8()
		body := make([]byte, w.u8())
		copy(body, w.take(min(16, len(body))))
		b = frame(wire.Kind(kind), body)
	case bulkOpBegin:
		number, size := uint32(w.u8()), w.u8()
		if number == 0 {
			number = w.next
			w.next++
		}
		b = frame(wire.KindBulkBegin, wire.AppendBulkBegin(nil,
			&wire.BulkBegin{Number: number, Size: uint32(size) * 300, Shard: uint32(size), Reply: size%2 == 1}))
		w.began++
	case bulkOpChunk:
		number := uint32(w.u8())
		b = wire.AppendBulkChunk(nil, number, make([]byte, w.u8()*100))
	case bulkOpAbort:
		b = frame(wire.KindBulkAbort, wire.AppendBulkNumber(nil, uint32(w.u8())))
	case bulkOpGrant:
		g := wire.BulkGrant{Number: uint32(w.u8())}
		g.Allowed = uint32(w.u8()) * 300
		b = frame(wire.KindBulkGrant, wire.AppendBulkGrant(nil, g))
	case bulkOpWhole:
		b = frame(wire.KindBulkWhole, wire.AppendBulkNumber(nil, uint32(w.u8())))
	case bulkOpOver:
		number := uint32(w.u8())
		status := w.u8()
		b = frame(wire.KindBulkOver, wire.AppendBulkOver(nil, wire.BulkOver{Number: number, Status: uint16(status),
			Limit: uint64(status) << 58}))
	case bulkOpReplay:
		b = w.last
	default:
		w.happens(op)
		return nil
	}
	w.last = b
	w.fed += len(b)
	return b
}

// happens does what is nothing that the other end says.
func (w *bulkWorld) happens(op int) {
	switch op {
	case bulkOpPiece:
		w.s.piece = []int{1, 2, 7, 8, 9, 64, 1000, memRead}[w.u8()%8]
	case bulkOpTime:
		w.now.Add(int64(w.u8()) * int64(time.Second))
		w.tr.sweep(&w.found, false)
		if w.dial != nil {
			w.dial.tick()
		}
	case bulkOpStuck:
		w.s.stuck.Store(true)
	case bulkOpRider:
		number, what := uint32(w.u8()), w.u8()
		ref := wire.BulkRef{Generation: 1, Number: number}
		switch {
		case w.dial != nil && len(w.sent) > 0 && what%2 == 0:
			if x := w.sent[int(number)%len(w.sent)]; w.dial.Cancel(x) {
				w.BulkOver(x, flow.BulkEnd{}, nil)
			}
		case w.dial != nil:
			w.send(what)
		case what%4 == 0:
			w.tr.BulkEnd(memPeer(0), ref, flow.BulkEnd{Reason: route.NotOwner})
		default:
			if _, free, ok := w.tr.BulkTake(memPeer(0), ref); ok {
				w.tr.BulkEnd(memPeer(0), ref, flow.BulkEnd{})
				free()
			}
		}
	}
}

func (w *bulkWorld) send(size int) {
	x := &flow.BulkTransfer{Payload: make([]byte, 200*size+1)}
	if err := w.dial.Send(x); err != nil {
		w.t.Error(err)
	}
	w.sent = append(w.sent, x)
	w.own += len(x.Payload)
}

// check holds the bounds of what is held for others.
func (w *bulkWorld) check() {
	w.tr.bulk.mu.Lock()
	used, waiting := w.tr.bulk.room.Used(), w.tr.bulk.room.Waiting()
	w.tr.bulk.mu.Unlock()
	if used < 0 || used > worldBulkRoom || waiting > flow.MaxBulkActive {
		w.t.Errorf("%d bytes are held, %d messages wait", used, waiting)
	}
}

// ends holds that nothing is left, and that a connection that was closed for what it said was counted.
func (w *bulkWorld) ends(before uint64) {
	w.check()
	if n := w.tr.bulk.room.Used() + w.tr.bulk.room.Waiting() + len(w.tr.bulk.conns); n != 0 {
		w.t.Errorf("%d bytes, messages and connections are held of a connection that is gone", n)
	}
	faults := w.tr.count.faultsProtocol.Load()
	early := !w.s.ended // one with answers that are not taken is closed for that, or for what it says, whichever is first
	if faults > 1 || !w.s.stuck.Load() && early != (faults == 1) {
		w.t.Errorf("closed early: %v, faults counted: %d", early, faults)
	}
	spent.Within(w.t, before, 64*w.fed+16<<10*w.ops+w.began*worldBulk+2*w.own)
	w.end()
}

func (w *bulkWorld) BulkBegin(_ peer.ID, b *wire.BulkBegin) flow.BulkEnd {
	if b.Shard%5 == 4 {
		return flow.BulkEnd{Reason: route.NotOwner}
	}
	return flow.BulkEnd{}
}

func (w *bulkWorld) BulkReply(peer.ID, uint64, []byte)                { w.replies++ }
func (w *bulkWorld) BulkMoved(*flow.BulkTransfer, int)                {}
func (w *bulkWorld) BulkWhole(x *flow.BulkTransfer, ref wire.BulkRef) {}
func (w *bulkWorld) BulkOver(x *flow.BulkTransfer, _ flow.BulkEnd, _ error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.overs[x]++; w.overs[x] > 1 {
		w.t.Error("a transfer is over twice")
	}
}

// FuzzBulkConnection: whatever comes on an accepted bulk connection, a violation is counted and closes it, what is held
// stays within the room, and nothing is left.
func FuzzBulkConnection(f *testing.F) {
	f.Add([]byte{bulkOpBegin, 0, 4, bulkOpChunk, 1, 12, bulkOpRider, 1, 1})
	f.Add([]byte{bulkOpBegin, 0, 3, bulkOpChunk, 1, 9, bulkOpBegin, 0, 40, bulkOpChunk, 2, 30,
		bulkOpTime, 40, bulkOpChunk, 2, 30})
	f.Add([]byte{bulkOpBegin, 0, 200, bulkOpBegin, 0, 200, bulkOpBegin, 0, 200, bulkOpAbort, 1,
		bulkOpChunk, 3, 2, bulkOpRider, 3, 0})
	f.Add([]byte{bulkOpBegin, 0, 2, bulkOpReplay, bulkOpReplay})
	f.Add([]byte{bulkOpChunk, 1, 1})
	f.Add([]byte{bulkOpBegin, 3, 2})
	f.Add([]byte{bulkOpBegin, 0, 100, bulkOpChunk, 1, 255})
	f.Add([]byte{bulkOpPiece, 0, bulkOpBegin, 0, 4, bulkOpAbort, 1, bulkOpAbort, 1, bulkOpAbort, 9})
	f.Add([]byte{bulkOpGrant, 1, 1, bulkOpWhole, 1, bulkOpOver, 1, 0})
	f.Add([]byte{bulkOpStuck, bulkOpBegin, 0, 9, bulkOpBegin, 0, 9, bulkOpTime, 99})
	f.Add([]byte{bulkOpRaw, 8, 255, 255, 255, 15, 20, 0, 0, 0})
	f.Add([]byte{bulkOpFrame, 20, 3, 1, 2, 3, bulkOpFrame, 19, 33})
	f.Fuzz(func(t *testing.T, b []byte) {
		w := newBulkWorld(t, b)
		h := hello.Hello{Versions: wire.Spoken(), Lane: wire.LaneBulk, Generation: 1, Name: "test", From: memPeer(0),
			To: worldSelf.Addr, ClusterID: 5, Birth: 6}
		w.s.input = wire.AppendFrame(nil, wire.KindHello, 0, 0, hello.Append(nil, &h))
		close(w.s.wrote)
		w.s.wroteOnce.Do(func() {})
		before := spent.Bytes()
		g := w.tr.admit(w.s)
		if g == nil {
			t.Fatal("no room for a hello")
		}
		w.tr.handshake(g)
		w.tr.tasks.Wait()
		w.ends(before)
	})
}

// FuzzBulkDialled: whatever comes back on a dialled bulk connection, a violation is counted and closes it, and each
// transfer is over exactly once.
func FuzzBulkDialled(f *testing.F) {
	f.Add([]byte{2, 10, 50, bulkOpGrant, 1, 10, bulkOpWhole, 1, bulkOpOver, 1, 0, bulkOpGrant, 2, 200, bulkOpOver, 2, 3})
	f.Add([]byte{1, 10, bulkOpOver, 1, 0, bulkOpReplay})
	f.Add([]byte{1, 10, bulkOpOver, 1, 3, bulkOpReplay})
	f.Add([]byte{1, 10, bulkOpWhole, 1})
	f.Add([]byte{1, 255, bulkOpGrant, 1, 10, bulkOpGrant, 1, 5, bulkOpRider, 0, 0, bulkOpGrant, 1, 200, bulkOpWhole, 1})
	f.Add([]byte{1, 255, bulkOpGrant, 1, 10, bulkOpTime, 99, bulkOpRider, 0, 3, bulkOpGrant, 2, 9})
	f.Add([]byte{3, 1, 1, 1, bulkOpBegin, 0, 1, bulkOpChunk, 1, 1})
	f.Add([]byte{1, 1, bulkOpRaw, 8, 255, 255, 255, 15, 22, 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		w := newBulkWorld(t, b)
		w.dial = newBulk(w.tr, memPeer(0))
		w.dial.running = true // this is its goroutine
		for range max(w.u8()%12, 1) {
			w.send(w.u8())
		}
		before := spent.Bytes()
		_, _ = w.dial.carry(w.s, 1)
		w.dial.kill(ErrClosed)
		w.tr.tasks.Wait()
		w.ends(before)
		for _, x := range w.sent {
			if w.overs[x] != 1 {
				t.Errorf("a transfer is over %d times", w.overs[x])
			}
		}
	})
}
