// Grown: a converged cluster made at once, for simulations that are too large to be grown join by join.

package membership

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/gossip"
)

// ErrBadGrown is returned by NewGrown for members that no cluster could have, and by Begin for a node that is none of
// them or has joined already.
var ErrBadGrown = errors.New("membership: no such cluster")

// Grown is the state of a cluster of members that are all Up and have all seen it, as if each had joined and all had
// converged. It may be given to all machines of one simulation; they share it.
type Grown struct{ v *version }

// NewGrown makes the state of a cluster. Of each member its identity, roles and application version count; they become
// Up in the given order. Both numbers must not be zero.
func NewGrown(clusterID, birth uint64, members []cluster.Member) (*Grown, error) {
	if clusterID == 0 || birth == 0 || len(members) == 0 || len(members) > cluster.MaxMembers {
		return nil, fmt.Errorf("%w: id %d, birth %d, %d members", ErrBadGrown, clusterID, birth, len(members))
	}
	s := newState(version{cluster: clusterID, birth: birth, highestUp: uint32(len(members))})
	for i, m := range members {
		s.members = append(s.members, cluster.Member{ID: m.ID, Status: cluster.Up, UpNumber: uint32(i + 1),
			Roles: slices.Clone(m.Roles), AppVersion: m.AppVersion})
	}
	slices.SortFunc(s.members, func(a, b cluster.Member) int { return a.ID.Compare(b.ID) })
	for i := range s.members {
		id := s.members[i].ID
		if id.Addr.IsZero() || id.Inc == 0 || i > 0 && s.members[i-1].ID.Addr == id.Addr {
			return nil, fmt.Errorf("%w: member %s", ErrBadGrown, id)
		}
	}
	// Joining and becoming Up were two changes each, made by the leader.
	s.clock = gossip.Clock{{ID: s.members[0].ID, N: uint64(2 * len(members))}}
	return &Grown{s.seal().version}, nil
}

// Begin makes this node one of the members of g from now on, without a join. Only simulations use it. ErrBadGrown when
// the node is none of them, or has begun to join.
func (m *Machine) Begin(now time.Duration, g *Grown) error {
	m.begin(now, m.self)
	if m.phase != idle || !g.v.has(m.self) {
		return fmt.Errorf("%w: %s cannot begin in it", ErrBadGrown, m.self)
	}
	s := g.v.seenBy(gossip.NewSeen(len(g.v.members)))
	for i := range g.v.members {
		s.seen.Add(i)
	}
	m.install(s, false)
	m.admitted()
	m.settle()
	return nil
}
