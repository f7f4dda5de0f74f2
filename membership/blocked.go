// Blocked: why there is no convergence, which members are waited for and how long (GOS-3).

package membership

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/internal/core/members"
	"github.com/kith-io/kith/peer"
)

// A node says that convergence does not come after blockedAfter, and again each blockedAgain.
const (
	blockedAfter = 20 * time.Second
	blockedAgain = 60 * time.Second
)

// maxBlockers is how many blockers one report names, maxFollowed how many are followed for how long they block; the
// first by address. Convergence.Blocking counts all.
const (
	maxBlockers = 64
	maxFollowed = 256
)

// Blocker is a member that convergence waits for.
type Blocker struct {
	Member cluster.Member
	// Accusers are the members that hold it unreachable, sorted; empty: it is reachable and has not confirmed this
	// version.
	Accusers peer.Set
	// For is how long it has been in the way at a stretch, to the second.
	For time.Duration
}

// String says in words what is the matter with it.
func (b Blocker) String() string {
	why := "has not seen this state"
	if len(b.Accusers) > 0 {
		list := make([]string, len(b.Accusers))
		for i, id := range b.Accusers {
			list[i] = id.String()
		}
		why = "unreachable for " + strings.Join(list, ", ")
	}
	return fmt.Sprintf("%s (%s) %s since %v", b.Member.ID, b.Member.Status, why, b.For.Round(time.Second))
}

// Convergence says whether a node can prove that all members have seen its state, and if not, since when and why.
type Convergence struct {
	Converged bool
	For       time.Duration // how long there has been none; zero when Converged
	Blocking  int           // members in the way
	Blockers  []Blocker     // the first 64 of them by address; with the accusations and seen set of this node
}

// blocking follows a stretch without convergence, and says why there is none.
type blocking struct {
	*core

	on      bool
	since   time.Duration
	tellAt  time.Duration // when to say so next
	said    bool
	known   []blocked // members in the way, sorted by id, at most maxFollowed
	scratch []int
}

type blocked struct {
	id    peer.ID
	since time.Duration
}

// followConvergence notes the beginning or end of a stretch without convergence.
func (b *blocking) followConvergence(converged bool) {
	switch {
	case converged == !b.on || b.phase != member:
	case converged:
		if b.said {
			b.tell(Event{Kind: ConvergenceRestored, Convergence: &Convergence{Converged: true, For: b.now - b.since}})
		}
		b.on, b.since, b.tellAt, b.said, b.known = false, 0, 0, false, b.known[:0]
	default:
		b.on, b.since, b.tellAt, b.said = true, b.now, b.now+blockedAfter, false
	}
}

// watchConvergence refreshes which members are in the way, and reports it when that lasts.
func (b *blocking) watchConvergence() {
	if !b.on {
		return
	}
	b.scratch, _ = members.Blockers(b.st, b.self, maxFollowed, b.scratch[:0])
	old, next := b.known, make([]blocked, 0, len(b.scratch))
	for _, i := range b.scratch {
		id := b.st.Members[i].ID
		for len(old) > 0 && old[0].id.Less(id) {
			old = old[1:]
		}
		since := b.now
		if len(old) > 0 && old[0].id == id {
			since = old[0].since
		}
		next = append(next, blocked{id, since})
	}
	b.known = next
	if b.now >= b.tellAt {
		b.tellAt, b.said = b.now+blockedAgain, true
		c := b.convergence()
		b.tell(Event{Kind: ConvergenceBlocked, Convergence: &c})
	}
}

// convergence says which members are in the way, and how long there has been none.
func (b *blocking) convergence() Convergence {
	if b.phase != member {
		return Convergence{}
	}
	first, count := members.Blockers(b.st, b.self, maxBlockers, nil)
	c := Convergence{Converged: count == 0, Blocking: count}
	if !c.Converged && b.on {
		c.For = b.now - b.since
	}
	for _, i := range first {
		x := Blocker{Member: b.st.Members[i]}
		if x.Member.ID != b.self && b.st.Unreachable.Has(x.Member.ID) {
			x.Accusers = b.st.Accusers(x.Member.ID)
		}
		at, ok := slices.BinarySearchFunc(b.known, x.Member.ID, func(b blocked, id peer.ID) int {
			return b.id.Compare(id)
		})
		if ok {
			x.For = b.now - b.known[at].since
		}
		c.Blockers = append(c.Blockers, x)
	}
	return c
}
