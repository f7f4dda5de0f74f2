// Laws: what the states that machines hold at one moment must obey, for whoever watches a whole cluster (MEM-4).

package membership

import (
	"errors"
	"fmt"

	"github.com/kith-io/kith/gossip"
)

// ErrLaw is what laws returns, wrapped with the law that is broken.
var ErrLaw = errors.New("membership: a law of the state is broken")

// laws demands of three states of one cluster what every run must keep: the merge is commutative, associative and
// idempotent, takes nobody back and loses nobody but through a tombstone; one clock names one content; who has seen is
// a member. It costs several merges.
func laws(a, b, c *state) error {
	for _, s := range [...]*state{a, b, c} {
		if s.seen.Len() != len(s.members) || s.seen.Count() > len(s.members) {
			return fmt.Errorf("%w: %d of %d members have seen", ErrLaw, s.seen.Count(), len(s.members))
		}
	}
	ab := mergeStates(a, b)
	switch {
	case a.clock.Compare(b.clock) == gossip.Same && a.digest != b.digest:
		return fmt.Errorf("%w: one clock names two contents", ErrLaw)
	case mergeStates(a, a).digest != a.digest:
		return fmt.Errorf("%w: merge is not idempotent", ErrLaw)
	case mergeStates(b, a).digest != ab.digest:
		return fmt.Errorf("%w: merge is not commutative", ErrLaw)
	case mergeStates(ab, c).digest != mergeStates(a, mergeStates(b, c)).digest:
		return fmt.Errorf("%w: merge is not associative", ErrLaw)
	}
	for i := range a.members {
		m := &a.members[i]
		_, dead := b.tomb(m.ID)
		switch at := ab.index(m.ID); {
		case dead != (at < 0):
			return fmt.Errorf("%w: %v is a member after the merge: %t, removed by one side: %t", ErrLaw, m.ID, at >= 0, dead)
		case at >= 0 && ab.members[at].Status.Rank() < m.Status.Rank():
			return fmt.Errorf("%w: the merge takes %v from %s back to %s", ErrLaw, m.ID, m.Status, ab.members[at].Status)
		}
	}
	return nil
}
