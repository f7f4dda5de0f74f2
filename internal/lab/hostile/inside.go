// The attacks of clients with a hello that is taken.

package hostile

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"slices"

	"github.com/kith-io/kith/internal/core/courier"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// Insiders are the attacks of clients with a hello that was taken: nobody's, or another member's on a connection of its
// own.
func (t *Target) Insiders() []Attack {
	return slices.Concat(t.onControl(), t.onData(), t.onBulk(), t.gossip(), t.numbered(), t.connections())
}

func inside(name, counts string, closes bool, h Hello, b []byte) Attack {
	return Attack{Name: name, Counts: counts, Closes: closes, Hello: &h, Bytes: b}
}

// onControl says on a control connection what must not be said there, at that length, or by a stranger.
func (t *Target) onControl() (list []Attack) {
	add := func(name, counts string, closes bool, b []byte) {
		list = append(list, inside(name, counts, closes, Hello{}, b))
	}
	for k := range wire.Kind(255) {
		switch {
		case !k.Known():
			continue
		case k.Lane() != wire.LaneControl:
			add(k.String()+" on a control connection", "frames", true, frame(k, make([]byte, min(40, k.MaxBody()))))
			continue
		}
		for _, size := range []uint32{0, 7, wire.MaxControlFrame + 1, 1 << 31, 1<<32 - 1} {
			add(k.String()+" of impossible size", "frames", true, header(size, k))
		}
		body := bytes.Repeat([]byte{0xff}, min(61, k.MaxBody()))
		switch k {
		case wire.KindHello, wire.KindHelloAck, wire.KindHelloRefuse, wire.KindHeartbeatAck, wire.KindCredit,
			wire.KindFull, wire.KindRoom:
			add("uncalled for: "+k.String(), "frames", true, frame(k, body))
		case wire.KindHeartbeat:
			add("a heartbeat that is cut", "frames", true, frame(k, body[:15]))
		default:
			add("all lengths at their most: "+k.String(), "nonsense", false, frame(k, body))
			add("nothing in it: "+k.String(), "nonsense", false, frame(k, nil))
		}
	}
	add("an unknown kind", "frames", true, frame(99, nil))
	add("garbage", "frames", true, Garbage(4096))
	beat := frame(wire.KindHeartbeat, wire.AppendHeartbeat(nil, wire.Heartbeat{Seq: 1, Sent: 1}))
	add("heartbeats of a stranger", "strangers", false, bytes.Repeat(beat, 100))
	refusal := frame(wire.KindRefused, wire.AppendUvarint(nil, 0))
	add("a stranger refuses what it never got", "nonsense", false, refusal)
	credit := wire.Credit{Lane: 3, Generation: 1, Consumed: 1 << 40}
	add("credit for a connection that is not", "frames", true, frame(wire.KindCredit, wire.AppendCredit(nil, credit)))
	if !t.Member.IsZero() {
		credit.Lane = 0
		list = append(list, inside("credit for more than was sent", "frames", true, Hello{From: t.Member, Number: 7},
			frame(wire.KindCredit, wire.AppendCredit(nil, credit))))
	}
	return list
}

// Floods are more than a node works off: what waits for it afterwards is what these attackers, and others that are no
// members, have said.
func (t *Target) Floods() []Attack {
	status := frame(wire.KindStatus, append(t.envelope(), make([]byte, 16)...))
	bombs := bytes.Repeat(frame(wire.KindGossip, t.bomb(8<<20, 8<<20)), 1000)
	return []Attack{
		inside("a thousand bombs", "nonsense", false, Hello{}, bombs),
		{Name: "frames that are half sent", Counts: "partials-full", Alone: true, Do: t.halves},
		{Name: "a flood", Counts: "control-dropped", Hello: &Hello{}, Do: func(c *Conn) error { return flood(c, status) }},
	}
}

// halves sends most of the longest frame there is on each of four connections, and no more: beyond the half of
// PartialBudget that nobodies have, when it is 32 MiB.
func (t *Target) halves(*Conn) error {
	for range 4 {
		c, err := t.Dial()
		if err != nil {
			return err
		}
		defer c.Close()
		if err := c.Greet(Hello{}); err != nil {
			return err
		}
		// The node closes one of them before all is written.
		_, _ = c.Write(append(header(wire.MaxControlFrame, wire.KindGossip), make([]byte, 7<<20)...))
	}
	return nil
}

// flood says the same a hundred thousand times, as fast as it goes, and leaves the answers to their receivers.
func flood(c *Conn, frame []byte) error {
	many := bytes.Repeat(frame, 1000)
	for range 100 {
		if _, err := c.Write(many); err != nil {
			return err
		}
	}
	return nil
}

// onData says on a data connection what must not be said there.
func (t *Target) onData() (list []Attack) {
	add := func(name, counts string, closes bool, b []byte) {
		list = append(list, inside(name, counts, closes, Hello{Lane: wire.LaneData}, b))
	}
	for k := range wire.Kind(255) {
		if k.Known() && k.Lane() != wire.LaneData {
			add(k.String()+" on a data connection", "frames", true, frame(k, make([]byte, min(40, k.MaxBody()))))
		}
	}
	for _, k := range []wire.Kind{wire.KindEnvelope, wire.KindReply, wire.KindMarker, wire.KindCancel, wire.KindParcel} {
		for _, size := range []uint32{0, 7, wire.MaxFrameLimit + 1, 1 << 31, 1<<32 - 1} {
			add(k.String()+" of impossible size", "frames", true, header(size, k))
		}
	}
	envelope := wire.AppendEnvelope(nil, &wire.Envelope{Type: 77, ID: []byte("id"), Payload: []byte("payload")})
	long := slices.Clone(envelope)
	binary.LittleEndian.PutUint16(long[6:], 1000) // an id longer than the frame
	add("garbage", "frames", true, Garbage(4096))
	add("an id beyond the end", "nonsense", false, long)
	add("an envelope that is cut", "nonsense", false, wire.AppendFrame(nil, wire.KindEnvelope, 0, 1, []byte("x")))
	add("an envelope of no type", "unregistered", false, envelope)
	add("an envelope under no fence", "refused-here", false,
		wire.AppendEnvelope(nil, &wire.Envelope{Type: t.Type, ID: []byte("id"), Term: 1 << 30, Epoch: 1}))
	add("an envelope for no shard", "refused-or-unregistered", false,
		wire.AppendEnvelope(nil, &wire.Envelope{Type: t.Type, Shard: 1 << 30, ID: []byte("id")}))
	add("a reply that is cut", "nonsense", false, frame(wire.KindReply, []byte("x")))
	add("a reply with no reason", "nonsense", false, wire.AppendFrame(nil, wire.KindReply, 0, 9999, make([]byte, 8)))
	add("replies that nobody asked for", "late", false,
		bytes.Repeat(frame(wire.KindReply, wire.AppendU64(nil, 1<<60)), 50))
	marker := frame(wire.KindMarker, wire.AppendMarker(nil, wire.Marker{Type: t.Type, Shard: 1})[:12])
	add("a cancel that is cut", "nonsense", false, frame(wire.KindCancel, []byte("x")))
	add("a parcel that is cut", "nonsense", false, frame(wire.KindParcel, []byte("x")))
	add("a marker that is cut, twice", "nonsense", false, join(marker, marker))
	return list
}

// onBulk breaks the order of large messages.
func (t *Target) onBulk() (list []Attack) {
	add := func(name, counts string, closes bool, b []byte) {
		list = append(list, inside("bulk: "+name, counts, closes, Hello{Lane: wire.LaneBulk}, b))
	}
	begin := func(number, size uint32) []byte {
		return frame(wire.KindBulkBegin, wire.AppendBulkBegin(nil, &wire.BulkBegin{Number: number, Size: size, Type: t.Type,
			Shard: 1, Term: 1 << 30}))
	}
	number := func(k wire.Kind, n uint32) []byte { return frame(k, wire.AppendBulkNumber(nil, n)) }
	add("garbage", "frames", true, Garbage(4096))
	add("a chunk of nothing begun", "frames", true, wire.AppendBulkChunk(nil, 1, []byte{1}))
	add("an end of nothing begun", "frames", true, number(wire.KindBulkAbort, 1))
	add("begun twice", "frames", true, join(begin(1, 100), begin(1, 100)))
	add("a begin out of order", "frames", true, begin(7, 100))
	add("a size of nothing", "frames", true, begin(1, 0))
	add("a size over all bounds", "frames", true, begin(1, wire.MaxBulkSize+1))
	add("an answer to no question", "frames", true, number(wire.KindBulkWhole, 1))
	add("an envelope", "frames", true, wire.AppendEnvelope(nil, &wire.Envelope{ID: []byte("x")}))
	for _, size := range []uint32{0, 7, 1 << 20, 1<<32 - 1} {
		add("a chunk of impossible size", "frames", true, header(size, wire.KindBulkChunk))
	}
	add("a message to a shard that is not here", "bulk-refused", false, begin(1, 64<<20))
	return list
}

// gossip packs bombs, and speaks of other clusters and incarnations.
func (t *Target) gossip() (list []Attack) {
	add := func(name, counts string, k wire.Kind, body []byte) {
		list = append(list, inside(name, counts, false, Hello{}, frame(k, body)))
	}
	bomb := t.bomb
	add("a bomb of the most that is unpacked", "nonsense", wire.KindGossip, bomb(8<<20, 8<<20))
	add("a bomb that claims more", "nonsense", wire.KindGossip, bomb(1<<40, 8<<20))
	add("a bomb larger than it claims", "nonsense", wire.KindGossip, bomb(1000, 64<<20))
	add("a bomb smaller than it claims", "nonsense", wire.KindGossip, bomb(1<<20, 1<<18, zipped(1<<18)...))
	add("a bomb as a welcome", "stale-welcome", wire.KindWelcome, bomb(8<<20, 8<<20))
	other := wire.AppendU64(wire.AppendU64(nil, t.Node.Inc), t.Cluster+1)
	add("gossip of another cluster", "misaddressed", wire.KindStatus, append(other, make([]byte, 16)...))
	former := wire.AppendU64(wire.AppendU64(nil, t.Node.Inc-1), t.Cluster)
	add("gossip for another incarnation", "misaddressed", wire.KindStatus, append(former, make([]byte, 16)...))
	add("an exit of a stranger", "strangers", wire.KindExitDone, t.envelope())
	add("an end for another incarnation", "misaddressed", wire.KindExitDone, former)
	add("a removed-note of a nobody", "disbelieved", wire.KindRemovedNote, t.note())
	near := Hello{From: peer.ID{Addr: t.Member.Addr, Inc: 1 << 50}}
	if !t.Member.IsZero() {
		list = append(list, inside("a removed-note from a member's address, by one who does not answer there", "disbelieved",
			false, near, frame(wire.KindRemovedNote, t.note())))
	}
	return list
}

// note tells the node that it was removed: Down, downed by the other member, in a cluster of a hundred.
func (t *Target) note() []byte {
	b := wire.AppendU64(append(t.envelope(), 4), 1000)
	b = peer.AppendID(wire.AppendU32(b, 100), Stranger())
	return peer.AppendID(append(b, 3), t.Member)
}

// bomb is a version that claims to be so long and holds so many zeros.
func (t *Target) bomb(claimed uint64, plain int, more ...byte) []byte {
	b := append(t.envelope(), 1, 2, 3, 4, 5, 6, 7, 8) // a version that nobody holds
	b = append(b, 1, 0, 1)                            // one member, not seen; packed
	return append(append(wire.AppendUvarint(b, claimed), zipped(plain)...), more...)
}

// zipped is n zeros, compressed.
func zipped(n int) []byte {
	var b bytes.Buffer
	w, _ := gzip.NewWriterLevel(&b, gzip.BestCompression) // a known level: cannot fail
	_, _ = w.Write(make([]byte, n))
	_ = w.Close()
	return b.Bytes()
}

// Replays are what can be made of a version that the node sent: said again, and to others. The node holds another one
// when what is older is said.
func (t *Target) Replays(same, older []byte) []Attack {
	to := func(node, cluster uint64, body []byte) []byte {
		return frame(wire.KindGossip, append(wire.AppendU64(wire.AppendU64(nil, node), cluster), body[16:]...))
	}
	return []Attack{
		inside("gossip again", "gossip-same", false, Hello{}, to(t.Node.Inc, t.Cluster, same)),
		inside("gossip that is older", "gossip-older", false, Hello{}, to(t.Node.Inc, t.Cluster, older)),
		inside("gossip again, of another incarnation", "misaddressed", false, Hello{}, to(t.Node.Inc-1, t.Cluster, same)),
		inside("gossip again, of another cluster", "misaddressed", false, Hello{}, to(t.Node.Inc, t.Cluster+1, same)),
		inside("gossip that was changed", "nonsense", false, Hello{},
			frame(wire.KindGossip, join(t.envelope(), []byte{9}, older[17:]))),
		inside("gossip that is cut", "nonsense", false, Hello{},
			frame(wire.KindGossip, join(t.envelope(), []byte{9}, older[17:len(older)-9]))),
	}
}

// numbered repeats control messages and says them out of order.
func (t *Target) numbered() (list []Attack) {
	segment := func(from, to, seq, ack uint64) []byte {
		return frame(wire.KindSegment, courier.AppendSegment(nil, &courier.Segment{From: from, To: to, Seq: seq, Ack: ack,
			Kind: wire.KindHomes}))
	}
	acknowledgement := func(from, to, ack uint64) []byte {
		b := wire.AppendU64(wire.AppendU64(wire.AppendU64(nil, from), to), ack)
		return frame(wire.KindSegmentAck, append(b, 0))
	}
	// The node may not have noticed yet that the connection before has ended: each is a newer one.
	nobody, generation := Stranger(), uint32(0)
	add := func(name, counts string, b []byte) {
		generation++
		list = append(list, inside(name, counts, false, Hello{From: nobody, Generation: generation}, b))
	}
	add("a segment of a stranger", "segments-of-strangers", segment(nobody.Inc, t.Node.Inc, 1, 0))
	add("an acknowledgement of a stranger", "segments-of-strangers", acknowledgement(nobody.Inc, t.Node.Inc, 1))
	add("a segment for another incarnation", "segments-stale", segment(nobody.Inc, t.Node.Inc-1, 1, 0))
	add("a segment in another's name", "segments-stale", segment(nobody.Inc+1, t.Node.Inc, 1, 0))
	if t.Member.IsZero() {
		return list
	}
	add = func(name, counts string, b []byte) {
		generation++
		list = append(list, inside(name, counts, false, Hello{From: t.Member, Number: 7, Generation: generation}, b))
	}
	add("a segment again", "segments-again", segment(t.Member.Inc, t.Node.Inc, 1, 0))
	add("a segment from far ahead", "segments-ahead", segment(t.Member.Inc, t.Node.Inc, 1<<40, 0))
	add("a segment that acknowledges the future", "nonsense", segment(t.Member.Inc, t.Node.Inc, 1, 1<<50))
	add("an acknowledgement of the future", "nonsense", acknowledgement(t.Member.Inc, t.Node.Inc, 1<<50))
	return list
}

// connections are attacks by what connections there are.
func (t *Target) connections() (list []Attack) {
	for _, lane := range []wire.Lane{wire.LaneControl, wire.LaneData, wire.LaneBulk} {
		if !t.Member.IsZero() {
			stolen := Hello{From: t.Member, Lane: lane, Generation: 1 << 30}
			list = append(list, Attack{Name: "another's name, " + lane.String(), Counts: "refused/taken", Closes: true,
				Bytes: stolen.Append(nil, t)})
		}
	}
	again := Hello{From: Stranger(), Generation: 5}
	return append(list, Attack{Name: "an older connection beside a newer one", Counts: "refused/stale", Hello: &again,
		Do: func(c *Conn) error {
			second, err := c.Target.Dial()
			if err != nil {
				return err
			}
			defer second.Close()
			if _, err := second.Write(again.Append(nil, c.Target)); err != nil {
				return err
			}
			return second.Closed()
		}})
}
