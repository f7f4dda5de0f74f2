// The proof against the whole stack: random states of the directed links, and the survivors that the proof foretells.

package sim

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/core/node"
	"github.com/kith-io/kith/internal/sim/check"
	"github.com/kith-io/kith/internal/sim/proof"
	"github.com/kith-io/kith/sbr"
	"github.com/kith-io/kith/sim/setup"
)

// TestRandomLinks breaks links at random between five formed nodes and compares which live 40 s later, for each
// strategy, with what the proof says of that state (MEM-10). The lease has one winner, so there any of the foretold
// sides may be it.
func TestRandomLinks(t *testing.T) {
	for _, c := range proof.Strategies(5) {
		t.Run(c.Settings(), func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(7, uint64(c.Strategy)))
			foretold := proof.Foretold(5, c)
			for round := range 12 {
				state := rng.Uint32()
				for range round % 4 {
					state |= rng.Uint32()
				}
				state &= 1<<20 - 1
				require.Contains(t, foretold(state), survivorsOf(t, c, state, uint64(round+1)), "links %020b", state)
			}
		})
	}
}

// survivorsOf runs five nodes, gives them the proof's order of ages and its roles, and breaks their links.
func survivorsOf(t *testing.T, c sbr.Config, state uint32, seed uint64) uint32 {
	cfg := setup.Config{Resolver: node.Resolver(c), Roles: make([][]string, 5)}
	for i := range cfg.Roles {
		cfg.Roles[i] = proof.Roles(i)
	}
	w, _ := check.NewWorld(5, seed, cfg)
	w.Start(2, w.Seeds([]int{2})) // the oldest
	require.True(t, w.Until(patience, w.Converged))
	for _, i := range []int{3, 4, 0, 1} {
		w.Start(i, w.Seeds([]int{2}))
		require.True(t, w.Until(patience, w.Converged))
	}
	w.Advance(20 * time.Second)
	bit := 0
	for a := range 5 {
		for b := a + 1; b < 5; b++ {
			w.Net.Cuts[a][b], w.Net.Cuts[b][a] = state>>bit&1 == 0, state>>(bit+1)&1 == 0
			bit += 2
		}
	}
	w.Advance(40 * time.Second)
	var alive uint32
	for _, p := range w.Survivors() {
		alive |= 1 << p.Index
	}
	for _, v := range checks(w).Violations {
		t.Errorf("links %020b: %s", state, v)
	}
	w.End()
	return alive
}
