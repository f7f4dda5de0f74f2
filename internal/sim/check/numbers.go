// The check of up-numbers: a number is the term of a coordinator, so nobody may ever bear that of another.

package check

import (
	"slices"

	"github.com/kith-io/kith/internal/core/partition"
	"github.com/kith-io/kith/internal/sim/world"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
)

// upKey is an up-number of one cluster: no two members may ever have it.
type upKey struct {
	cluster uint64
	number  uint32
}

// distinct: no view gives one number to two members, not even the view of one that is Down elsewhere. It may where each
// was given it on a side of its own, by a strategy that lets both live: those that the two sides let in may meet.
func (c *Checker) distinct(p *world.Process, v *membership.View) {
	c.numbers = c.numbers[:0]
	for i := range v.Members {
		if n := v.Members[i].UpNumber; n != 0 {
			c.numbers = append(c.numbers, n)
		}
	}
	slices.Sort(c.numbers)
	for i := 1; i < len(c.numbers); i++ {
		if c.numbers[i] == c.numbers[i-1] && !bearAll(v, c.numbers[i], c.ups[upKey{v.ClusterID, c.numbers[i]}]) {
			c.Violate(p, "up-number", "two members of one view bear number %d", c.numbers[i])
		}
	}
}

// bearAll reports whether all members of a view that bear a number are among these.
func bearAll(v *membership.View, number uint32, these []peer.ID) bool {
	return !slices.ContainsFunc(v.Members, func(m membership.Member) bool {
		return m.UpNumber == number && !slices.Contains(these, m.ID)
	})
}

// number: up-numbers are unique over the whole history, and never change while any process lives that knows of them: a
// number without a living witness may be given anew to its bearer, as another one. So may one that a leader gave while
// another one, for which it is Down, gave the next: see atOnce.
func (c *Checker) number(p *world.Process, v *membership.View, m *membership.Member) {
	if m.UpNumber == 0 {
		if m.Status == membership.Up {
			c.Violate(p, "up-number", "%s is up without a number", c.w.Name(m.ID))
		}
		return
	}
	before := reportKey{p.ID, m.ID}
	last := c.shown[before]
	if last != m.UpNumber {
		c.gifts.shows(p, v, m, last)
	}
	if _, gone := c.gone[p.ID]; gone {
		return // what a leader that is Down elsewhere still gives, others have skipped; a process that hears of it is checked
	}
	c.shown[before] = m.UpNumber
	own := memberKey{v.ClusterID, m.ID}
	if old, ok := c.upOf[own]; ok && old == m.UpNumber {
		if !slices.Contains(c.knows[own], p) {
			c.knows[own] = append(c.knows[own], p)
		}
		return
	} else if ok && last == m.UpNumber {
		return // it claims nothing new: it may be the rest of a side that has lost
	} else if ok && c.saidByTheLost(p, m) {
		c.unique(p, v, m) // it came with the state of one that has lost, and goes when it meets the others
		return
	} else if ok && last < m.UpNumber && c.gifts.atOnce(v, m, old) {
		if m.UpNumber < old {
			c.unique(p, v, m) // it has not heard of the higher one yet
			return
		}
	} else if ok && slices.ContainsFunc(c.knows[own], func(q *world.Process) bool {
		w, member := v.Member(q.ID) // the lost one may have known it: that is why it was skipped
		return q.Alive && member && w.Status != membership.Down
	}) {
		c.Violate(p, "up-number", "%s had number %d and has %d now", c.w.Name(m.ID), old, m.UpNumber)
		return
	}
	// A number that only its giver knows, and that dies with it, was never given.
	if p.ID != m.ID && (c.gifts.claimed[m.ID].number != m.UpNumber || c.gifts.claimed[m.ID].by == p.ID) {
		c.gifts.claimed[m.ID] = claim{m.UpNumber, p.ID}
		return
	}
	c.unique(p, v, m)
	c.upOf[own], c.knows[own] = m.UpNumber, []*world.Process{p}
}

// unique: a number belongs to one member for ever. A strategy that lets both sides of a cut live has two leaders, and
// each gives numbers on its own when it has lost the other side. So do two that have joined a side each since, and have
// never heard of one another. An operator without a resolver may let two sides live as well.
func (c *Checker) unique(p *world.Process, v *membership.View, m *membership.Member) {
	key := upKey{v.ClusterID, m.UpNumber}
	for _, other := range c.ups[key] {
		q := c.w.ProcessOf(other)
		split := c.w.Splits() && (c.pairs.apart(p.ID, other) || strangers(v, q)) || overThere(v, q)
		if other != m.ID && !split {
			c.Violate(p, "up-number", "number %d of %s was given to %s", m.UpNumber, c.w.Name(other), c.w.Name(m.ID))
			delete(c.ups, key)
		}
	}
	if !slices.Contains(c.ups[key], m.ID) {
		c.ups[key] = append(c.ups[key], m.ID)
	}
}

// strangers reports whether a process and a view share no member that is not Down: they are of two sides.
func strangers(v *membership.View, q *world.Process) bool {
	if q == nil || q.View == nil {
		return false
	}
	return !slices.ContainsFunc(q.View.Members, func(m membership.Member) bool {
		ours, in := v.Member(m.ID)
		return in && m.Status != membership.Down && ours.Status != membership.Down
	})
}

// overThere reports whether a process and a view are of two sides, and one of these has proven that the tenure of a
// member of the other one is over. Without a resolver both go on when an operator downs members that live behind a cut,
// and hold most seats: the one that was proven over handles nothing, and lets newcomers in until it begins anew
// (tenure.md).
func overThere(v *membership.View, q *world.Process) bool {
	if q == nil || q.World.Resolves() || !strangers(v, q) {
		return false
	}
	over := func(m membership.Member) bool {
		return m.Status != membership.Down && q.World.Leases.Tenures.Over(m.ID)
	}
	return slices.ContainsFunc(v.Members, over) || slices.ContainsFunc(q.View.Members, over)
}

// ofTheOver reports whether a view is of a side that another one has proven over while it ran, as overThere says. The
// members that it has let in since bear numbers that the others have passed: when both sides meet, these hold them for
// removed and forgotten. They end, and begin anew (tenure.md).
func ofTheOver(v *membership.View, w *world.World) bool {
	return !w.Resolves() && slices.ContainsFunc(v.Members, func(m membership.Member) bool {
		p := w.ProcessOf(m.ID)
		return p != nil && (p.Alive || p.Ended != nil) && w.Leases.Tenures.Over(m.ID)
	})
}

// saidByTheLost reports whether one that is lost for others, and holds p for a member, gives m the number that p shows:
// a process that it lets in takes over what it says, and the others have skipped the number and given another one.
func (c *Checker) saidByTheLost(p *world.Process, m *membership.Member) bool {
	return slices.ContainsFunc(c.w.Processes, func(q *world.Process) bool {
		if _, lost := c.gone[q.ID]; !lost || q == p || q.View == nil {
			return false
		}
		_, ours := q.View.Member(p.ID)
		theirs, _ := q.View.Member(m.ID)
		return ours && theirs.UpNumber == m.UpNumber
	})
}

// tables: the partition table of a process never goes back, and no node hosts two instances of a partition.
func tables(v *membership.View, c *Checker, p *world.Process) {
	last := c.checked[p]
	for i := range v.Partitions {
		is := &v.Partitions[i]
		for slot, id := range is.Instances {
			if !id.IsZero() && is.SlotOf(id) != slot {
				c.Violate(p, "partition-twice", "%q is on %s twice", is.Path, c.w.Name(id))
			}
		}
		if last == nil {
			continue
		}
		if was := partition.Table(last.Partitions); len(was) > 0 {
			if k, ok := was.Find(is.Path); ok && (was[k].Epoch > is.Epoch || was[k].Version > is.Version) {
				c.Violate(p, "partition-back", "%q goes from epoch %d, version %d back to %d, %d", is.Path, was[k].Epoch,
					was[k].Version, is.Epoch, is.Version)
			}
		}
	}
}
