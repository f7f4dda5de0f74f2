// The codec of a hello, and the bounds of what it holds.

package hello

import (
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// Magic opens every hello body.
const Magic = "KITH"

// Bounds of what a hello names.
const (
	MaxSettings    = 64  // settings
	MaxSettingSize = 255 // bytes of a key, and of a value
	MaxNameSize    = 255 // bytes of the cluster name
	MaxConnections = 16  // connections that a node dials to one other on a lane: a Number is below it
)

// Setting is a value on which both ends of a connection must agree. A key that only one of them names is not compared.
type Setting struct{ Key, Value string }

// MaxFrame bounds a hello frame in bytes: all settings at their longest, and the fixed part.
const MaxFrame = MaxSettings*2*(MaxSettingSize+2) + 2048

// MaxAnswer bounds the frame of an answer to a hello, in bytes.
const MaxAnswer = 4096

// maxGeneration is the highest generation that a hello may name: nobody dials so often, and the next one would wrap.
const maxGeneration = 1 << 31

// maxTail bounds what later versions may put behind a hello or its answer.
const maxTail = 1024

// Hello is what a dialler says of itself and of the node that it means.
//
//	"KITH", u16 newest and u16 oldest wire version that the dialler speaks,
//	u8 lane, u16 number, u32 generation, u32 window, u64 cluster id, u64 birth,
//	string cluster name, id of the dialler, address dialled, u64 incarnation meant (0: any),
//	varint number of settings, then key and value of each, then a tail: a string (since version 3: its fields, each a
//	u8 number and a string; a reader skips those that it does not know)
//
// The layout holds for every version from 2 on: what a later one adds goes into the tail, which an older reader skips.
// Version 1 has neither the oldest version nor the tail; a hello with 1 as its newest version is laid out like that.
type Hello struct {
	Versions   wire.Versions
	Lane       wire.Lane
	Number     uint16 // which of the peer's connections on this lane
	Generation uint32 // grows with each connection of that number
	Window     uint32 // credit window of the dialler, bytes; zero on the control lane
	ClusterID  uint64
	Birth      uint64
	Name       string
	From       peer.ID
	To         peer.Addr
	ToInc      uint64
	Settings   []Setting
	Token      Token  // what only this dialler can say to this acceptor; zero: none
	Renews     uint32 // generation of the connection that stands, which this one is to follow without a gap; zero: none
}

// Token is a secret that a node says in all its hellos to one other node, and to nobody else. A hello without it comes
// from somebody else.
type Token [16]byte

// Fields of a hello's tail.
const (
	fieldToken  = 1
	fieldRenews = 2
)

// TailSince is the wire version since which the tail of a hello has fields: an acceptor of an earlier one does not
// learn what a connection follows.
const TailSince = 3

// appendTail appends the tail of a hello.
func appendTail(b []byte, h *Hello) []byte {
	var tail []byte
	if h.Token != (Token{}) && h.Versions.Newest >= TailSince {
		tail = wire.AppendBytes(wire.AppendU8(tail, fieldToken), h.Token[:])
	}
	if h.Renews != 0 && h.Versions.Newest >= TailSince {
		tail = wire.AppendBytes(wire.AppendU8(tail, fieldRenews), wire.AppendU32(nil, h.Renews))
	}
	return wire.AppendBytes(b, tail)
}

// parseTail reads the tail of a hello.
func parseTail(h *Hello, b []byte) error {
	r := wire.NewReader(wire.KindHello, b)
	for r.Err() == nil && r.Len() > 0 {
		number := r.U8()
		v := wire.NewReader(wire.KindHello, r.Bytes(maxTail))
		switch {
		case r.Err() != nil:
		case number == fieldToken:
			copy(h.Token[:], v.Fixed(len(h.Token)))
		case number == fieldRenews:
			h.Renews = v.U32()
		default:
			v.Rest()
		}
		if err := v.Done(); err != nil {
			return err
		}
	}
	return r.Done()
}

// Append appends the body of a hello frame to b and returns it. It reads h only.
func Append(b []byte, h *Hello) []byte {
	b = append(b, Magic...)
	b = wire.AppendU16(b, h.Versions.Newest)
	if h.Versions.Newest > 1 {
		b = wire.AppendU16(b, h.Versions.Oldest)
	}
	b = wire.AppendU8(b, uint8(h.Lane))
	b = wire.AppendU16(b, h.Number)
	b = wire.AppendU32(b, h.Generation)
	b = wire.AppendU32(b, h.Window)
	b = wire.AppendU64(b, h.ClusterID)
	b = wire.AppendU64(b, h.Birth)
	b = wire.AppendString(b, h.Name)
	b = peer.AppendID(b, h.From)
	b = peer.AppendAddr(b, h.To)
	b = wire.AppendU64(b, h.ToInc)
	b = wire.AppendUvarint(b, uint64(len(h.Settings)))
	for _, s := range h.Settings {
		b = wire.AppendString(b, s.Key)
		b = wire.AppendString(b, s.Value)
	}
	if h.Versions.Newest > 1 {
		b = appendTail(b, h)
	}
	return b
}

// Parse reads the body of a hello frame. speaks is what the reader speaks. The result holds no bytes of body. Every
// error is a *wire.Error; with wire.ErrBadWire, when they have no version in common, only Versions is set.
func Parse(body []byte, speaks wire.Versions) (h Hello, err error) {
	r := wire.NewReader(wire.KindHello, body)
	magic := r.Fixed(len(Magic))
	if r.Err() == nil && string(magic) != Magic {
		return h, &wire.Error{Kind: wire.KindHello, Err: wire.ErrBadMagic}
	}
	h.Versions.Newest = r.U16()
	if h.Versions.Oldest = h.Versions.Newest; h.Versions.Newest > 1 {
		h.Versions.Oldest = r.U16()
	}
	if r.Err() == nil && !h.Versions.Valid() {
		r.Fail(wire.ErrBadValue)
	}
	if _, ok := h.Versions.Common(speaks); r.Err() == nil && !ok {
		return h, &wire.Error{Kind: wire.KindHello, Offset: len(Magic), Err: wire.ErrBadWire}
	}
	h.Lane = wire.Lane(r.U8())
	if h.Lane > wire.LaneBulk {
		r.Fail(wire.ErrBadValue)
	}
	h.Number = r.U16()
	h.Generation = r.U32()
	h.Window = r.U32()
	h.ClusterID = r.U64()
	h.Birth = r.U64()
	h.Name = r.String(MaxNameSize)
	h.From = peer.ReadID(&r)
	h.To = peer.ReadAddr(&r)
	h.ToInc = r.U64()
	if r.Err() == nil && (h.From.Addr.IsZero() || h.From.Inc == 0 || h.To.IsZero() || h.Generation == 0 ||
		h.Generation > maxGeneration) {
		r.Fail(wire.ErrBadValue)
	}
	if n := r.Count(2, MaxSettings); n > 0 {
		h.Settings = make([]Setting, n)
		for i := range h.Settings {
			h.Settings[i] = Setting{Key: r.String(MaxSettingSize), Value: r.String(MaxSettingSize)}
		}
	}
	if h.Versions.Newest > 1 {
		tail := r.Bytes(maxTail)
		if r.Err() == nil && h.Versions.Newest >= TailSince {
			if err := parseTail(&h, tail); err != nil {
				return h, err
			}
		}
	}
	return h, r.Done()
}
