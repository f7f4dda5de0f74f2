// Listening: members that this node probes and does not judge, to know whether they are still there.

package fd

import (
	"slices"
	"time"

	"github.com/kith-io/kith/peer"
)

// maxAsked bounds to how many members a node listens that it does not watch; of more it knows what others say.
const maxAsked = 16

// asked is a member that is probed and not judged.
type asked struct {
	id   peer.ID
	last time.Duration // stamp of the newest sign of life, or when it was asked first; what was forgiven counts as heard
}

// listening holds the members that a node listens to, at most maxAsked.
type listening []asked

// follow listens to ids in place of those before; ids that were among them stay as they are.
func (l *listening) follow(now time.Duration, ids peer.Set) {
	*l = slices.DeleteFunc(*l, func(a asked) bool { return !ids.Has(a.id) })
	for _, id := range ids {
		if len(*l) == maxAsked {
			return
		}
		if !slices.ContainsFunc(*l, func(a asked) bool { return a.id == id }) {
			*l = append(*l, asked{id, now})
		}
	}
}

// heard notes a sign of life.
func (l listening) heard(id peer.ID, arrived time.Duration) {
	for i := range l {
		if l[i].id == id {
			l[i].last = max(l[i].last, arrived)
		}
	}
}

// forgive takes a time in which this node did not run out of every silence, up to now.
func (l listening) forgive(now, pause time.Duration) {
	for i := range l {
		l[i].last = max(l[i].last, min(l[i].last+pause, now))
	}
}
