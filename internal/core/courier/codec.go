// The two frames of a courier: the segment, which carries one message, and the acknowledgement, which only
// acknowledges.
//
//	segment   from u64 | to u64 | seq u64 | ack u64 | flags u8 | kind u8 | body to the end
//	acknowledgement  from u64 | to u64 | ack u64 | flags u8
//
// from and to are the incarnations of the sender and of the receiver that it means, so a frame of an earlier process
// can never be taken for one of its successor, whatever way it took.

package courier

import (
	"github.com/kith-io/kith/wire"
)

// segmentHead and ackSize are the bytes of a segment before its body, and those of an acknowledgement.
const (
	segmentHead = 34
	ackSize     = 25
)

// Flags of both frames.
const (
	flagDetour = 1 << 0 // it came by the address alone: the answer is to take that way too
	flagGap    = 1 << 1 // of an acknowledgement: later messages wait for the one behind ack
)

// Segment is one numbered message between two incarnations.
type Segment struct {
	From, To uint64 // incarnations
	Seq      uint64 // from 1
	Ack      uint64 // the number up to which From has been delivered everything that To sent; 0: nothing
	Detour   bool   // sent to the address alone
	Kind     wire.Kind
	Body     []byte // a view
}

// segmentAck acknowledges without carrying anything.
type segmentAck struct {
	from, to, ack uint64
	gap, detour   bool
}

// Carries reports whether messages of kind k travel in segments: everything that orders ownership and hand-over, so all
// of sharding but the questions of a suspended node: their answers count for nothing unless they are fresh. So do
// watches, notices, and what an order rests on; what owners, holders and seekers of a tenure say goes bare.
func Carries(k wire.Kind) bool {
	return k.Owner() == wire.OwnerShard && k != wire.KindConfirmOwner && k != wire.KindConfirmAck ||
		k == wire.KindWatches || k == wire.KindTenure || Notice(k)
}

// Notice reports whether messages of kind k are sent by one runtime to another, past the machines: what was refused,
// and what was taken of connections that are over. Towards a peer with a wire version below NoticeSince they travel
// bare.
func Notice(k wire.Kind) bool { return k == wire.KindRefusals || k == wire.KindTaken }

// NoticeSince is the wire version since which notices travel in segments.
const NoticeSince = 4

func bit(on bool, flag uint8) uint8 {
	if on {
		return flag
	}
	return 0
}

// AppendSegment appends the body of a segment.
func AppendSegment(dst []byte, p *Segment) []byte {
	dst = wire.AppendU64(wire.AppendU64(dst, p.From), p.To)
	dst = wire.AppendU64(wire.AppendU64(dst, p.Seq), p.Ack)
	return append(append(dst, bit(p.Detour, flagDetour), byte(p.Kind)), p.Body...)
}

// ParseSegment reads the body of a segment. The message's body is a view into it.
func ParseSegment(body []byte) (Segment, error) {
	r := wire.NewReader(wire.KindSegment, body)
	p := Segment{From: r.U64(), To: r.U64(), Seq: r.U64(), Ack: r.U64()}
	p.Detour = flags(&r, flagDetour)&flagDetour != 0
	p.Kind = wire.Kind(r.U8())
	if r.Err() == nil && (p.From == 0 || p.To == 0 || p.Seq == 0 || !Carries(p.Kind)) {
		r.Fail(wire.ErrBadValue)
	}
	p.Body = r.Rest()
	return p, r.Done()
}

func (c *segmentAck) append(dst []byte) []byte {
	dst = wire.AppendU64(wire.AppendU64(wire.AppendU64(dst, c.from), c.to), c.ack)
	return append(dst, bit(c.detour, flagDetour)|bit(c.gap, flagGap))
}

func parseAck(body []byte) (segmentAck, error) {
	r := wire.NewReader(wire.KindSegmentAck, body)
	c := segmentAck{from: r.U64(), to: r.U64(), ack: r.U64()}
	f := flags(&r, flagDetour|flagGap)
	c.detour, c.gap = f&flagDetour != 0, f&flagGap != 0
	if r.Err() == nil && (c.from == 0 || c.to == 0) {
		r.Fail(wire.ErrBadValue)
	}
	return c, r.Done()
}

// flags reads a byte of which only the given bits may be set.
func flags(r *wire.Reader, allowed uint8) uint8 {
	f := r.U8()
	if f&^allowed != 0 {
		r.Fail(wire.ErrBadValue)
	}
	return f
}
