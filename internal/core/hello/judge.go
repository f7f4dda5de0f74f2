// The judgement of an acceptor: whether a hello that was read, or could not be, is let in.

package hello

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// Hear reads the first frame of an accepted connection. speaks is what the acceptor speaks. A refusal is to be
// answered; beside it stands what was understood of the hello, which may be nothing.
func Hear(kind wire.Kind, body []byte, speaks wire.Versions) (Hello, *RefusedError) {
	if kind != wire.KindHello {
		return Hello{}, &RefusedError{Reason: RefusedMagic}
	}
	h, err := Parse(body, speaks)
	if err != nil {
		return h, broken(&h, err, speaks)
	}
	if h.Number >= MaxConnections {
		return h, &RefusedError{Reason: RefusedMalformed, Key: "connection number", Ours: fmt.Sprint(h.Number),
			Theirs: fmt.Sprintf("below %d", MaxConnections)}
	}
	return h, nil
}

// broken returns the refusal for a hello that did not parse.
func broken(h *Hello, err error, speaks wire.Versions) *RefusedError {
	switch {
	case errors.Is(err, wire.ErrBadMagic):
		return &RefusedError{Reason: RefusedMagic}
	case errors.Is(err, wire.ErrBadWire):
		return &RefusedError{Reason: RefusedVersion, Key: "wire version", Ours: h.Versions.String(), Theirs: speaks.String()}
	}
	return &RefusedError{Reason: RefusedMalformed, Key: "hello", Ours: err.Error(), Theirs: "well-formed"}
}

// Acceptor is what a hello is judged by.
type Acceptor struct {
	Self      peer.ID
	Name      string // of the cluster
	ClusterID uint64 // zero: not known yet
	Birth     uint64 // of the cluster, said beside its id; zero: not known yet
	Speaks    wire.Versions
	Terms     []Term
	Window    int // largest that a dialler may have, bytes
	Closing   bool
}

// Judge returns why the acceptor refuses h, with both values in the dialler's words, or nil. It changes nothing.
func (a *Acceptor) Judge(h *Hello) *RefusedError {
	refuse := func(r Refusal, key, ours, theirs string) *RefusedError {
		return &RefusedError{Reason: r, Key: key, Ours: ours, Theirs: theirs}
	}
	switch {
	case a.Closing:
		return refuse(RefusedGoingDown, "", "", "")
	case h.Name != a.Name:
		return refuse(RefusedName, "cluster name", h.Name, a.Name)
	case h.From == a.Self:
		return refuse(RefusedSelf, "", "", "")
	case h.From.Addr == a.Self.Addr:
		return refuse(RefusedSelf, "node at "+a.Self.Addr.String(), hexText(h.From.Inc), hexText(a.Self.Inc))
	case h.ToInc != 0 && h.ToInc != a.Self.Inc:
		return refuse(RefusedIncarnation, "incarnation at "+a.Self.Addr.String(), hexText(h.ToInc), hexText(a.Self.Inc))
	case h.ClusterID != 0 && a.ClusterID != 0 && h.ClusterID != a.ClusterID:
		theirs := hexText(a.ClusterID)
		if a.Birth != 0 {
			theirs += "/" + hexText(a.Birth)
		}
		return refuse(RefusedCluster, "cluster id", hexText(h.ClusterID), theirs)
	case h.Lane == wire.LaneData && (h.Window == 0 || int64(h.Window) > int64(a.Window)):
		return refuse(RefusedSetting, "window", strconv.Itoa(int(h.Window)), strconv.Itoa(a.Window))
	}
	return a.differs(h)
}

// differs returns the refusal for the first term that h says otherwise, or nil.
func (a *Acceptor) differs(h *Hello) *RefusedError {
	joins := (h.ClusterID == 0) != (a.ClusterID == 0)
	for i := range a.Terms {
		mine := &a.Terms[i]
		if mine.Join && joins {
			continue
		}
		for _, its := range h.Settings {
			if mine.Key == its.Key && mine.Value != its.Value {
				return &RefusedError{Reason: RefusedSetting, Key: mine.Key, Ours: its.Value, Theirs: mine.Value}
			}
		}
	}
	return nil
}

// Elsewhere reports whether h, which was refused for that reason, comes from another cluster of the acceptor's name.
func (a *Acceptor) Elsewhere(h *Hello, why *RefusedError) bool {
	return (why.Reason == RefusedCluster || why.Reason == RefusedIncarnation) && h.ClusterID != 0 && a.ClusterID != 0 &&
		h.ClusterID != a.ClusterID
}

// Answer is what the acceptor says to a hello that it lets in.
func (a *Acceptor) Answer(h *Hello) Ack {
	version, _ := h.Versions.Common(a.Speaks)
	return Ack{Version: version, From: a.Self, ClusterID: a.ClusterID, Birth: a.Birth}
}

func hexText(v uint64) string { return strconv.FormatUint(v, 16) }
