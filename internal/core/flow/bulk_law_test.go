// Laws of large messages: two connections to one node against a model, under every fault; and what a chunk costs.

package flow

import (
	"bytes"
	"encoding/binary"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

// bulkModel is two connections to one receiving node, with frames and envelopes under way, against what must hold.
type bulkModel struct {
	ends [2]*bulkEnd
	room *BulkRoom
	now  time.Duration
	sent []*bulkSent
	held []bulkHeld // what takers have not given back
}

type bulkHeld struct {
	from peer.ID
	n    int
}

type bulkEnd struct {
	bulkPair
	generation uint32
	fore, back [][]byte // frames under way
	refs       []wire.BulkRef
	byRef      map[wire.BulkRef]*bulkSent
}

type bulkSent struct {
	x     *BulkTransfer
	fill  byte
	taken int          // by the receiving runtime
	told  int          // times that the end was reported to the sending runtime
	why   route.Reason // with this reason
}

func (m *bulkModel) find(x *BulkTransfer) *bulkSent {
	for _, s := range m.sent {
		if s.x == x {
			return s
		}
	}
	return nil
}

func (m *bulkModel) end(t *rapid.T, x *BulkTransfer, why route.Reason) {
	s := m.find(x)
	s.told++
	s.why = why
	require.Equal(t, 1, s.told, "the end is told once")
	if why == route.OK {
		require.Equal(t, 1, s.taken, "told as taken and was not")
	}
	if why == route.NotOwner || why == route.TooLarge {
		require.Zero(t, s.taken, "told as refused and was taken")
	}
	x.Payload = nil // nobody reads it any more
}

func (m *bulkModel) give() {
	for _, k, n, ok := m.room.Turn(); ok; _, k, n, ok = m.room.Turn() {
		m.ends[k.Conn>>32].admitted(m.now, k, n)
	}
}

func (e *bulkEnd) admitted(now time.Duration, k BulkKey, n int) {
	if uint32(k.Conn) != e.generation {
		e.room.Give(e.r.from, n)
		return
	}
	e.r.Admitted(now, k.Number, n)
}

func (m *bulkModel) write(t *rapid.T, e *bulkEnd) {
	e.fore = append(e.fore, bulkFrames(t, e.s.Append(m.now, nil))...)
	e.back = append(e.back, bulkFrames(t, e.r.AppendAnswers(nil))...)
}

// deliver carries one frame each way.
func (m *bulkModel) deliver(t *rapid.T, e *bulkEnd) {
	e.now = m.now
	if len(e.fore) > 0 {
		f := e.fore[0]
		e.fore = e.fore[1:]
		if wire.ParseHeader(f).Kind == wire.KindBulkBegin && binary.LittleEndian.Uint32(wire.Body(f))%5 == 0 {
			e.why = BulkEnd{Reason: route.NotOwner}
		}
		e.read(f)
		e.why = BulkEnd{}
	}
	if len(e.back) > 0 {
		f := e.back[0]
		e.back = e.back[1:]
		x, event, end, err := e.s.Handle(m.now, wire.ParseHeader(f).Kind, wire.Body(f))
		require.NoError(t, err)
		switch event {
		case BulkIsWhole:
			e.refs = append(e.refs, x.Ref())
			e.byRef[x.Ref()] = m.find(x)
		case BulkHasEnded:
			m.end(t, x, end.Reason)
		}
	}
	m.give()
}

// envelope brings the oldest envelope that stands for a large message to its entity, which takes or refuses it.
func (m *bulkModel) envelope(t *rapid.T, e *bulkEnd, refuse bool) {
	if len(e.refs) == 0 {
		return
	}
	ref := e.refs[0]
	e.refs = e.refs[1:]
	if ref.Generation != e.generation {
		return
	}
	if refuse {
		e.r.End(ref.Number, BulkEnd{Reason: route.MailboxFull})
		m.give()
		return
	}
	if _, payload, ok := e.r.Take(ref.Number); ok {
		s := e.byRef[ref]
		s.taken++
		require.Equal(t, 1, s.taken, "taken twice")
		require.Equal(t, bytes.Repeat([]byte{s.fill}, len(payload)), payload)
		m.held = append(m.held, bulkHeld{e.r.from, len(payload)})
		e.r.End(ref.Number, BulkEnd{})
	}
}

func (m *bulkModel) reconnect(t *rapid.T, e *bulkEnd) {
	for _, x := range e.s.Broken(nil) {
		m.end(t, x, route.PeerLost)
	}
	e.r.Broken()
	e.fore, e.back = nil, nil
	m.give()
	e.connect(m.now)
}

func (e *bulkEnd) connect(now time.Duration) {
	e.generation++
	e.s.Connected(now, e.generation)
	window := e.r.window
	e.r = NewBulkReceiver(e.r.from, e.r.conn&^(1<<32-1)|uint64(e.generation), window, 0, time.Second, e.room)
}

func (m *bulkModel) check(t *rapid.T) {
	require.LessOrEqual(t, m.room.Used(), m.room.Limit, "room")
	used := 0
	for _, e := range m.ends {
		require.LessOrEqual(t, len(e.r.live), MaxBulkActive)
		for _, in := range e.r.live {
			require.LessOrEqual(t, len(in.buf), in.size())
			if in.state == LargeMoving || in.state == LargeWhole {
				used += in.size()
			}
			require.LessOrEqual(t, in.allowed-in.got, max(e.r.window, 1))
		}
	}
	for _, h := range m.held {
		used += h.n
	}
	require.Equal(t, used, m.room.Used(), "every byte of room has an owner")
}

// settle lets everything that can still happen happen, without a fault.
func (m *bulkModel) settle(t *rapid.T) {
	for range 100_000 {
		idle := true
		for _, h := range m.held {
			m.room.Give(h.from, h.n)
		}
		m.held = nil
		m.give()
		for _, e := range m.ends {
			m.write(t, e)
			idle = idle && len(e.fore)+len(e.back)+len(e.refs) == 0
			m.deliver(t, e)
			m.envelope(t, e, false)
		}
		if idle && m.ends[0].s.Idle() && m.ends[1].s.Idle() {
			return
		}
	}
	require.Fail(t, "transfers do not come to their end")
}

// TestBulkLaws: whatever breaks, is cancelled, refused or slow: a message is taken at most once and unharmed, its
// sender gets one end, the true one, room is never exceeded nor lost, and without further faults everything ends.
func TestBulkLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &bulkModel{room: &BulkRoom{Limit: rapid.IntRange(1000, 5000).Draw(t, "room")}}
		window, peers := rapid.IntRange(1, 600).Draw(t, "window"), rapid.IntRange(1, 2).Draw(t, "peers")
		for i := range m.ends {
			m.ends[i] = &bulkEnd{byRef: map[wire.BulkRef]*bulkSent{}}
			e := m.ends[i]
			e.t, e.room, e.s = t, m.room, NewBulkSender(bulkPeer, rapid.IntRange(1, 300).Draw(t, "chunk"), time.Second)
			from := peer.ID{Addr: bulkPeer.Addr, Inc: uint64(1 + i%peers)}
			e.r = NewBulkReceiver(from, uint64(i)<<32, window, 0, time.Second, m.room)
			e.connect(0)
		}
		pick := func() *bulkEnd { return m.ends[rapid.IntRange(0, 1).Draw(t, "end")] }
		t.Repeat(map[string]func(*rapid.T){
			"": m.check,
			"send": func(t *rapid.T) {
				s := &bulkSent{fill: byte(len(m.sent))}
				s.x = pick().send(rapid.IntRange(1, 1000).Draw(t, "size"), s.fill)
				m.sent = append(m.sent, s)
			},
			"write":    func(t *rapid.T) { m.write(t, pick()) },
			"deliver":  func(t *rapid.T) { m.deliver(t, pick()) },
			"envelope": func(t *rapid.T) { m.envelope(t, pick(), rapid.IntRange(0, 5).Draw(t, "refuse") == 0) },
			"handled": func(t *rapid.T) {
				if len(m.held) > 0 {
					m.room.Give(m.held[0].from, m.held[0].n)
					m.held = m.held[1:]
					m.give()
				}
			},
			"cancel": func(t *rapid.T) {
				if len(m.sent) == 0 {
					t.Skip("nothing was sent")
				}
				s := m.sent[rapid.IntRange(0, len(m.sent)-1).Draw(t, "which")]
				for _, e := range m.ends {
					if e.s.contains(s.x) && e.s.Cancel(s.x) {
						m.end(t, s.x, route.TimedOut)
					}
				}
			},
			"break": func(t *rapid.T) { m.reconnect(t, pick()) },
			"time": func(t *rapid.T) {
				m.now += time.Duration(rapid.IntRange(1, 700).Draw(t, "ms")) * time.Millisecond
				for _, e := range m.ends {
					for _, x := range e.s.Tick(m.now, nil) {
						m.end(t, x, route.TimedOut)
					}
					e.r.Tick(m.now)
				}
				m.give()
			},
		})
		m.settle(t)
		require.Zero(t, m.room.Used(), "room was lost")
		for _, s := range m.sent {
			require.Equal(t, 1, s.told, "every message has an end")
		}
	})
}

func (s *BulkSender) contains(x *BulkTransfer) bool {
	for _, list := range [][]*BulkTransfer{s.queue, s.live} {
		for _, o := range list {
			if o == x {
				return true
			}
		}
	}
	return false
}

func TestBulkChunksDoNotAllocate(t *testing.T) {
	s := NewBulkSender(bulkPeer, 0, 0)
	s.Connected(0, 1)
	x := &BulkTransfer{Payload: make([]byte, 64<<20)}
	require.NoError(t, s.Add(0, x))
	out := s.Append(0, make([]byte, 0, 128<<10))
	room := &BulkRoom{Limit: 64 << 20}
	r := NewBulkReceiver(bulkPeer, 1, 0, 0, 0, room)
	require.NoError(t, r.Begin(0, x.Begin, BulkEnd{}))
	var back []byte
	step := func() {
		back = r.AppendAnswers(back[:0])
		for rest := back; len(rest) > 0; {
			f, n, _ := wire.Split(rest, wire.LaneBulk, wire.MaxBulkFrame)
			_, _, _, _ = s.Handle(0, wire.ParseHeader(f).Kind, wire.Body(f))
			rest = rest[n:]
		}
		if out = s.Append(0, out[:0]); len(out) > 0 {
			number, n, _ := wire.ParseBulkChunk(out)
			dst, _ := r.Chunk(number, n)
			copy(dst, out[wire.BulkChunkHead:])
			r.Filled(0, number, n)
		}
	}
	step()
	require.Zero(t, testing.AllocsPerRun(500, step))
}

func BenchmarkBulkChunk(b *testing.B) {
	s := NewBulkSender(bulkPeer, 0, 0)
	s.Connected(0, 1)
	out := make([]byte, 0, 128<<10)
	x := &BulkTransfer{Payload: make([]byte, 64<<20)}
	b.SetBytes(DefaultBulkChunk)
	for b.Loop() {
		if x.state == bulkIdle {
			_ = s.Add(0, x)
			s.Append(0, out[:0])
			x.allowed = len(x.Payload)
		}
		if out = s.Append(0, out[:0]); len(out) == 0 {
			s.remove(x)
		}
	}
}
