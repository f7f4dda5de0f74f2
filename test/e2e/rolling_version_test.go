// A test of where shards go while the version of the application changes, node by node.

package e2e_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
)

// Two nodes of the old version host all shards, two of the next join, and nothing moves to them for balance meanwhile;
// the first of the old ones leaves: what it had lives at the new ones, and nothing more at the other old one (SHD-6,
// the reference's scenario F-R9).
func TestRollingUpdateMovesToTheNewVersion(t *testing.T) {
	t.Parallel()
	l := newLedger()
	versions := []string{"1.0.0", "1.0.0", "1.0.1", "1.0.1"}
	edit := func(i int, cfg *kith.Config) {
		cfg.AppVersion, cfg.Sharding.RebalanceInterval = versions[i], 20*time.Millisecond
	}
	regions := map[*kith.Node]*kith.Region{}
	registered := func(_ int, n *kith.Node) {
		r, err := n.Register(echoType("x", kith.Worker, l, func() *kith.Node { return n }))
		require.NoError(t, err)
		regions[n] = r
	}
	nodes := cluster(t, 2, edit, registered)
	all := func(r *kith.Region) {
		for i := range 256 { // so that each of the sixteen shards has a home
			_, err := r.Ask(within(t), fmt.Sprint("e", i), []byte("where"))
			require.NoError(t, err)
		}
	}
	all(regions[nodes[0]])
	hosted := func(i int) int { return nodes[i].Stats().Types[0].Hosted }
	require.Equal(t, []int{8, 8}, []int{hosted(0), hosted(1)})
	for i := 2; i < 4; i++ {
		cfg := kith.Config{Seeds: []string{nodes[1].Addr().String()}}
		edit(i, &cfg)
		nodes = append(nodes, start(t, logger(t), cfg))
		registered(i, nodes[i])
		awaitView(t, nodes[0], func(v *kith.View) bool { return v.CountUp() == i+1 })
		all(regions[nodes[i]])
	}
	require.Equal(t, []int{8, 8, 0, 0}, []int{hosted(0), hosted(1), hosted(2), hosted(3)}, "two versions: held")
	require.NoError(t, nodes[0].Leave(within(t)))
	all(regions[nodes[3]])
	require.Equal(t, 8, hosted(1), "nothing went to the old version")
	require.Equal(t, 8, hosted(2)+hosted(3))
	require.Equal(t, []int{4, 4}, []int{hosted(2), hosted(3)})
}
