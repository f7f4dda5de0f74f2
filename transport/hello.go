// The hello: the first frame of every connection, the two answers to it, and the judgement of an acceptor.

package transport

import (
	"errors"
	"strconv"

	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// WireVersion is the version of the wire protocol that this build speaks. A hello of another one is refused.
const WireVersion = 1

// Magic opens every hello body.
const Magic = "KITH"

// maxHelloFrame bounds a hello frame: all settings at their longest, and the fixed part.
const maxHelloFrame = MaxSettings*2*(MaxSettingSize+2) + 2048

// maxAnswerFrame bounds the answer to a hello.
const maxAnswerFrame = 4096

// hello is what a dialler says of itself and of whom it means.
//
//	"KITH", u16 wire version, u8 lane, u16 number, u32 generation, u32 window, u64 cluster id, u64 birth,
//	string cluster name, id of the dialler, address dialled, u64 incarnation meant (0: whoever),
//	varint number of settings, then key and value of each
type hello struct {
	version    uint16
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
}

func appendHello(b []byte, h *hello) []byte {
	b = append(b, Magic...)
	b = wire.AppendU16(b, h.version)
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
	return b
}

// parseHello reads a hello body. With wire.ErrBadWire only version is set: what follows may have another layout.
func parseHello(body []byte) (h hello, err error) {
	r := wire.NewReader(wire.KindHello, body)
	magic := r.Fixed(len(Magic))
	if r.Err() == nil && string(magic) != Magic {
		return h, &wire.Error{Kind: wire.KindHello, Err: wire.ErrBadMagic}
	}
	h.version = r.U16()
	if r.Err() == nil && h.version != WireVersion {
		return h, &wire.Error{Kind: wire.KindHello, Offset: len(Magic), Err: wire.ErrBadWire}
	}
	h.lane = wire.Lane(r.U8())
	if h.lane > wire.LaneData {
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
	if r.Err() == nil && (h.from.Addr.IsZero() || h.from.Inc == 0 || h.to.IsZero() || h.generation == 0) {
		r.Fail(wire.ErrBadValue)
	}
	if n := r.Count(2, MaxSettings); n > 0 {
		h.settings = make([]Setting, n)
		for i := range h.settings {
			h.settings[i] = Setting{Key: r.String(MaxSettingSize), Value: r.String(MaxSettingSize)}
		}
	}
	return h, r.Done()
}

// ack is the answer of an acceptor that takes the connection: who it is, and its cluster (zero: not known yet).
type ack struct {
	from      peer.ID
	clusterID uint64
	birth     uint64
}

func appendAck(b []byte, a *ack) []byte {
	return wire.AppendU64(wire.AppendU64(peer.AppendID(b, a.from), a.clusterID), a.birth)
}

func parseAck(body []byte) (a ack, err error) {
	r := wire.NewReader(wire.KindHelloAck, body)
	a = ack{from: peer.ReadID(&r), clusterID: r.U64(), birth: r.U64()}
	if r.Err() == nil && (a.from.Addr.IsZero() || a.from.Inc == 0) {
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
func judgeBroken(h *hello, err error) *RefusedError {
	switch {
	case errors.Is(err, wire.ErrBadMagic):
		return &RefusedError{Reason: RefusedMagic}
	case errors.Is(err, wire.ErrBadWire):
		return &RefusedError{Reason: RefusedVersion, Key: "wire version", Ours: strconv.Itoa(int(h.version)),
			Theirs: strconv.Itoa(WireVersion)}
	}
	return &RefusedError{Reason: RefusedMalformed, Key: "hello", Ours: err.Error(), Theirs: "well-formed"}
}

func hexText(v uint64) string { return strconv.FormatUint(v, 16) }
