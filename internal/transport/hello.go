// The hello: the first frame of every connection, the two answers to it, and the judgement of an acceptor.

package transport

import (
	"errors"
	"strconv"

	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// Magic opens every hello body.
const Magic = "KITH"

// maxHelloFrame bounds a hello frame: all settings at their longest, and the fixed part.
const maxHelloFrame = MaxSettings*2*(MaxSettingSize+2) + 2048

// maxAnswerFrame bounds the answer to a hello.
const maxAnswerFrame = 4096

// maxGeneration is the highest generation that a hello may name: nobody dials so often, and the next one would wrap.
const maxGeneration = 1 << 31

// maxTail bounds what later versions may put behind a hello or its answer.
const maxTail = 1024

// hello is what a dialler says of itself and of whom it means.
//
//	"KITH", u16 newest and u16 oldest wire version that the dialler speaks,
//	u8 lane, u16 number, u32 generation, u32 window, u64 cluster id, u64 birth,
//	string cluster name, id of the dialler, address dialled, u64 incarnation meant (0: whoever),
//	varint number of settings, then key and value of each, then a tail: a string (since version 3: its fields, each a
//	u8 number and a string; a reader skips those that it does not know)
//
// The layout holds for every version from 2 on: what a later one adds goes into the tail, which an older reader skips.
// Version 1 has neither the oldest version nor the tail; a hello whose newest version is 1 is laid out like that.
type hello struct {
	versions   wire.Versions
	lane       wire.Lane
	number     uint16 // which of the peer's connections on this lane
	generation uint32 // grows with each connection of that number
	window     uint32 // credit window of the dialler, bytes; zero on the control lane
	clusterID  uint64
	birth      uint64
	name       string
	from       peer.ID
	to         peer.Addr
	toInc      uint64
	settings   []Setting
	token      token  // what only this dialler can say to this acceptor; zero: none
	renews     uint32 // generation of the connection that stands, which this one is to follow without a gap; zero: none
}

// token is what a node says in all its hellos to one other, and to nobody else: whoever does not say it speaks for
// somebody else.
type token [16]byte

// Fields of a hello's tail.
const (
	fieldToken  = 1
	fieldRenews = 2
	tailSince   = 3 // wire version
)

// appendTail appends the tail of a hello.
func appendTail(b []byte, h *hello) []byte {
	var tail []byte
	if h.token != (token{}) && h.versions.Newest >= tailSince {
		tail = wire.AppendBytes(wire.AppendU8(tail, fieldToken), h.token[:])
	}
	if h.renews != 0 && h.versions.Newest >= tailSince {
		tail = wire.AppendBytes(wire.AppendU8(tail, fieldRenews), wire.AppendU32(nil, h.renews))
	}
	return wire.AppendBytes(b, tail)
}

// parseTail reads the tail of a hello.
func parseTail(h *hello, b []byte) error {
	r := wire.NewReader(wire.KindHello, b)
	for r.Err() == nil && r.Len() > 0 {
		number := r.U8()
		v := wire.NewReader(wire.KindHello, r.Bytes(maxTail))
		switch {
		case r.Err() != nil:
		case number == fieldToken:
			copy(h.token[:], v.Fixed(len(h.token)))
		case number == fieldRenews:
			h.renews = v.U32()
		default:
			v.Rest()
		}
		if err := v.Done(); err != nil {
			return err
		}
	}
	return r.Done()
}

func appendHello(b []byte, h *hello) []byte {
	b = append(b, Magic...)
	b = wire.AppendU16(b, h.versions.Newest)
	if h.versions.Newest > 1 {
		b = wire.AppendU16(b, h.versions.Oldest)
	}
	b = wire.AppendU8(b, uint8(h.lane))
	b = wire.AppendU16(b, h.number)
	b = wire.AppendU32(b, h.generation)
	b = wire.AppendU32(b, h.window)
	b = wire.AppendU64(b, h.clusterID)
	b = wire.AppendU64(b, h.birth)
	b = wire.AppendString(b, h.name)
	b = peer.AppendID(b, h.from)
	b = peer.AppendAddr(b, h.to)
	b = wire.AppendU64(b, h.toInc)
	b = wire.AppendUvarint(b, uint64(len(h.settings)))
	for _, s := range h.settings {
		b = wire.AppendString(b, s.Key)
		b = wire.AppendString(b, s.Value)
	}
	if h.versions.Newest > 1 {
		b = appendTail(b, h)
	}
	return b
}

// parseHello reads a hello body. speaks is what the reader speaks; with wire.ErrBadWire, when they have no version in
// common, only versions is set.
func parseHello(body []byte, speaks wire.Versions) (h hello, err error) {
	r := wire.NewReader(wire.KindHello, body)
	magic := r.Fixed(len(Magic))
	if r.Err() == nil && string(magic) != Magic {
		return h, &wire.Error{Kind: wire.KindHello, Err: wire.ErrBadMagic}
	}
	h.versions.Newest = r.U16()
	if h.versions.Oldest = h.versions.Newest; h.versions.Newest > 1 {
		h.versions.Oldest = r.U16()
	}
	if r.Err() == nil && !h.versions.Valid() {
		r.Fail(wire.ErrBadValue)
	}
	if _, ok := h.versions.Common(speaks); r.Err() == nil && !ok {
		return h, &wire.Error{Kind: wire.KindHello, Offset: len(Magic), Err: wire.ErrBadWire}
	}
	h.lane = wire.Lane(r.U8())
	if h.lane > wire.LaneBulk {
		r.Fail(wire.ErrBadValue)
	}
	h.number = r.U16()
	h.generation = r.U32()
	h.window = r.U32()
	h.clusterID = r.U64()
	h.birth = r.U64()
	h.name = r.String(maxNameSize)
	h.from = peer.ReadID(&r)
	h.to = peer.ReadAddr(&r)
	h.toInc = r.U64()
	if r.Err() == nil && (h.from.Addr.IsZero() || h.from.Inc == 0 || h.to.IsZero() || h.generation == 0 ||
		h.generation > maxGeneration) {
		r.Fail(wire.ErrBadValue)
	}
	if n := r.Count(2, MaxSettings); n > 0 {
		h.settings = make([]Setting, n)
		for i := range h.settings {
			h.settings[i] = Setting{Key: r.String(MaxSettingSize), Value: r.String(MaxSettingSize)}
		}
	}
	if h.versions.Newest > 1 {
		tail := r.Bytes(maxTail)
		if r.Err() == nil && h.versions.Newest >= tailSince {
			if err := parseTail(&h, tail); err != nil {
				return h, err
			}
		}
	}
	return h, r.Done()
}

// ack is the answer of an acceptor that takes the connection: the version that both will speak, who it is, and its
// cluster (zero: not known yet).
//
//	id of the acceptor, u64 cluster id, u64 birth, u16 version chosen, then a tail as in the hello
//
// The answer to a hello of version 1 has neither the version, which is 1, nor the tail.
type ack struct {
	version   uint16
	from      peer.ID
	clusterID uint64
	birth     uint64
}

func appendAck(b []byte, a *ack, asked wire.Versions) []byte {
	b = wire.AppendU64(wire.AppendU64(peer.AppendID(b, a.from), a.clusterID), a.birth)
	if asked.Newest > 1 {
		b = wire.AppendString(wire.AppendU16(b, a.version), "")
	}
	return b
}

// parseAck reads the answer to a hello that offered the versions asked; one that chose another is refused.
func parseAck(body []byte, asked wire.Versions) (a ack, err error) {
	r := wire.NewReader(wire.KindHelloAck, body)
	a = ack{version: 1, from: peer.ReadID(&r), clusterID: r.U64(), birth: r.U64()}
	if asked.Newest > 1 {
		a.version = r.U16()
		r.Bytes(maxTail)
	}
	if r.Err() == nil && (a.from.Addr.IsZero() || a.from.Inc == 0 || a.version < asked.Oldest ||
		a.version > asked.Newest) {
		r.Fail(wire.ErrBadValue)
	}
	return a, r.Done()
}

// appendRefusal writes the body of a refusal, as the acceptor sees it: u8 reason, key, the dialler's value, the
// acceptor's value. This layout holds for every wire version.
func appendRefusal(b []byte, e *RefusedError) []byte {
	b = wire.AppendU8(b, uint8(e.Reason))
	b = wire.AppendString(b, clip(e.Key))
	b = wire.AppendString(b, clip(e.Ours))
	return wire.AppendString(b, clip(e.Theirs))
}

func clip(s string) string { return s[:min(len(s), MaxSettingSize)] }

func parseRefusal(body []byte) (*RefusedError, error) {
	r := wire.NewReader(wire.KindHelloRefuse, body)
	e := &RefusedError{Reason: Refusal(r.U8()), Key: r.String(MaxSettingSize), Ours: r.String(MaxSettingSize),
		Theirs: r.String(MaxSettingSize)}
	if r.Err() == nil && e.Reason == RefusedNone {
		r.Fail(wire.ErrBadValue)
	}
	return e, r.Done()
}

// acceptor is what a hello is judged by.
type acceptor struct {
	self      peer.ID
	name      string
	clusterID uint64
	birth     uint64 // of the cluster, told beside its id
	settings  []Setting
	window    int
	closing   bool
}

// judge returns why the acceptor refuses h, with both values in the dialler's words, or nil.
func (a *acceptor) judge(h *hello) *RefusedError {
	refuse := func(r Refusal, key, ours, theirs string) *RefusedError {
		return &RefusedError{Reason: r, Key: key, Ours: ours, Theirs: theirs}
	}
	switch {
	case a.closing:
		return refuse(RefusedGoingDown, "", "", "")
	case h.name != a.name:
		return refuse(RefusedName, "cluster name", h.name, a.name)
	case h.from == a.self:
		return refuse(RefusedSelf, "", "", "")
	case h.from.Addr == a.self.Addr:
		return refuse(RefusedSelf, "node at "+a.self.Addr.String(), hexText(h.from.Inc), hexText(a.self.Inc))
	case h.toInc != 0 && h.toInc != a.self.Inc:
		return refuse(RefusedIncarnation, "incarnation at "+a.self.Addr.String(), hexText(h.toInc), hexText(a.self.Inc))
	case h.clusterID != 0 && a.clusterID != 0 && h.clusterID != a.clusterID:
		theirs := hexText(a.clusterID)
		if a.birth != 0 {
			theirs += "/" + hexText(a.birth)
		}
		return refuse(RefusedCluster, "cluster id", hexText(h.clusterID), theirs)
	case h.lane == wire.LaneData && (h.window == 0 || int64(h.window) > int64(a.window)):
		return refuse(RefusedSetting, "window", strconv.Itoa(int(h.window)), strconv.Itoa(a.window))
	}
	for _, mine := range a.settings {
		for _, its := range h.settings {
			if mine.Key == its.Key && mine.Value != its.Value {
				return refuse(RefusedSetting, mine.Key, its.Value, mine.Value)
			}
		}
	}
	return nil
}

// judgeBroken returns the refusal for a hello that did not parse.
func judgeBroken(h *hello, err error, speaks wire.Versions) *RefusedError {
	switch {
	case errors.Is(err, wire.ErrBadMagic):
		return &RefusedError{Reason: RefusedMagic}
	case errors.Is(err, wire.ErrBadWire):
		return &RefusedError{Reason: RefusedVersion, Key: "wire version", Ours: h.versions.String(), Theirs: speaks.String()}
	}
	return &RefusedError{Reason: RefusedMalformed, Key: "hello", Ours: err.Error(), Theirs: "well-formed"}
}

func hexText(v uint64) string { return strconv.FormatUint(v, 16) }
