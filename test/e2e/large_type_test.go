// Tests of types with very many shards: what they cost follows what is used of them.

package e2e_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
)

// heapInUse returns the bytes of live objects.
func heapInUse() int64 {
	var m runtime.MemStats
	for range 3 { // what finalizers and pools keep goes with the second
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// A node that talks to a hundred shards of a type of a million pays for a hundred: as a proxy and where they live, the
// coordinator of the type included. With a place for each shard, as for small types, it is more than 200 MB on either.
func TestLargeTypeCostsWhatIsUsed(t *testing.T) {
	const shards, used = 1_000_000, 100
	nodes := cluster(t, 2, func(i int, cfg *kith.Config) {
		if i == 1 {
			cfg.Roles = []string{"host"}
		}
	}, nil)
	typ := kith.EntityType{Name: "large", Shards: shards, Role: "host"}
	answer := actor{receive: func(c *kith.Context, b []byte) error { return c.Reply(b) }}
	// What asks and connections hold once there were any is no part of it.
	warm := kith.EntityType{Name: "small", Shards: 1, Role: "host"}
	first := register(t, nodes[0], warm, answer)
	register(t, nodes[1], warm, answer)
	ask := func(r *kith.Region, id string) {
		_, err := r.Ask(within(t), id, nil)
		require.NoError(t, err)
	}
	for i := range used {
		ask(first, fmt.Sprint(i))
	}

	before := heapInUse()
	proxy := register(t, nodes[0], typ, answer)
	atProxy := heapInUse()
	register(t, nodes[1], typ, answer)
	ask(proxy, "first")
	atHost := heapInUse()
	for i := range used {
		ask(proxy, fmt.Sprint(i))
	}
	after := heapInUse()
	t.Logf("registered as proxy: %d bytes; registered and coordinated as host: %d; %d shards at both: %d", atProxy-before,
		atHost-atProxy, used, after-atHost)
	require.Less(t, atProxy-before, int64(256<<10), "registered as proxy")
	require.Less(t, atHost-atProxy, int64(512<<10), "registered and coordinated as host")
	require.Less(t, after-atHost, int64(1<<20), "a hundred shards at proxy, host and coordinator")
}
