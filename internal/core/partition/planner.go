// Planner: what a plan knows of the members, and how it changes a partition.

package partition

import (
	"slices"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/peer"
)

// fresh is an instance that this plan has found a node for: it may as well be another one.
type fresh struct{ partition, slot int }

// planner is one plan being made.
type planner struct {
	members []cluster.Member
	drain   peer.Set
	load    func(path string) int
	next    Table
	changed []bool // of the paths in next
	waits   []bool // a hand-off was pending, so what is defined waits
	loads   []int  // instances of each member when all changes are complete
	fresh   []fresh
	pending int // changes under way
	all     int // instances of all partitions
}

// change returns the partition in place i, with lists of its own, to be changed.
func (p *planner) change(i int) *cluster.Partition {
	is := &p.next[i]
	if !p.changed[i] {
		p.changed[i] = true
		is.Instances, is.Changes = slices.Clone(is.Instances), slices.Clone(is.Changes)
	}
	return is
}

// seal makes the next epoch of a partition that was changed.
func (p *planner) seal(is *cluster.Partition, writer uint32) {
	is.Epoch, is.Writer = is.Epoch+1, writer
	for k := range is.Changes {
		if c := &is.Changes[k]; c.Epoch == 0 {
			c.Epoch, c.Writer = is.Epoch, writer
		}
	}
	for n := len(is.Instances); n > 0 && is.Instances[n-1].IsZero(); n-- {
		is.Instances = is.Instances[:n-1]
	}
}

// index returns the place of a member, -1 for none.
func (p *planner) index(id peer.ID) int { return ordinal(p.members, id) }

func (p *planner) member(id peer.ID) *cluster.Member {
	if i := p.index(id); i >= 0 {
		return &p.members[i]
	}
	return nil
}

// lives reports whether id hosts what it is said to host: it is Up or Leaving.
func (p *planner) lives(id peer.ID) bool {
	m := p.member(id)
	return m != nil && (m.Status == cluster.Up || m.Status == cluster.Leaving)
}

// may reports whether id may host an instance of a partition from now on. While a hand-off of it is pending a role that
// changed meanwhile is not in force.
func (p *planner) may(id peer.ID, role string, waits bool) bool {
	m := p.member(id)
	return m != nil && m.Status == cluster.Up && (waits || m.HasRole(role))
}

// takes reports whether a member may be given an instance of a partition.
func (p *planner) takes(m *cluster.Member, role string) bool {
	return m != nil && m.Status == cluster.Up && m.HasRole(role) && !p.drain.Has(m.ID)
}

// eligible counts those that may, also those that drain: how many instances there should be does not change by that.
func (p *planner) eligible(role string) (n int) {
	for i := range p.members {
		if m := &p.members[i]; m.Status == cluster.Up && m.HasRole(role) {
			n++
		}
	}
	return n
}

// count changes what is counted of a member.
func (p *planner) count(id peer.ID, by int) {
	if i := p.index(id); i >= 0 {
		p.loads[i] += by
	}
}
