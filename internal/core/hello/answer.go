// The answers to a hello: their codecs, and what a dialler makes of one.

package hello

import (
	"errors"
	"fmt"

	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// Ack is the answer of an acceptor that takes the connection: the version that both will speak, its identity, and its
// cluster (zero: not known yet).
//
//	id of the acceptor, u64 cluster id, u64 birth, u16 version chosen, then a tail as in the hello
//
// The answer to a hello of version 1 has neither the version, which is 1, nor the tail.
type Ack struct {
	Version   uint16
	From      peer.ID
	ClusterID uint64
	Birth     uint64
}

// AppendAck appends the body of the answer to a hello that offered the versions asked, and returns it.
func AppendAck(b []byte, a *Ack, asked wire.Versions) []byte {
	b = wire.AppendU64(wire.AppendU64(peer.AppendID(b, a.From), a.ClusterID), a.Birth)
	if asked.Newest > 1 {
		b = wire.AppendString(wire.AppendU16(b, a.Version), "")
	}
	return b
}

// ParseAck reads the body of the answer to a hello that offered the versions asked; one that chose another is refused.
// Every error is a *wire.Error.
func ParseAck(body []byte, asked wire.Versions) (a Ack, err error) {
	r := wire.NewReader(wire.KindHelloAck, body)
	a = Ack{Version: 1, From: peer.ReadID(&r), ClusterID: r.U64(), Birth: r.U64()}
	if asked.Newest > 1 {
		a.Version = r.U16()
		r.Bytes(maxTail)
	}
	if r.Err() == nil && (a.From.Addr.IsZero() || a.From.Inc == 0 || a.Version < asked.Oldest ||
		a.Version > asked.Newest) {
		r.Fail(wire.ErrBadValue)
	}
	return a, r.Done()
}

// AppendRefusal appends the body of a refusal, as the acceptor sees it, and returns it: u8 reason, key, the dialler's
// value, the acceptor's value. This layout holds for every wire version.
func AppendRefusal(b []byte, e *RefusedError) []byte {
	b = wire.AppendU8(b, uint8(e.Reason))
	b = wire.AppendString(b, clip(e.Key))
	b = wire.AppendString(b, clip(e.Ours))
	return wire.AppendString(b, clip(e.Theirs))
}

func clip(s string) string { return s[:min(len(s), MaxSettingSize)] }

// ParseRefusal reads the body of a refusal, as the dialler sees it; Peer is left for the caller to say. Every error is
// a *wire.Error, and a reason of a later version is no error.
func ParseRefusal(body []byte) (*RefusedError, error) {
	r := wire.NewReader(wire.KindHelloRefuse, body)
	e := &RefusedError{Reason: Refusal(r.U8()), Key: r.String(MaxSettingSize), Ours: r.String(MaxSettingSize),
		Theirs: r.String(MaxSettingSize)}
	if r.Err() == nil && e.Reason == RefusedNone {
		r.Fail(wire.ErrBadValue)
	}
	return e, r.Done()
}

// ErrNoAnswer says that a frame is no answer to a hello.
var ErrNoAnswer = errors.New("hello: no answer to a hello")

// Answer reads the frame that answers h, as its dialler sees it: what the acceptor says of itself, or an error: the
// *RefusedError with which it refuses, or with which this node refuses an incarnation that it did not mean; a
// *wire.Error for a body that does not parse; ErrNoAnswer for a frame of another kind.
func (h *Hello) Answer(kind wire.Kind, body []byte) (Ack, error) {
	to := peer.ID{Addr: h.To, Inc: h.ToInc}
	switch kind {
	case wire.KindHelloAck:
		a, err := ParseAck(body, h.Versions)
		if err != nil {
			return Ack{}, fmt.Errorf("answer of %s to the hello: %w", to, err)
		}
		if to.Inc != 0 && a.From.Inc != to.Inc {
			return Ack{}, &RefusedError{Peer: to, Reason: RefusedIncarnation, Key: "incarnation at " + to.Addr.String(),
				Ours: hexText(to.Inc), Theirs: hexText(a.From.Inc)}
		}
		return a, nil
	case wire.KindHelloRefuse:
		e, err := ParseRefusal(body)
		if err != nil {
			return Ack{}, fmt.Errorf("refusal by %s: %w", to, err)
		}
		e.Peer = to
		return Ack{}, e
	}
	return Ack{}, fmt.Errorf("answer of %s to the hello: %w: frame kind %s", to, ErrNoAnswer, kind)
}

// VersionOne is what a node offers to a peer that speaks nothing else: the hello of later versions is none to it.
var VersionOne = wire.Versions{Newest: 1, Oldest: 1}

// OnlyOne reports whether err is the refusal of a peer that speaks version 1 and no other, in which a node that speaks
// these versions can have a connection of that lane as well.
func OnlyOne(err error, speaks wire.Versions, lane wire.Lane) bool {
	var refused *RefusedError
	if !errors.As(err, &refused) || refused.Reason != RefusedVersion {
		return false
	}
	theirs, ok := wire.ParseVersions(refused.Theirs)
	return ok && theirs == VersionOne && speaks.Oldest == 1 && lane.Since() == 1
}
