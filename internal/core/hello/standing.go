// What a refusal tells: to strangers no identity that they did not name, to the removed how the cluster stands.

package hello

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// untold stands in a refusal for a value that its reader may not know.
const untold = "another"

// removedText is what a refusal calls a removed node; behind it stands the standing, if there is one.
const removedText = "removed"

// Standing is how many working members an acceptor's cluster has, and the address of the lowest of them; the zero value
// is not known. Where two sides removed each other, only one is to end.
type Standing struct {
	Up     uint32
	Lowest peer.Addr
}

// Removed is the refusal of an incarnation that the acceptor has removed.
func Removed(id peer.ID) *RefusedError {
	return &RefusedError{Reason: RefusedRemoved, Key: "member", Ours: id.String(), Theirs: removedText}
}

// Told is e as a dialler of those versions hears it; e stays as it is. proven says that the dialler's certificate is
// one of the cluster's. A dialler that has proved nothing may be any process: if it named another cluster or
// incarnation, it does not learn ours.
func (e *RefusedError) Told(to wire.Versions, proven bool, s Standing) *RefusedError {
	told := *e
	switch e.Reason {
	case RefusedName, RefusedIncarnation, RefusedSelf:
		if !proven && e.Theirs != "" {
			told.Theirs = untold
		}
	case RefusedRemoved:
		if s.Up > 0 {
			told.Theirs = fmt.Sprintf(removedText+": %d up, lowest %s", s.Up, s.Lowest)
		}
	}
	told.Reason = e.Reason.spoken(to)
	return &told
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

// Cluster returns the cluster that the acceptor of a refusal for another cluster is in; birth is zero when it did not
// say, and ok false when there is nothing to be understood.
func (e *RefusedError) Cluster() (id, birth uint64, ok bool) {
	if e.Reason != RefusedCluster {
		return 0, 0, false
	}
	first, second, told := strings.Cut(e.Theirs, "/")
	id, err := strconv.ParseUint(first, 16, 64)
	if err == nil && told {
		birth, err = strconv.ParseUint(second, 16, 64)
	}
	if err != nil {
		return 0, 0, false
	}
	return id, birth, true
}
