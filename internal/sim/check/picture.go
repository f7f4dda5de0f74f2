// Pictures: what a healthy core sees of the others, and how long it may take to make something of it.

package check

import (
	"fmt"
	"slices"
	"time"

	"github.com/kith-io/kith/internal/sim/world"
	"github.com/kith-io/kith/membership"
)

// sees notes when the picture of a process last changed: what its resolver counts.
func (k *Core) sees(p *world.Process, v *membership.View) {
	if !k.on {
		return
	}
	old := k.c.checked[p]
	moved := old == nil || !v.Unreachable.Equal(old.Unreachable)
	for i := 0; i < len(v.Members) && !moved; i++ {
		was, ok := old.Member(v.Members[i].ID)
		st := v.Members[i].Status
		moved = (!ok || was.Status != st) && (st == membership.Up || st == membership.Exiting || st == membership.Down)
	}
	if moved {
		k.still[p.ID] = k.c.w.Now
	}
	if old != nil {
		k.hears(p, v, old)
	}
}

// hears notes when a process hears somebody again whom others still accuse, and when it gets to know that one more does
// not hear, or hears again, somebody who was lost for others and may have confirmed what is said of it: one who lives,
// and, when the word is its own, anyone.
func (k *Core) hears(p *world.Process, v, old *membership.View) {
	changes := func(a membership.Accusation) {
		x := k.c.w.ProcessOf(a.Subject)
		if x != nil && x.Alive && v.Unreachable.Has(a.Subject) && old.Unreachable.Has(a.Subject) {
			k.rows[p.ID] = k.c.w.Now
		}
	}
	for _, a := range old.Accusations {
		if !slices.Contains(v.Accusations, a) {
			if a.Observer == p.ID && v.Unreachable.Has(a.Subject) {
				k.back[a] = true
			}
			changes(a)
		}
	}
	for _, a := range v.Accusations {
		if a.Observer == p.ID {
			delete(k.back, a)
		}
		if !slices.Contains(old.Accusations, a) {
			changes(a)
			if a.Observer == p.ID && old.Unreachable.Has(a.Subject) {
				k.rows[p.ID] = k.c.w.Now // whether that one lives and may confirm it p cannot know
			}
		}
	}
}

// between reports whether a process may be indirectly connected as far as it knows: it accuses one that a member which
// it hears has heard again, or whose word against it has come here on another way. Whether that one lives, or was back
// for a moment only, others may not have said yet. It has to stop when the takeover time asks for it.
func (k *Core) between(p *world.Process) bool {
	said := p.View.Accusations
	return slices.ContainsFunc(said, func(a membership.Accusation) bool {
		if a.Observer != p.ID {
			return false
		}
		heard := func(m membership.Member) bool {
			return !p.View.Unreachable.Has(m.ID) && k.back[membership.Accusation{Observer: m.ID, Subject: a.Subject}]
		}
		return slices.Contains(said, membership.Accusation{Observer: a.Subject, Subject: p.ID}) ||
			slices.ContainsFunc(p.View.Members, heard)
	})
}

// standsStill is how long a picture stands still before nothing more is to be expected of what has happened.
func (k *Core) standsStill() time.Duration { return k.c.w.Config.Membership.SilenceBound() }

// stops is told of every process that suspends itself. It may for a while when its picture has just changed, when it
// may be indirectly connected, when somebody has slept, for whom others wait, and when nobody asks for the lease. That
// it goes on is for progress to say.
func (k *Core) stops(p *world.Process, why string) {
	if watched := k.on && k.set && !slices.Contains(k.naps, true); !watched {
		return
	}
	age, rows := k.c.w.Now-k.still[p.ID], k.c.w.Now-k.rows[p.ID]
	if age >= k.calm(p) && rows >= k.spread(p) && !k.between(p) && !k.unasked(p) {
		k.goes(p, p.ID, 0, fmt.Sprintf("it is suspended, its picture %v old: %s", age, why))
	}
}

// unasked reports whether a process waits for the lease, and who is to ask for it is gone, or a fault has touched it,
// and nobody has noticed yet. No other may ask in its place: the lease may be its own by now.
func (k *Core) unasked(p *world.Process) bool {
	if !k.waits[p.ID] {
		return false
	}
	for i := range p.View.Members {
		m := &p.View.Members[i]
		if m.Status == membership.Up && !p.View.Unreachable.Has(m.ID) {
			q := k.c.w.ProcessOf(m.ID)
			return q == nil || !q.Alive || !k.sound[q.Index]
		}
	}
	return false
}

// everybodyWatched is up to how many members each watches all others.
const everybodyWatched = 6

// calm is for how long the picture of p has to stand still when there is no time left for the patience. Where not
// everybody watches everybody gossip has to bring what others have noticed.
func (k *Core) calm(p *world.Process) time.Duration {
	if len(p.View.Members) <= everybodyWatched {
		return k.standsStill()
	}
	return k.standsStill() + k.spread(p)
}

// spread is how long all have to get to know and to confirm what is said of somebody.
func (k *Core) spread(p *world.Process) time.Duration {
	return min(2*time.Second, k.c.w.Config.Resolver.StableFor(len(p.View.Members))/4)
}
