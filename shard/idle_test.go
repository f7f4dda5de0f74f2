// What a node that has nothing to do costs.

package shard

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestIdleStepsAllocateNothing holds that a step of a coordinator with members to serve and nothing to say leaves no
// garbage: a node steps at every frame of control mail that comes.
func TestIdleStepsAllocateNothing(t *testing.T) {
	w := startWorld(t, 3)
	w.registerAll(orders)
	for _, n := range w.nodes {
		n.want(orders, all(orders)...)
	}
	w.flow()
	w.pass(10 * time.Second)
	w.agree(orders, all(orders)...)
	for _, n := range w.nodes {
		var e Effects
		now := w.now
		require.Zero(t, testing.AllocsPerRun(100, func() {
			now += time.Microsecond
			n.m.Tick(now)
			n.m.Drain(&e)
		}))
	}
}
