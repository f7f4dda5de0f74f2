// Laws: what the states that machines hold at one moment must obey, for whoever watches a whole cluster.

package membership

import (
	"errors"
	"fmt"

	"github.com/kith-io/kith/gossip"
)

// ErrLaw is what Laws returns, wrapped with the law that is broken.
var ErrLaw = errors.New("membership: a law of the state is broken")

// Laws demands of the states of three machines what every run must keep (MEM-4): the merge is commutative, associative
// and idempotent, takes nobody back and loses nobody but through a tombstone; one clock names one content; who has seen
// is a member. Machines without a state, of different clusters, or that have ended, are not compared: the last state of
// an ended one, without itself, is for its last view and is never sent. It reads the machines only, and
// costs several merges: for simulators and tests.
func Laws(a, b, c *Machine) error {
	for _, m := range [...]*Machine{a, b, c} {
		if m.st == nil || m.phase == ended || m.st.cluster != a.st.cluster {
			return nil
		}
		if m.st.seen.Len() != len(m.st.members) || m.st.seen.Count() > len(m.st.members) {
			return fmt.Errorf("%w: %d of %d members have seen", ErrLaw, m.st.seen.Count(), len(m.st.members))
		}
	}
	return stateLaws(a.st, b.st, c.st)
}

func stateLaws(a, b, c *state) error {
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
