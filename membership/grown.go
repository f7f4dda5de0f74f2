// Grown: a converged cluster made at once, for simulations that are too large to be grown join by join.

package membership

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/gossip"
	"github.com/kith-io/kith/internal/core/members"
)

// ErrBadGrown is returned by NewGrown for members that no cluster could have, and by Begin for a node that is none of
// them or has joined already.
var ErrBadGrown = errors.New("membership: no such cluster")

// Grown is the state of a cluster of members that are all Up and have all seen it, as if each had joined and all had
// converged. It may be given to all machines of one simulation; they share it.
type Grown struct{ v *members.Version }

// NewGrown makes the state of a cluster. Of each member its identity, roles and application version count; they become
// Up in the given order. Both numbers must not be zero.
func NewGrown(clusterID, birth uint64, list []cluster.Member) (*Grown, error) {
	if clusterID == 0 || birth == 0 || len(list) == 0 || len(list) > cluster.MaxMembers {
		return nil, fmt.Errorf("%w: id %d, birth %d, %d members", ErrBadGrown, clusterID, birth, len(list))
	}
	s := members.NewState(members.Version{Cluster: clusterID, Birth: birth, HighestUp: uint32(len(list))})
	for i, m := range list {
		s.Members = append(s.Members, cluster.Member{ID: m.ID, Status: cluster.Up, UpNumber: uint32(i + 1),
			Roles: slices.Clone(m.Roles), AppVersion: m.AppVersion})
	}
	slices.SortFunc(s.Members, func(a, b cluster.Member) int { return a.ID.Compare(b.ID) })
	for i := range s.Members {
		id := s.Members[i].ID
		if id.Addr.IsZero() || id.Inc == 0 || i > 0 && s.Members[i-1].ID.Addr == id.Addr {
			return nil, fmt.Errorf("%w: member %s", ErrBadGrown, id)
		}
	}
	// Joining and becoming Up were two changes each, made by the leader.
	s.Clock = gossip.Clock{{ID: s.Members[0].ID, N: uint64(2 * len(list))}}
	return &Grown{s.Seal().Version}, nil
}

// Begin makes this node one of the members of g from now on, without a join. Only simulations use it. ErrBadGrown when
// the node is none of them, or has begun to join.
func (m *Machine) Begin(now time.Duration, g *Grown) error {
	m.begin(now, m.self)
	if m.phase != idle || !g.v.Has(m.self) {
		return fmt.Errorf("%w: %s cannot begin in it", ErrBadGrown, m.self)
	}
	s := g.v.SeenBy(gossip.NewSeen(len(g.v.Members)))
	for i := range g.v.Members {
		s.Seen.Add(i)
	}
	m.install(s, false)
	m.joining.admitted()
	m.settle()
	return nil
}
