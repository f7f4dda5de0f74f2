// Pictures: what a healthy core sees of the others, and how long it may take to make something of it.

package check

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kith-io/kith/internal/core/node"
	"github.com/kith-io/kith/internal/sim/world"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/sbr"
)

// sees notes when the picture of a process last changed: what its resolver counts, also that others do not hear it, or
// hear it again.
func (k *Core) sees(p *world.Process, v *membership.View) {
	if !k.on {
		return
	}
	old := k.c.checked[p]
	moved := old == nil || !v.Unreachable.Equal(old.Unreachable) || accused(v, v.Self) != accused(old, v.Self)
	for i := 0; i < len(v.Members) && !moved; i++ {
		was, ok := old.Member(v.Members[i].ID)
		st := v.Members[i].Status
		moved = (!ok || was.Status != st) && (st == membership.Up || st == membership.Exiting || st == membership.Down)
	}
	if moved {
		k.still[p.ID] = k.c.w.Now
	}
	if !anyAccused(v) {
		delete(k.older, p.ID)
	}
	if old != nil {
		k.hears(p, v, old)
		k.misses(p, v, old)
	}
}

// hears notes when a process hears one again that others still accuse, and when it gets to know that one more does not
// hear, or hears again, a process that was lost for others and may have confirmed what is said of it: a living one, one
// that p heard until now, which it cannot know to have died, what follows such a word soon, and, when the word is its
// own, any (storm 12100007052).
func (k *Core) hears(p *world.Process, v, old *membership.View) {
	changes := func(a membership.Accusation) {
		x, now := k.c.w.ProcessOf(a.Subject), k.c.w.Now
		if x == nil || !v.Unreachable.Has(a.Subject) || !old.Unreachable.Has(a.Subject) {
			return
		}
		heard := !slices.Contains(old.Accusations, membership.Accusation{Observer: p.ID, Subject: a.Subject})
		if last, ok := k.rows[p.ID]; x.Alive || heard || ok && now < last+k.spread(p) {
			k.rows[p.ID] = now
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
// it hears has heard again, or one with a word against it that has come here on another way. Whether that one lives, or
// was back for a moment only, others may not have said yet. It has to stop when the takeover time asks for it.
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

// stops gets every process that suspends itself. It may for a while when its picture has just changed, when it may be
// indirectly connected, when others wait for one that has slept, and when nobody asks for the lease, or nobody may in
// time. That it goes on is for progress to say.
func (k *Core) stops(p *world.Process, why string) {
	if k.on && k.set && k.sound[p.Index] && strings.Contains(why, "overslept") {
		k.slept = k.c.w.Now
	}
	if watched := k.on && k.set && !slices.Contains(k.naps, true); !watched {
		return
	}
	age, rows := k.c.w.Now-k.still[p.ID], k.c.w.Now-k.rows[p.ID]
	if age >= k.calm(p) && rows >= k.spread(p) && !k.between(p) && !k.unasked(p) {
		k.goes(p, p.ID, 0, fmt.Sprintf("it is suspended, its picture %v old: %s", age, why))
	}
}

// calm is for how long the picture of p has to stand still when there is no time left for the patience. Where not
// everybody watches everybody gossip has to bring what others have noticed.
func (k *Core) calm(p *world.Process) time.Duration {
	if len(p.View.Members) <= k.c.w.Config.Membership.WithDefaults().MonitoredBy+1 {
		return k.standsStill()
	}
	return k.standsStill() + k.spread(p)
}

// spread is how long all have to get to know and to confirm an accusation.
func (k *Core) spread(p *world.Process) time.Duration {
	return min(2*time.Second, k.c.w.Config.Resolver.StableFor(len(p.View.Members))/4)
}

// leaseWait is a decision that waits for the lease.
type leaseWait struct {
	on    bool
	later bool          // by one of the smaller side, which has to ask later
	at    time.Duration // when it was made
	stop  time.Duration // when its process has to stop if it has heard of no lease: the takeover time relies on it
	lost  bool          // a member that counts for the next decision is lost
	first time.Duration // since when
}

const (
	leaseLeast = time.Second            // in any case a process waits so long for the lease
	leaseTold  = 500 * time.Millisecond // how soon after it was asked for all of a side know its owner
	leaseDrift = 50 * time.Millisecond  // by how much clocks may differ meanwhile
)

// misses notes when the set lost for a process changed first: from then on the takeover time of others may run.
func (k *Core) misses(p *world.Process, v, old *membership.View) {
	x := k.waits[p.ID]
	if !anyAccused(v) {
		x.lost = false
		k.waits[p.ID] = x
		return
	}
	moved := !anyAccused(old)
	for i := 0; i < len(v.Unreachable) && !moved; i++ {
		moved = !old.Unreachable.Has(v.Unreachable[i])
	}
	for i := 0; i < len(old.Unreachable) && !moved; i++ {
		_, here := v.Member(old.Unreachable[i])
		moved = here && !v.Unreachable.Has(old.Unreachable[i])
	}
	if moved && !x.lost {
		x.lost, x.first = true, k.c.w.Now
		k.waits[p.ID] = x
	}
}

// anyAccused reports whether a process knows of a member that is not heard, itself included.
func anyAccused(v *membership.View) bool { return len(v.Unreachable) > 0 || accused(v, v.Self) }

// awaits notes whether a decision waits for the lease, and how long.
func (k *Core) awaits(p *world.Process, d *node.Decision) {
	now, x := k.c.w.Now, k.waits[p.ID]
	switch d.Lease {
	case sbr.LeasePending:
		stop := now + d.StableAfter*3/4
		if x.lost {
			stop = x.first + d.StableAfter*7/4
		}
		x = leaseWait{on: true, later: smaller(p.View, d), at: now, stop: max(stop, now+leaseLeast)}
	case sbr.LeaseAcquired: // its side gets to know that yet
		x.on, x.lost = false, false
	default:
		x = leaseWait{}
	}
	k.waits[p.ID] = x
}

// smaller reports whether a decision is one of the side with fewer that count, or with as many and without the lowest.
// Indirectly connected members make no side smaller.
func smaller(v *membership.View, d *node.Decision) bool {
	if len(d.Indirect) > 0 || d.Unreachable != d.Reachable {
		return len(d.Indirect) == 0 && d.Unreachable > d.Reachable
	}
	lowest := slices.IndexFunc(v.Members, func(m membership.Member) bool {
		return (m.Status == membership.Up || m.Status == membership.Leaving) && m.HasRole(d.Role)
	})
	return lowest >= 0 && d.Lost.Has(v.Members[lowest].ID)
}

// unasked reports whether a process waits for the lease in vain through no fault of its side: the one to ask for it is
// gone, or a fault has touched it, and nobody has noticed yet. No other may ask in its place: the lease may be its own
// by now. Or that one may not have asked yet.
func (k *Core) unasked(p *world.Process) bool {
	if !k.waits[p.ID].on {
		return false
	}
	for i := range p.View.Members {
		m := &p.View.Members[i]
		if m.Status == membership.Up && !p.View.Unreachable.Has(m.ID) {
			q := k.c.w.ProcessOf(m.ID)
			return q == nil || !q.Alive || !k.sound[q.Index] || k.tooEarly(p, q)
		}
	}
	return false
}

// tooEarly reports whether p has to stop by now, and q, which asks for its side, could not have the lease yet. The
// smaller side has to leave the other one time to ask. When it lost the last of the others long after the first, the
// takeover time leaves it less than that.
func (k *Core) tooEarly(p, q *world.Process) bool {
	now, asks := k.c.w.Now, k.waits[q.ID]
	delay := k.c.w.Config.Resolver.WithDefaults().LeaseDelay
	return asks.later && now < asks.at+delay+leaseTold && now >= k.waits[p.ID].stop-leaseDrift
}
