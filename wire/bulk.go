// Frames of the bulk connection: how a message that fits no data frame goes over in chunks.

package wire

import (
	"encoding/binary"
	"math"
)

// Bounds of large messages.
const (
	MaxBulkSize  = 1 << 30   // largest payload of a large message, bytes
	MaxBulkChunk = 256 << 10 // largest part of it in one frame, bytes
	BulkRefSize  = 8         // payload of an envelope with FlagBulk, bytes

	// BulkChunkHead is what a chunk's frame has before the part: frame header and number.
	BulkChunkHead = HeaderSize + 4
	// MaxBulkFrame is the largest frame of a bulk connection.
	MaxBulkFrame = BulkChunkHead + MaxBulkChunk
)

// BulkBegin opens a large message. A message is announced with the shard that it is for and the fence that its sender
// believes in, so that a receiver which is not the owner refuses it before it was sent; a reply (Reply set) with the
// correlation that it answers.
//
//	offset 0  u32 number, growing from 1 on each connection
//	       4  u32 size of the payload, 1 to MaxBulkSize
//	       8  u32 type, u32 shard, u32 term, u32 epoch  (zero for a reply)
//	      24  u64 correlation: of the ask that it is, or answers; zero for a tell
//	      32  u8 1 for a reply, else 0
type BulkBegin struct {
	Number, Size uint32
	Type, Shard  uint32
	Term, Epoch  uint32
	Corr         uint64
	Reply        bool
}

// AppendBulkBegin appends the body of a begin frame (33 bytes).
func AppendBulkBegin(dst []byte, b *BulkBegin) []byte {
	dst = AppendU32(AppendU32(dst, b.Number), b.Size)
	dst = AppendU32(AppendU32(dst, b.Type), b.Shard)
	dst = AppendU64(AppendU32(AppendU32(dst, b.Term), b.Epoch), b.Corr)
	return AppendBool(dst, b.Reply)
}

// ParseBulkBegin reads the body of a begin frame.
func ParseBulkBegin(body []byte) (BulkBegin, error) {
	r := NewReader(KindBulkBegin, body)
	b := BulkBegin{Number: r.U32(), Size: r.U32(), Type: r.U32(), Shard: r.U32(), Term: r.U32(), Epoch: r.U32(),
		Corr: r.U64(), Reply: r.Bool()}
	if r.Err() == nil && (b.Number == 0 || b.Size == 0 || b.Size > MaxBulkSize) {
		r.Fail(ErrBadValue)
	}
	return b, r.Done()
}

// AppendBulkChunk appends a whole chunk frame.
func AppendBulkChunk(dst []byte, number uint32, part []byte) []byte {
	dst, at := BeginFrame(dst, KindBulkChunk, 0, 0)
	dst = append(AppendU32(dst, number), part...)
	EndFrame(dst, at)
	return dst
}

// ParseBulkChunk reads the head of a chunk's frame, BulkChunkHead bytes, the frame header included, and returns how
// many bytes of the payload follow it: a reader takes those where they belong, without gathering the frame.
func ParseBulkChunk(head []byte) (number uint32, part int, err error) {
	if len(head) < BulkChunkHead {
		return 0, 0, &Error{KindBulkChunk, len(head), ErrTruncated}
	}
	number, part = binary.LittleEndian.Uint32(head[HeaderSize:]), int(binary.LittleEndian.Uint32(head))-BulkChunkHead
	switch {
	case part <= 0:
		return 0, 0, &Error{KindBulkChunk, 0, ErrTooSmall}
	case part > MaxBulkChunk:
		return 0, 0, &Error{KindBulkChunk, 0, ErrTooLarge}
	case number == 0:
		return 0, 0, &Error{KindBulkChunk, HeaderSize, ErrBadValue}
	}
	return number, part, nil
}

// SplitBulkChunk reads the body of a chunk that was gathered whole: which message it is of, and a view of its part.
func SplitBulkChunk(body []byte) (number uint32, part []byte, err error) {
	r := NewReader(KindBulkChunk, body)
	number, part = r.U32(), r.Rest()
	if r.Err() == nil && (number == 0 || len(part) == 0) {
		r.Fail(ErrBadValue)
	}
	return number, part, r.Done()
}

// BulkGrant says how many bytes of a large message's payload may be sent: a running total. The first one admits it.
type BulkGrant struct{ Number, Allowed uint32 }

// AppendBulkGrant appends the body of a grant frame (8 bytes).
func AppendBulkGrant(dst []byte, g BulkGrant) []byte {
	return AppendU32(AppendU32(dst, g.Number), g.Allowed)
}

// ParseBulkGrant reads the body of a grant frame.
func ParseBulkGrant(body []byte) (BulkGrant, error) {
	r := NewReader(KindBulkGrant, body)
	g := BulkGrant{r.U32(), r.U32()}
	return g, r.Done()
}

// BulkOver ends a large message: status zero when it was taken, else the delivery reason (package route) why not, and
// the limit of the bound that it comes from, zero without one.
type BulkOver struct {
	Number uint32
	Status uint16
	Limit  uint64 // at most math.MaxInt64; zero with status zero
}

// AppendBulkOver appends the body of an over frame (14 bytes).
func AppendBulkOver(dst []byte, o BulkOver) []byte {
	return AppendU64(AppendU16(AppendU32(dst, o.Number), o.Status), o.Limit)
}

// ParseBulkOver reads the body of an over frame.
func ParseBulkOver(body []byte) (BulkOver, error) {
	r := NewReader(KindBulkOver, body)
	o := BulkOver{r.U32(), r.U16(), r.U64()}
	if r.Err() == nil && (o.Limit > math.MaxInt64 || o.Limit > 0 && o.Status == 0) {
		r.Fail(ErrBadValue)
	}
	return o, r.Done()
}

// AppendBulkNumber appends the body of a whole or an abort frame (4 bytes).
func AppendBulkNumber(dst []byte, number uint32) []byte { return AppendU32(dst, number) }

// ParseBulkNumber reads the body of a whole or an abort frame, which k names in errors.
func ParseBulkNumber(k Kind, body []byte) (number uint32, err error) {
	r := NewReader(k, body)
	number = r.U32()
	return number, r.Done()
}

// BulkRef is the payload of an envelope with FlagBulk: the large message that the envelope stands for, by the
// generation of the bulk connection over which it came and its number there.
type BulkRef struct{ Generation, Number uint32 }

// AppendBulkRef appends a reference (8 bytes).
func AppendBulkRef(dst []byte, b BulkRef) []byte {
	return AppendU32(AppendU32(dst, b.Generation), b.Number)
}

// ParseBulkRef reads the payload of an envelope with FlagBulk.
func ParseBulkRef(payload []byte) (BulkRef, error) {
	r := NewReader(KindEnvelope, payload)
	b := BulkRef{r.U32(), r.U32()}
	return b, r.Done()
}
