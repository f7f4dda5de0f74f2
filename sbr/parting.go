// Parting: members that leave count until all may know that they are gone (MEM-10).
//
// The leader makes a Leaving member Exiting once all have seen that it leaves, and removes it once all have seen that
// it exits. So a member that is Leaving here may be Exiting elsewhere and not removed; one that is Exiting here may be
// removed elsewhere, or Leaving still. A side counts those at hand that are Leaving, and in the worst case those out of
// reach that are Exiting: then each of two sides counts such a member where it is.

package sbr

import (
	"slices"

	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
)

// parting is what a node must know to count leaving members.
type parting struct {
	aware   peer.Set // Exiting members that have confirmed a state in which they are
	older   peer.Set // nodes of an older build: members, and those that have not come yet
	watched peer.Set // members that have to see the newest state
}

// maxOlder bounds how many nodes of older builds are kept; when there are more, every member may be one.
const maxOlder = 1024

// look takes a new view after old, in which these are accused.
func (p *parting) look(old, v *membership.View, accused peer.Set) {
	p.aware = slices.DeleteFunc(p.aware, func(id peer.ID) bool {
		x, ok := v.Member(id)
		return !ok || x.Status != membership.Exiting
	})
	p.older = slices.DeleteFunc(p.older, func(id peer.ID) bool {
		_, was := old.Member(id)
		_, is := v.Member(id)
		return was && !is
	})
	p.watched = append(p.watched[:0], accused...)
	for i := range v.Members {
		if x := &v.Members[i]; x.Status == membership.Exiting && !p.aware.Has(x.ID) {
			p.watched.Add(x.ID)
		}
	}
}

// confirms notes that a member has seen the state of a view: an exiting member that sees its own exit spreads it to all
// that it reaches.
func (p *parting) confirms(v *membership.View, id peer.ID) {
	if x, ok := v.Member(id); ok && x.Status == membership.Exiting {
		p.aware.Add(id)
	}
}

// isOlder notes that a node runs an older build.
func (p *parting) isOlder(id peer.ID) {
	if len(p.older) < maxOlder {
		p.older.Add(id)
	}
}

// mixed reports whether a member may run an older build.
func (p *parting) mixed(v *membership.View) bool {
	return len(p.older) == maxOlder || slices.ContainsFunc(p.older, func(id peer.ID) bool {
		_, is := v.Member(id)
		return is
	})
}
