// Flaps: members that are lost and come back again and again, beside a side that heard itself all the while (MEM-10).
//
// What such members do keeps the picture from ever coming to rest. But the set of flappers comes to rest: once nobody
// has become one for as long as a picture must stand still when there is no time left, a side that lives without all of
// them downs them, and need not go itself.

package sbr

import (
	"slices"
	"time"

	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
)

// flap is that one member has accused another: until when, or that it still does.
type flap struct {
	membership.Accusation
	until time.Duration
	still bool
}

// flaps is the recent accusations, and the members that flap by them.
type flaps struct {
	said    []flap // sorted by observer, then subject
	who     peer.Set
	grownAt time.Duration // when a member became one of them last
	beside  bool          // when last looked, this node was none, and its side lived without them
	againAt time.Duration // when it looks again
}

// look takes a new view: it forgets an accusation that was withdrawn for as long as a picture must stand still, or when
// neither decision can down one of the two any more.
func (f *flaps) look(v *membership.View, now, rest time.Duration) {
	var said []flap
	old := f.said
	past := func(p flap) {
		if p.still {
			p.still, p.until = false, now
		}
		if speaks(v, p.Observer) && speaks(v, p.Subject) && now < p.until+rest {
			said = append(said, p)
		}
	}
	for _, a := range v.Accusations {
		for len(old) > 0 && compare(old[0].Accusation, a) < 0 {
			past(old[0])
			old = old[1:]
		}
		if len(old) > 0 && compare(old[0].Accusation, a) == 0 {
			old = old[1:]
		}
		if speaks(v, a.Observer) && speaks(v, a.Subject) {
			said = append(said, flap{Accusation: a, still: true})
		}
	}
	for _, p := range old {
		past(p)
	}
	f.said = said
	f.settle(v, now, rest)
}

// settle finds the members that flap now, and notes when one has become a flapper.
func (f *flaps) settle(v *membership.View, now, rest time.Duration) {
	who := f.pick(v, now, rest)
	if slices.ContainsFunc(who, func(id peer.ID) bool { return !f.who.Has(id) }) {
		f.grownAt = now
	}
	f.who = who
}

// pick takes members away until no member that is left has accused another of these: first those that never came Up,
// for they count on no side, then again and again all that most have accused. So what is left has heard itself.
func (f *flaps) pick(v *membership.View, now, rest time.Duration) (who peer.Set) {
	var said []flap
	for _, p := range f.said {
		if p.still || now < p.until+rest {
			said = append(said, p)
			for _, id := range [...]peer.ID{p.Observer, p.Subject} {
				if m, _ := v.Member(id); joins(m.Status) {
					who.Add(id)
				}
			}
		}
	}
	for {
		said = slices.DeleteFunc(said, func(p flap) bool { return who.Has(p.Observer) || who.Has(p.Subject) })
		if len(said) == 0 {
			return who
		}
		by, most := map[peer.ID]int{}, 0
		for _, p := range said {
			by[p.Subject]++
			most = max(most, by[p.Subject])
		}
		for _, p := range said {
			if by[p.Subject] == most {
				who.Add(p.Subject)
			}
		}
	}
}

// speaks reports whether a member may be downed by a decision: of others nothing that is said matters.
func speaks(v *membership.View, id peer.ID) bool {
	m, ok := v.Member(id)
	return ok && downable(m.Status)
}

// known reports whether a member was downed as a flapper, by one that is none: what was decided is what this node would
// have.
func (f *flaps) known(x *membership.Member) bool {
	return f.beside && f.who.Has(x.ID) && !f.who.Has(x.By) && x.Cause == membership.CauseUnstable
}

// compare orders accusations as views do.
func compare(a, b membership.Accusation) int {
	if c := a.Observer.Compare(b.Observer); c != 0 {
		return c
	}
	return a.Subject.Compare(b.Subject)
}
