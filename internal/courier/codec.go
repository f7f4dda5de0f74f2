// The two frames of a courier: the parcel, which carries one message, and the receipt, which only acknowledges.
//
//	parcel   from u64 | to u64 | seq u64 | ack u64 | flags u8 | kind u8 | body to the end
//	receipt  from u64 | to u64 | ack u64 | flags u8
//
// from and to are the incarnations of the sender and of whom it means, so a frame of an earlier process can never be
// taken for one of its successor, whatever way it took.

package courier

import (
	"github.com/kith-io/kith/wire"
)

// parcelHead and receiptSize are the bytes of a parcel before its body, and those of a receipt.
const (
	parcelHead  = 34
	receiptSize = 25
)

// Flags of both frames.
const (
	flagDetour = 1 << 0 // it came by the address alone: the answer is to take that way too
	flagGap    = 1 << 1 // of a receipt: later messages wait for the one behind ack
)

// Parcel is one numbered message between two incarnations.
type Parcel struct {
	From, To uint64 // incarnations
	Seq      uint64 // from 1
	Ack      uint64 // the number up to which From has been delivered everything that To sent; 0: nothing
	Detour   bool   // sent to the address alone
	Kind     wire.Kind
	Body     []byte // a view
}

// receipt acknowledges without carrying anything.
type receipt struct {
	from, to, ack uint64
	gap, detour   bool
}

// Carries reports whether messages of kind k travel in parcels: everything that orders ownership and hand-over, so all
// of sharding but the questions of a suspended node, whose answers count for nothing unless they are fresh.
func Carries(k wire.Kind) bool {
	return k.Room() == "shard" && k != wire.KindConfirmOwner && k != wire.KindConfirmAck
}

func bit(on bool, flag uint8) uint8 {
	if on {
		return flag
	}
	return 0
}

// AppendParcel appends the body of a parcel.
func AppendParcel(dst []byte, p *Parcel) []byte {
	dst = wire.AppendU64(wire.AppendU64(dst, p.From), p.To)
	dst = wire.AppendU64(wire.AppendU64(dst, p.Seq), p.Ack)
	return append(append(dst, bit(p.Detour, flagDetour), byte(p.Kind)), p.Body...)
}

// ParseParcel reads the body of a parcel. The message's body is a view into it.
func ParseParcel(body []byte) (Parcel, error) {
	r := wire.NewReader(wire.KindParcel, body)
	p := Parcel{From: r.U64(), To: r.U64(), Seq: r.U64(), Ack: r.U64()}
	p.Detour = flags(&r, flagDetour)&flagDetour != 0
	p.Kind = wire.Kind(r.U8())
	if r.Err() == nil && (p.From == 0 || p.To == 0 || p.Seq == 0 || !Carries(p.Kind)) {
		r.Fail(wire.ErrBadValue)
	}
	p.Body = r.Rest()
	return p, r.Done()
}

func (c *receipt) append(dst []byte) []byte {
	dst = wire.AppendU64(wire.AppendU64(wire.AppendU64(dst, c.from), c.to), c.ack)
	return append(dst, bit(c.detour, flagDetour)|bit(c.gap, flagGap))
}

func parseReceipt(body []byte) (receipt, error) {
	r := wire.NewReader(wire.KindReceipt, body)
	c := receipt{from: r.U64(), to: r.U64(), ack: r.U64()}
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
