// population: how many members there have been lately, by which the takeover time is measured.
//
// A cut-off owner stops by the patience of its resolver, which goes by the number of members that it knew. Why the
// number here is never smaller is argued in docs/split-brain.md ("Which number the other side can have used"). In
// short: whoever counted there has its up-number in views of this node too, or was removed lately, and the removed
// count for ten more minutes. The sum is too high after a rolling replacement, which costs waiting, never safety.

package shard

import (
	"time"

	"github.com/kith-io/kith/membership"
)

const (
	populationPart  = time.Minute // the removed are counted in parts of the window
	populationParts = 11          // ten whole parts, and the one that has begun
)

// population counts members with an up-number: those of the newest view and those that have gone in the last ten
// minutes.
type population struct {
	present int
	highest uint32               // highest up-number seen: there never were more members with one
	gone    [populationParts]int // by part of the window, a ring
	part    int64                // the newest part
}

// pass lets time pass: what went too long ago counts no more.
func (c *population) pass(now time.Duration) {
	part := int64(now / populationPart)
	for range min(part-c.part, populationParts) {
		c.part++
		c.gone[c.part%populationParts] = 0
	}
	c.part = max(c.part, part)
}

// note takes over a new view; old may be nil.
func (c *population) note(old, v *membership.View) {
	c.present = 0
	for i := range v.Members {
		if n := v.Members[i].UpNumber; n != 0 {
			c.present++
			c.highest = max(c.highest, n)
		}
	}
	if old == nil {
		return
	}
	for i := range old.Members {
		if _, still := v.Member(old.Members[i].ID); !still && old.Members[i].UpNumber != 0 {
			c.left()
		}
	}
}

// left counts one that has gone now.
func (c *population) left() { c.gone[c.part%populationParts]++ }

// members is how many there have been in the window.
func (c *population) members() int {
	n := c.present
	for _, g := range c.gone {
		n += g
	}
	return n
}

// Takeover returns how long a shard must wait whose owner is seen lost now, by the number of members lately.
func (m *Machine) Takeover() time.Duration { return m.takeover() }

// takeover is how long a shard must wait whose owner is seen lost now.
func (m *Machine) takeover() time.Duration {
	if m.cfg.TakeoverFor == nil {
		return m.cfg.TakeoverTime
	}
	return m.cfg.TakeoverFor(max(m.past.population.members(), 1))
}

// blindTakeover is the same for losses that this node may have missed: nobody tells it how many members there were, but
// never more than there are up-numbers.
func (m *Machine) blindTakeover() time.Duration {
	if m.cfg.TakeoverFor == nil {
		return m.cfg.TakeoverTime
	}
	return max(m.takeover(), m.cfg.TakeoverFor(int(m.past.population.highest)))
}
