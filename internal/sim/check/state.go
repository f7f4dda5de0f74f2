// What the checkers demand of states and events: laws of the merge, births that stay, events that lead to the view.

package check

import (
	"slices"

	"github.com/kith-io/kith/internal/core/node"
	"github.com/kith-io/kith/internal/sim/world"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
)

// lawsEvery is after how many views the laws of the merge are put to three nodes.
const lawsEvery = 8

// laws: the states that nodes hold at one moment join as they must, whatever they are just now.
func (c *Checker) laws(p *world.Process) {
	c.viewed++
	if c.viewed%lawsEvery != 0 {
		return
	}
	var others [2]*world.Process
	at := p.Index
	for i := range others {
		for range c.w.Hosts {
			at = (at + 1) % len(c.w.Hosts)
			if q := c.w.Hosts[at].Process; q != nil && q.Alive {
				break
			}
		}
		if others[i] = c.w.Hosts[at].Process; others[i] == nil || !others[i].Alive {
			return
		}
	}
	c.lawful(p, node.Laws(p.Node.Node, others[0].Node.Node, others[1].Node.Node))
}

func (c *Checker) lawful(p *world.Process, err error) {
	if err != nil {
		c.Violate(p, "laws", "%v", err)
	}
}

// birth: a cluster has one birth, and a process stays in the cluster that took it in.
func (c *Checker) birth(p *world.Process, v *membership.View) {
	if v.ClusterID == 0 {
		return
	}
	if old, ok := c.births[v.ClusterID]; ok && old != v.Birth {
		c.Violate(p, "birth", "the cluster was born at %x, this view has %x", old, v.Birth)
	}
	c.births[v.ClusterID] = v.Birth
	if old := c.checked[p]; old != nil && old.ClusterID != 0 && old.ClusterID != v.ClusterID {
		c.Violate(p, "birth", "a member of cluster %x is in cluster %x now", old.ClusterID, v.ClusterID)
	}
}

// Replay: the last view with the events applied is the next one. Without a new view nothing about members happens.
func (c *Checker) Replay(p *world.Process, old, next *membership.View, events []membership.Event) {
	if old == nil {
		old = &membership.View{}
	}
	if next == nil {
		next = old
	}
	members, unreachable, leader := old.Members, old.Unreachable, old.Leader
	changed := false
	own := func() {
		if !changed {
			members, unreachable, changed = slices.Clone(members), unreachable.Clone(), true
		}
	}
	for i := range events {
		switch e := &events[i]; e.Kind {
		case membership.LeaderChanged:
			leader = e.Leader
		case membership.UnreachableMember:
			own()
			unreachable.Add(e.Member.ID)
		case membership.ReachableMember:
			own()
			unreachable.Remove(e.Member.ID)
		case membership.MemberRemoved:
			own()
			unreachable.Remove(e.Member.ID)
			members = slices.DeleteFunc(members, func(m membership.Member) bool { return m.ID == e.Member.ID })
		case membership.RoleLeaderChanged, membership.MetadataChanged, membership.PartitionsChanged:
		default:
			if !e.Kind.OfView() {
				continue
			}
			own()
			members = put(members, e)
		}
	}
	same := slices.EqualFunc(members, next.Members, func(a, b membership.Member) bool {
		return a.ID == b.ID && a.Status == b.Status && a.UpNumber == b.UpNumber
	})
	if !same || !slices.Equal(unreachable, next.Unreachable) || leader != next.Leader {
		c.Violate(p, "replay", "the events lead to %s, unreachable %d; the view is %s, unreachable %d",
			ViewText(c.w, &membership.View{Members: members, Leader: leader}), len(unreachable), ViewText(c.w, next),
			len(next.Unreachable))
	}
}

// put enters what an event says of a member.
func put(members []membership.Member, e *membership.Event) []membership.Member {
	at, ok := slices.BinarySearchFunc(members, e.Member.ID, func(m membership.Member, id peer.ID) int {
		return m.ID.Compare(id)
	})
	if !ok {
		return slices.Insert(members, at, e.Member)
	}
	members[at] = e.Member
	return members
}
