// Laws: what the states of all machines must obey at one moment, for a checker that sees the whole cluster (MEM-4).

package members

import (
	"errors"
	"fmt"

	"github.com/kith-io/kith/gossip"
)

// ErrLaw is what laws returns, wrapped with the law that is broken.
var ErrLaw = errors.New("membership: a law of the state is broken")

// Laws demands of three states of one cluster what every run must keep: the merge is commutative, associative and
// idempotent, takes no member back and loses none but through a tombstone; one clock names one content; only members
// have seen. It costs several merges.
func Laws(a, b, c *State) error {
	for _, s := range [...]*State{a, b, c} {
		if s.Seen.Len() != len(s.Members) || s.Seen.Count() > len(s.Members) {
			return fmt.Errorf("%w: %d of %d members have seen", ErrLaw, s.Seen.Count(), len(s.Members))
		}
	}
	ab := mergeStates(a, b)
	switch {
	case a.Clock.Compare(b.Clock) == gossip.Same && a.Digest != b.Digest:
		return fmt.Errorf("%w: one clock names two contents", ErrLaw)
	case mergeStates(a, a).Digest != a.Digest:
		return fmt.Errorf("%w: merge is not idempotent", ErrLaw)
	case mergeStates(b, a).Digest != ab.Digest:
		return fmt.Errorf("%w: merge is not commutative", ErrLaw)
	case mergeStates(ab, c).Digest != mergeStates(a, mergeStates(b, c)).Digest:
		return fmt.Errorf("%w: merge is not associative", ErrLaw)
	}
	for i := range a.Members {
		m := &a.Members[i]
		_, dead := b.Tomb(m.ID)
		switch at := ab.Index(m.ID); {
		case dead != (at < 0):
			return fmt.Errorf("%w: %v is a member after the merge: %t, removed by one side: %t", ErrLaw, m.ID, at >= 0, dead)
		case at >= 0 && ab.Members[at].Status.Rank() < m.Status.Rank():
			return fmt.Errorf("%w: the merge takes %v from %s back to %s", ErrLaw, m.ID, m.Status, ab.Members[at].Status)
		}
	}
	return nil
}
