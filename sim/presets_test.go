// What a preset of Config.Patience gives and what it costs, as docs/failover.md says it, in virtual time.

package sim

import (
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/internal/core/node"
	"github.com/kith-io/kith/internal/sim/check"
	"github.com/kith-io/kith/sim/setup"
)

var presets = []cluster.Patience{cluster.PatienceNormal, cluster.PatienceCalm, cluster.PatienceNoisy}

// TestPresetsSayWhatAnOutageCosts: the page's table of outages, by preset, to a tenth of a second (SHD-4, AVL-5).
func TestPresetsSayWhatAnOutageCosts(t *testing.T) {
	text, err := os.ReadFile("../docs/failover.md")
	require.NoError(t, err)
	kill := func(c *Cluster, owner int) { c.Crash(owner) }
	for _, o := range []outage{
		{name: "the owner is killed (kill -9)", n: 5, fail: kill},
		{name: "its machine dies, or is cut off", n: 5, fail: func(c *Cluster, owner int) { c.PowerOff(owner) }},
		{name: "the coordinator is killed, which owns the entity too", n: 5, coordinator: true, fail: kill},
		{name: "the owner is killed in a cluster of six", n: 6, fail: kill},
		{name: "the owner is killed in a cluster of ten", n: 10, fail: kill},
	} {
		row := "| " + o.name + " |"
		for _, p := range presets {
			most := time.Duration(0)
			for seed := range uint64(2) {
				most = max(most, o.cost(t, seed+1, With(func(c *Config) { c.Patience = p })))
			}
			row += fmt.Sprintf(" %.1f s |", most.Seconds())
		}
		require.Contains(t, string(text), row)
	}
}

// stalls lets one of five nodes stand still every six seconds, for half of longest to all of it, and returns how many
// ended in that time.
func stalls(t *testing.T, p cluster.Patience, longest, lasting time.Duration, seed uint64) (ended int) {
	rng := rand.New(rand.NewPCG(seed, uint64(longest)))
	w, _ := check.NewWorld(5, seed, setup.Config{Patience: p, Resolver: node.Resolver{}})
	for i := range w.Hosts {
		w.Start(i, w.Seeds([]int{0}))
		require.True(t, w.Until(patience, w.Converged))
	}
	w.Advance(20 * time.Second)
	for end := w.Now + lasting; w.Now < end; {
		w.Advance(time.Duration(rng.Int64N(int64(12 * time.Second))))
		if host := w.Hosts[rng.IntN(5)]; host.Process.Alive && !host.Process.Paused() {
			host.Process.Pause(longest/2 + time.Duration(rng.Int64N(int64(longest/2))))
		}
		for i, h := range w.Hosts {
			if !h.Process.Alive {
				ended++
				w.Start(i, w.Seeds([]int{0, 1, 2, 3, 4}))
			}
		}
	}
	require.Empty(t, checks(w).Violations)
	w.End()
	return ended
}

// TestStallsThatCostNothing: nobody ends while stalls stay below what the preset bears (AVL-2). The first length beyond
// it that ends somebody stands in the page, too.
func TestStallsThatCostNothing(t *testing.T) {
	text, err := os.ReadFile("../docs/failover.md")
	require.NoError(t, err)
	lasting := 20 * time.Minute
	if testing.Short() {
		lasting = 5 * time.Minute
	}
	for _, longest := range []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second, 4 * time.Second,
		8 * time.Second} {
		row := fmt.Sprintf("| %v |", longest)
		for _, p := range presets {
			row += fmt.Sprintf(" %d |", stalls(t, p, longest, lasting, 1))
		}
		t.Log(row)
		if lasting == 20*time.Minute {
			require.Contains(t, string(text), row)
		}
	}
}
