// Tests of idle entities: what they cost while nobody sends them anything.

package e2e_test

import (
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
)

// "Blocking entities hold up themselves only and cost no goroutine while idle": a thousand that are in their handlers
// have a goroutine each, and when all have returned there are no more than the few
// that a node keeps for the next ones, though the entities live on. Those that are idle
// get none for a thousand others that are busy (SHD-5).
func TestIdleBlockingEntitiesHaveNoGoroutine(t *testing.T) {
	const entities = 1000
	enter, release := make(chan struct{}, entities), make(chan struct{})
	var region *kith.Region
	nodes := cluster(t, 1, nil, func(_ int, n *kith.Node) {
		region = register(t, n, kith.EntityType{Name: "x", Shards: 8, IdleAfter: time.Hour}, actor{
			receive: func(c *kith.Context, b []byte) error {
				if string(b) == "hold" {
					enter <- struct{}{}
					<-release
				}
				return c.Reply(nil)
			}})
	})
	ctx := within(t)
	for i := range 2 * entities {
		_, err := region.Ask(ctx, fmt.Sprint(i), nil)
		require.NoError(t, err)
	}
	live := func() (n int64, entities uint64) {
		s := nodes[0].Stats()
		return s.BusyEntities, s.Types[0].Entities
	}
	idle := func() bool {
		busy, living := live()
		return busy == 0 && living == 2*entities
	}
	eventually(t, idle, "all idle")
	base := runtime.NumGoroutine()
	require.Less(t, base, entities/4, "that many there are in all")
	var asked sync.WaitGroup
	for i := range entities {
		asked.Add(1)
		require.NoError(t, region.AskFunc(patience, fmt.Sprint(i), []byte("hold"), func(_ []byte, err error) {
			if err != nil {
				t.Error(err)
			}
			asked.Done()
		}))
	}
	for range entities {
		<-enter
	}
	require.GreaterOrEqual(t, runtime.NumGoroutine(), base+entities*9/10, "a handler that waits has one")
	require.Less(t, runtime.NumGoroutine(), base+entities*3/2, "and those that are idle have none")
	close(release)
	asked.Wait()
	eventually(t, idle, "all idle again")
	// A node keeps 64 for entities that are busy next.
	eventually(t, func() bool { return runtime.NumGoroutine() <= base+64 }, "no goroutine of an entity is left")
}
