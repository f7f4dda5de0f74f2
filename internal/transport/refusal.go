// What a refusal tells: to strangers no identity that they did not name, to the removed how the cluster stands.

package transport

import (
	"fmt"

	"github.com/kith-io/kith/peer"
)

// untold stands in a refusal for a value that its reader may not know.
const untold = "another"

// removedText is what a refusal calls one who was removed; behind it stands the standing, if there is one.
const removedText = "removed"

type standing struct {
	up     uint32
	lowest peer.Addr
}

// SetStanding has refusals of removed peers say how many working members this node's cluster has, and the address of
// the lowest of them: where two sides removed each other, only one is to end.
func (t *Transport) SetStanding(up uint32, lowest peer.Addr) {
	if old := t.standing.Load(); old == nil || old.up != up || old.lowest != lowest {
		t.standing.Store(&standing{up, lowest})
	}
}

// Standing returns how the side stands that refused this node as removed; ok is false when it did not say.
func (e *RefusedError) Standing() (up uint32, lowest peer.Addr, ok bool) {
	var at string
	if e.Reason != RefusedRemoved {
		return 0, lowest, false
	}
	if n, err := fmt.Sscanf(e.Theirs, removedText+": %d up, lowest %s", &up, &at); n != 2 || err != nil {
		return 0, lowest, false
	}
	lowest, err := peer.ParseAddr(at)
	return up, lowest, err == nil
}

// told is e as the dialler hears it. Without TLS it may be anybody: neither the name of the cluster nor an incarnation
// is told to one who named another.
func (t *Transport) told(e *RefusedError) *RefusedError {
	told := *e
	switch e.Reason {
	case RefusedName, RefusedIncarnation, RefusedSelf:
		if t.trust == nil && e.Theirs != "" {
			told.Theirs = untold
		}
	case RefusedRemoved:
		if s := t.standing.Load(); s != nil && s.up > 0 {
			told.Theirs = fmt.Sprintf(removedText+": %d up, lowest %s", s.up, s.lowest)
		}
	}
	return &told
}
