// Twin: two clusters of one name that do not know of each other, found through the seeds (JOIN-1).

package membership

import (
	"fmt"
	"slices"
	"time"

	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// twinAgain is how long the same twin at the same seed is not told again.
const twinAgain = 10 * time.Minute

// OtherClusterCommand tells what the transport met at an address: a node of the same name in another cluster. Birth is
// zero when it is not known. It is worth an event when the address is a seed's; the two are never merged.
type OtherClusterCommand struct {
	Addr             peer.Addr
	ClusterID, Birth uint64
}

func (OtherClusterCommand) command() {}

// Twin is another cluster of this one's name: found at a seed, so probably one cluster that was formed twice.
type Twin struct {
	ClusterID, Birth uint64    // of the other one; Birth zero: not known
	Via              peer.Addr // the seed at which it was found
}

type twin struct {
	Twin
	again time.Duration // when to tell it again
}

// askSeed asks the next seed that is no member which cluster it belongs to. One at a time: a list of seeds that are
// gone must not cost a large cluster much.
func (m *Machine) askSeed() {
	if m.cfg.SeedCheckInterval < 0 || len(m.join.seeds) == 0 {
		return
	}
	m.in(timerSeedCheck, m.cfg.SeedCheckInterval)
	for range m.join.seeds {
		m.seedAt = (m.seedAt + 1) % len(m.join.seeds)
		if a := m.join.seeds[m.seedAt]; m.st.at(a).IsZero() {
			m.post(peer.ID{Addr: a}, wire.KindJoinProbe, func(b []byte) []byte { return wire.AppendU64(b, m.join.nonce) })
			return
		}
	}
}

// otherCluster takes note that a node at addr belongs to that cluster.
func (m *Machine) otherCluster(addr peer.Addr, cluster, birth uint64) {
	if m.phase != member || cluster == 0 || cluster == m.st.cluster || !slices.Contains(m.join.seeds, addr) {
		return
	}
	t := twin{Twin{cluster, birth, addr}, m.now + twinAgain}
	i := slices.IndexFunc(m.twins, func(o twin) bool { return o.Via == addr })
	switch {
	case i < 0:
		m.twins = append(m.twins, t)
	case m.twins[i].ClusterID == cluster && m.now < m.twins[i].again:
		return
	default:
		m.twins[i] = t
	}
	m.tell(Event{Kind: TwinCluster, Twin: &t.Twin, Detail: fmt.Sprintf("cluster %016x, birth %d, at seed %s; this is "+
		"cluster %016x, birth %d", cluster, birth, addr, m.st.cluster, m.st.birth)})
}
