// Fuzz targets of connections as state machines: the input is a program that opens connections to a node, and from it,
// says anything on them in pieces of any size, lets time pass, stops reading, and closes.

package transport

import (
	"bytes"
	"encoding/binary"
	"testing"
	"time"

	"github.com/kith-io/kith/internal/base/spent"
	"github.com/kith-io/kith/internal/core/hello"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// The operations of a program; each is followed by its operands.
const (
	opRaw     = iota // length, bytes
	opFrame          // kind, length in units of 13 bytes, up to 16 bytes that the body begins with
	opGood           // which of the well-formed frames
	opLie            // kind, claimed size (4 bytes)
	opReplay         // how often what was said last is said again, which is then what was said last
	opPiece          // which size of reads
	opSelect         // connection
	opClose          //
	opStuck          // the other end reads no answers; said again, it has reset the connection, unnoticed
	opTime           // how long
	opConsume        // how many deliveries
	opAccept         // peer, lane, number, generation, what the hello differs in
	opHello          // late or not, length, bytes: a connection that begins with these
	opDial           // peer, lane, which answer, length, bytes of an answer
	opSend           // peer, what
	opCredit         // generation, bytes consumed, in units of 256
	opKinds          // number of operations
)

const (
	maxOps   = 200
	maxConns = 6
)

// program is what a fuzzer mutates; at its end it reads as zeros.
type program struct{ b []byte }

func (p *program) u8() int {
	if len(p.b) == 0 {
		return 0
	}
	v := p.b[0]
	p.b = p.b[1:]
	return int(v)
}

func (p *program) take(n int) []byte {
	n = min(n, len(p.b))
	v := p.b[:n]
	p.b = p.b[n:]
	return v
}

// player runs a program.
type player struct {
	*world
	program
	current *memConn
	last    []byte // what was said last
}

func memPeer(n int) peer.ID {
	n = n%3 + 1
	return peer.ID{Addr: peer.MustAddr([]string{"10.0.0.1:1", "10.0.0.2:1", "10.0.0.3:1"}[n-1]), Inc: uint64(n)}
}

// goodFrames are well-formed, one of each kind and some more, of all lanes.
var goodFrames = func() (frames [][]byte) {
	for n := range 256 {
		k := wire.Kind(n)
		if !k.Known() {
			continue
		}
		body := make([]byte, min(k.MaxBody(), 40))
		switch k {
		case wire.KindHello:
			h := exampleHello()
			body = hello.Append(nil, &h)
		case wire.KindHelloAck:
			body = hello.AppendAck(nil, &hello.Ack{Version: 2, From: memPeer(0), ClusterID: 5, Birth: 6}, wire.Spoken())
		case wire.KindHelloRefuse:
			body = hello.AppendRefusal(nil, &hello.RefusedError{Reason: hello.RefusedStale})
		case wire.KindEnvelope:
			frames = append(frames, wire.AppendEnvelope(nil, &wire.Envelope{ID: []byte("a"), Payload: make([]byte, 900)}))
			continue
		case wire.KindFull:
			body = wire.AppendFull(nil, wire.Full{Reason: 19}, 1)
		case wire.KindRoom:
			body = wire.AppendRoom(nil, wire.Full{Reason: 19})
		case wire.KindCredit:
			body = wire.AppendCredit(nil, wire.Credit{Generation: 1, Consumed: 1})
		}
		frames = append(frames, wire.AppendFrame(nil, k, 0, 0, body))
	}
	return frames
}()

// run runs the whole program and holds that what it made the node allocate is in proportion to what it said.
func (p *player) run() {
	before, ops := spent.Bytes(), 0
	for ; len(p.b) > 0 && ops < maxOps; ops++ {
		p.step(p.u8() % opKinds)
		p.settle()
	}
	spent.Within(p.t, before, 64*p.fed+16<<10*ops)
	p.end()
}

func (p *player) step(op int) {
	switch op {
	case opAccept:
		h := p.composed()
		p.accept(h, p.u8()%4 == 3)
	case opHello:
		late := p.u8()%2 == 1
		if len(p.conns) == 0 { // later ones might replace one that stands, for which a node waits
			p.accept(append([]byte(nil), p.take(p.u8())...), late)
		}
	case opDial:
		p.dial()
	case opSend:
		p.send()
	case opTime:
		n := p.u8()
		p.now.Add(int64(n) * int64(100*time.Millisecond))
		p.tr.sweep(&p.found, n%2 == 1)
	case opConsume:
		p.consume(p.u8())
	case opSelect:
		if n := p.u8(); len(p.conns) > 0 {
			p.current = p.conns[n%len(p.conns)]
		}
	default:
		if p.current != nil {
			p.say(op)
		}
	}
}

// say does something on the connection at hand.
func (p *player) say(op int) {
	c := p.current
	b := p.last
	switch op {
	case opRaw:
		b = p.take(p.u8())
	case opFrame:
		kind, n := p.u8(), p.u8()
		body := make([]byte, 13*n)
		copy(body, p.take(min(16, len(body))))
		b = wire.AppendFrame(nil, wire.Kind(kind), 0, 0, body)
	case opGood:
		b = goodFrames[p.u8()%len(goodFrames)]
	case opLie:
		b = []byte{0, 0, 0, 0, byte(p.u8()), 0, 0, 0}
		copy(b, p.take(4))
	case opCredit:
		g, n := p.u8(), p.u8()
		b = wire.AppendFrame(nil, wire.KindCredit, 0, 0,
			wire.AppendCredit(nil, wire.Credit{Generation: uint32(g), Consumed: uint64(n) * 256}))
	case opReplay:
		b = bytes.Repeat(b, min(p.u8()%16, 8<<10/max(len(b), 1)))
	case opPiece:
		c.piece = []int{1, 2, 7, 8, 9, 64, 1000, memRead}[p.u8()%8]
		return
	case opStuck:
		if c.closed {
			return
		}
		if c.severed = c.line != nil; !c.severed {
			c.stick()
		}
		return
	case opClose:
		c.hangUp()
		return
	}
	p.last = b
	c.feed(b)
}

// composed makes a hello that is right but for one thing.
func (p *player) composed() []byte {
	from, lane, number, generation, odd := p.u8(), p.u8()%4, p.u8(), p.u8(), p.u8()
	h := hello.Hello{Versions: wire.Spoken(), Lane: wire.Lane(lane), Number: uint16(number % 18),
		Generation: uint32(generation), Window: worldWindow, Name: "test", From: memPeer(from), To: worldSelf.Addr,
		ToInc: worldSelf.Inc, ClusterID: 5, Birth: 6}
	switch odd {
	case 1:
		h.Versions = hello.VersionOne
	case 2:
		h.Name = "other"
	case 3:
		h.ToInc++
	case 4:
		h.ClusterID++
	case 5:
		h.Window++
	case 6:
		h.From = worldSelf
	case 7:
		h.Versions = wire.Versions{Newest: 12, Oldest: 11}
	}
	p.makeWay(&h)
	return wire.AppendFrame(nil, wire.KindHello, 0, 0, hello.Append(nil, &h))
}

// makeWay closes the connection that h would replace: a node waits a quarter of a second for that before it does so.
func (p *player) makeWay(h *hello.Hello) {
	for _, c := range p.conns {
		if in := accepted(c.socket); in != nil && in.from.id == h.From && in.lane == h.Lane && in.number == h.Number &&
			in.generation < h.Generation {
			c.hangUp()
		}
	}
}

// accept opens a connection to the node that begins with these bytes. It is taken, or refused for one counted reason.
func (p *player) accept(b []byte, late bool) {
	if len(p.conns) == maxConns {
		return
	}
	c := p.conn(b)
	c.late, p.current, p.last = late, c, b
	before := p.reasons()
	g := p.tr.admit(c)
	if g == nil {
		p.t.Fatal("no room for a hello")
	}
	p.tr.handshake(g)
	counted := p.reasons() - before
	if taken := c.engine != nil; taken == c.closed || taken != (counted == 0) || counted > 1 {
		p.t.Fatalf("taken: %v, closed: %v, reasons counted: %d", taken, c.closed, counted)
	}
	c.feed(nil) // what came behind the hello
}

// dial opens a connection from the node, which is answered somehow.
func (p *player) dial() {
	to, lane, which := memPeer(p.u8()), wire.Lane(p.u8()%2), p.u8()
	answer := append([]byte(nil), p.take(p.u8())...)
	if len(p.conns) == maxConns {
		return
	}
	var u *uplink
	if lane == wire.LaneData {
		u = &p.tr.Link(to).uplink
	} else if r, err := p.tr.remote(to); err == nil {
		u = &r.control().uplink
	}
	if u == nil || u.conn != nil || u.dead != nil {
		return
	}
	a := hello.Ack{Version: [2]uint16{wire.Version, 1}[which/8%2], From: to, ClusterID: 5, Birth: 6}
	if which%8 == 1 {
		a.From.Inc++
	}
	if which%8 < 4 {
		answer = wire.AppendFrame(nil, wire.KindHelloAck, 0, 0, hello.AppendAck(nil, &a, wire.Spoken()))
	} else if which%8 < 6 {
		answer = wire.AppendFrame(nil, wire.KindHelloRefuse, 0, 0,
			hello.AppendRefusal(nil, &hello.RefusedError{Reason: hello.Refusal(which / 8)}))
	}
	c := p.conn(answer)
	p.current, p.last = c, answer
	u.mu.Lock()
	u.dialing = true
	u.generation++
	oc := &outConn{u: u, generation: u.generation, over: make(chan struct{})}
	u.mu.Unlock()
	found, err := p.tr.greet(c, &opening{to: to, lane: lane, generation: oc.generation, speak: wire.Spoken()})
	if err == nil {
		err = u.adopt(oc, c, found)
	}
	if err != nil {
		c.closed = true
		u.failed(time.Now(), err)
		return
	}
	c.feed(nil)
}

// send has the node say something.
func (p *player) send() {
	to, what := memPeer(p.u8()), p.u8()
	if what%2 == 0 {
		_ = p.tr.Send(peer.Mail{To: to, Kind: goodMail[what/2%len(goodMail)], Body: make([]byte, what)})
		return
	}
	l := p.tr.Link(to)
	l.Lock()
	size := wire.SizeEnvelope(1, 8*what)
	room, err := l.Reserve(size)
	if err != nil {
		l.Unlock()
		return
	}
	wire.PutEnvelope(room, &wire.Envelope{Payload: make([]byte, 8*what)}, "x")
	wake := l.Commit()
	l.Unlock()
	if wake {
		l.Wake(nil)
	}
}

var goodMail = []wire.Kind{wire.KindHeartbeat, wire.KindGossip, wire.KindSegment, wire.KindRefused}

// saying is a program that opens a connection of a lane and then does what ops say.
func saying(lane wire.Lane, ops ...byte) []byte {
	return append([]byte{opAccept, 0, byte(lane), 0, 1, 0, 0}, ops...)
}

func addPrograms(f *testing.F) {
	h := exampleHello()
	first := wire.AppendFrame(nil, wire.KindHello, 0, 0, hello.Append(nil, &h))
	for _, cut := range []int{0, 4, 7, 8, 12, 30, len(first)} {
		f.Add(append([]byte{opHello, byte(cut % 2), byte(cut)}, first[:cut]...))
	}
	f.Add([]byte{opHello, 0, 8, 0x16, 3, 1, 2, 0, 1, 0, 1})
	for odd := range byte(8) {
		f.Add([]byte{opAccept, 1, 1, 0, 1, odd, 0, opGood, 8})
	}
	for n := range byte(len(goodFrames)) {
		f.Add(saying(wire.LaneControl, opGood, n, opReplay, 2))
		f.Add(saying(wire.LaneData, opPiece, 1, opGood, n, opClose, opReplay, 1))
		f.Add([]byte{opDial, 0, 0, 0, 0, opGood, n, opReplay, 2})
	}
	for _, size := range []uint32{0, 7, 8, 100, worldFrame, worldFrame + 1, wire.MaxControlFrame, 1 << 31, 1<<32 - 1} {
		lie := binary.LittleEndian.AppendUint32([]byte{opLie, byte(wire.KindEnvelope)}, size)
		f.Add(saying(wire.LaneData, append(lie, opRaw, 3, 1, 2, 3)...))
		lie = binary.LittleEndian.AppendUint32([]byte{opLie, byte(wire.KindGossip)}, size)
		f.Add(saying(wire.LaneControl, append(lie, opRaw, 3, 1, 2, 3)...))
	}
	// A window overrun, and one that is consumed; probes with answers that nobody reads; a newer connection.
	f.Add(saying(wire.LaneData, opGood, 7, opReplay, 15, opGood, 7))
	f.Add(saying(wire.LaneData, opGood, 7, opReplay, 3, opConsume, 9, opTime, 1, opReplay, 3))
	f.Add(saying(wire.LaneControl, opStuck, opGood, 3, opReplay, 15, opReplay, 15, opReplay, 1, opReplay, 1, opReplay, 1,
		opReplay, 1, opReplay, 1, opReplay, 1, opReplay, 1, opReplay, 1, opReplay, 1, opReplay, 1, opReplay, 1))
	f.Add(saying(wire.LaneData, append(saying(wire.LaneControl), opAccept, 0, 1, 0, 2, 0, 0, opGood, 7)...))
	// Connections that were reset and are written to: answers, credit, mail and messages.
	f.Add(saying(wire.LaneControl, opStuck, opStuck, opGood, 3, opReplay, 15))
	f.Add(saying(wire.LaneData, opStuck, opStuck, opGood, 7, opReplay, 3, opConsume, 9, opTime, 1, opReplay, 3))
	f.Add([]byte{opDial, 0, 0, 0, 0, opStuck, opStuck, opSend, 0, 0, opDial, 0, 1, 0, 0, opStuck, opStuck, opSend, 0, 9})
	// Credit for what was never sent, for what was, and for a connection of the past.
	dialled := []byte{opDial, 0, 1, 0, 0, opSend, 0, 9, opSend, 0, 255}
	f.Add(append(saying(wire.LaneControl, opCredit, 1, 9), dialled...))
	f.Add(append(dialled, saying(wire.LaneControl, opCredit, 1, 1, opCredit, 1, 1, opCredit, 1, 255)...))
	f.Add(append(dialled, saying(wire.LaneControl, opCredit, 0, 1, opCredit, 2, 1)...))
	// What comes back on a dialled connection.
	for which := range byte(8) {
		f.Add([]byte{opDial, 0, 0, which, 3, 1, 2, 3, opSend, 0, 0, opGood, 4, opReplay, 1, opGood, 5})
		f.Add([]byte{opDial, 0, 1, which + 8, 0, opRaw, 1, 7})
	}
}

// FuzzConnection: whatever is said to a node, in whatever order, each violation ends in one counted reason and a closed
// connection, nothing is delivered behind it, and what is held is in proportion to what came.
func FuzzConnection(f *testing.F) {
	addPrograms(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		(&player{world: newWorld(t, nil), program: program{b}}).run()
	})
}

// FuzzDialled is FuzzConnection for a node that has dialled both lanes of a peer before, and has sent on them.
func FuzzDialled(f *testing.F) {
	addPrograms(f)
	prologue := []byte{opDial, 0, 0, 0, 0, opSend, 0, 0, opDial, 0, 1, 0, 0, opSend, 0, 9, opSend, 0, 255}
	f.Fuzz(func(t *testing.T, b []byte) {
		(&player{world: newWorld(t, nil), program: program{append(prologue[:len(prologue):len(prologue)], b...)}}).run()
	})
}
