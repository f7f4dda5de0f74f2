// Gifts: the givers of up-numbers. Two leaders may each give a member one when the first is Down for the second.

package check

import (
	"slices"

	"github.com/kith-io/kith/internal/sim/world"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
)

// gifts are the up-numbers of all members, by their givers.
type gifts struct {
	claimed map[peer.ID]claim
	of      map[peer.ID][]gift // in the order in which they were shown first
}

// claim is an up-number that one process has shown so far.
type claim struct {
	number uint32
	by     peer.ID
}

// gift is an up-number that a member got.
type gift struct {
	cluster uint64
	number  uint32
	by      peer.ID   // the process that showed it first
	knew    bool      // the giver could have known that the member has another one: see couldKnow
	openly  []peer.ID // the giver, and all that heard of the number while the giver was a member for them
}

// shows notes that a process shows a number of a member, and had shown another one before, or none (0).
func (g *gifts) shows(p *world.Process, v *membership.View, m *membership.Member, before uint32) {
	list := g.of[m.ID]
	i := slices.IndexFunc(list, func(x gift) bool { return x.cluster == v.ClusterID && x.number == m.UpNumber })
	if i < 0 {
		knew := before != 0 || g.couldKnow(p, v, m)
		i, list = len(list), append(list, gift{cluster: v.ClusterID, number: m.UpNumber, by: p.ID, knew: knew})
		g.of[m.ID] = list
	}
	if x := &list[i]; holds(v, x.by) && !slices.Contains(x.openly, p.ID) {
		x.openly = append(x.openly, p.ID)
	}
}

// couldKnow reports whether the giver of a number could have known that the member has another one. A leader steps in a
// state that all on its side have seen. So it could not know of a lower one if all that heard of it openly are Down or
// removed there, the giver of that first. Nor could it know of a higher one if it is Down or removed itself for the
// giver of that.
func (g *gifts) couldKnow(p *world.Process, v *membership.View, m *membership.Member) bool {
	return slices.ContainsFunc(g.of[m.ID], func(x gift) bool {
		switch {
		case x.cluster != v.ClusterID:
			return false
		case x.number < m.UpNumber:
			return holds(v, x.by) || slices.ContainsFunc(x.openly, func(id peer.ID) bool { return holds(v, id) })
		}
		q := p.World.ProcessOf(x.by)
		return q == nil || q.View == nil || holds(q.View, p.ID)
	})
}

// atOnce reports whether two leaders gave a member two numbers, and the later one could not know of the other. The
// member may bear the lower one, and tell others, until it hears of the higher one. That stays: a merge takes it, and
// nobody else gets either.
func (g *gifts) atOnce(v *membership.View, m *membership.Member, other uint32) bool {
	var later gift
	found := 0
	for _, x := range g.of[m.ID] {
		if x.cluster == v.ClusterID && (x.number == other || x.number == m.UpNumber) {
			later = x
			found++
		}
	}
	return found == 2 && !later.knew
}

// holds reports whether a view has a member that is not Down.
func holds(v *membership.View, id peer.ID) bool {
	m, in := v.Member(id)
	return in && m.Status != membership.Down
}
