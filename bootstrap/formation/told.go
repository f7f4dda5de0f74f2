// Told: an operator's word ends the search.

package formation

import (
	"slices"
	"time"

	"github.com/kith-io/kith/peer"
)

// Told says that an operator has given the node seeds to join. It ends the search: an attempt to form a cluster is
// given up, nothing is looked up, probed or promised any more. Of a member it means nothing.
func (m *Machine) Told(now time.Duration, seeds []peer.Addr) {
	m.begin(now)
	if m.stage == inCluster || m.stage == ordered && slices.Equal(m.given, seeds) {
		return
	}
	if m.claim.on() {
		m.giveUp()
	}
	m.release()
	m.stage, m.given, m.decision = ordered, slices.Clone(seeds), Decision{}
	m.out.LookUp, m.out.Probes, m.out.Join = false, m.out.Probes[:0], nil
}

// GoesOn says that this node's process goes on as another incarnation with seeds from an operator: Told follows with
// the seeds, and then Joined.
func (m *Machine) GoesOn(now time.Duration, self peer.ID) {
	m.Told(now, nil)
	m.cfg.Self, m.stage, m.cluster, m.given, m.seeds = self, ordered, 0, nil, nil
}
