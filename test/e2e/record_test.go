// A first seed that is killed as a member comes up still knows it: real processes, sockets and directories (JOIN-1).

package e2e_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/internal/base/port"
)

// TestNextFencesOfALeaverWhoseClockWentBack: a node that leaves as the last of its cluster, and starts again in its
// directory when the clock shows an earlier time, forms a cluster with fences above the old ones (JOIN-1). The first
// one has the birth of a clock that is a day ahead, by MinBirth.
func TestNextFencesOfALeaverWhoseClockWentBack(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	life := func(name string, least uint64) (fence kith.Fence) {
		n := start(t, nil, kith.Config{Name: name, Directory: dir, MinBirth: least})
		fences := make(chan kith.Fence, 1)
		r, err := n.Register(kith.EntityType{Name: "x", Shards: 1, New: func(_ string, f kith.Fence) kith.Handler {
			fences <- f
			return &actor{receive: func(c *kith.Context, _ []byte) error { return c.Reply(nil) }}
		}})
		require.NoError(t, err)
		_, err = r.Ask(within(t), "a", nil)
		require.NoError(t, err)
		require.NoError(t, n.Leave(within(t)))
		return <-fences
	}
	ahead := uint64(time.Now().Add(24*time.Hour).UnixMilli()) << 20
	first := life("keep", ahead)
	require.Greater(t, first.Birth(), ahead)
	second := life("keep", 0)
	require.Positive(t, second.Compare(first), "%v after %v", second, first)
	third := life("anew", 0) // of another name: nobody of the old one is left
	require.Positive(t, third.Compare(second), "%v after %v", third, second)
}

// keeper is a process with one node, its own only seed, that keeps a record: it says its address, then its cluster.
func keeper(spec string) {
	addr, dir, _ := strings.Cut(spec, " ")
	n, err := kith.Start(context.Background(), kith.Config{Name: "keep", Listen: addr, Seeds: []string{addr},
		Directory: dir, Membership: quick(), Resolver: kith.Resolver{Strategy: kith.ResolverOff},
		Sharding: kith.Sharding{TakeoverTime: never}})
	if err != nil {
		panic(err)
	}
	fmt.Println(n.Addr())
	if err := n.Ready(context.Background()); err != nil {
		panic(err)
	}
	fmt.Printf("%016x\n", n.View().ClusterID)
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
	}
}

// TestFirstSeedKilledAsAMemberComesUp: a member that is up is in the record of the node that let it in (JOIN-1). So the
// process that follows one killed in that moment, and knows no other seed, joins the member instead of forming a second
// cluster.
func TestFirstSeedKilledAsAMemberComesUp(t *testing.T) {
	t.Parallel()
	spec := "keep " + port.Keep(t) + " " + t.TempDir()
	first := spawn(t, spec)
	cluster := first.line()
	other := start(t, nil, kith.Config{Name: "keep", Seeds: []string{first.addr}})
	awaitView(t, other, func(v *kith.View) bool { return v.CountUp() == 2 })
	first.kill()
	next := spawn(t, spec)
	require.Equal(t, first.addr, next.addr)
	require.Equal(t, cluster, next.line())
	require.Equal(t, cluster, fmt.Sprintf("%016x", other.View().ClusterID))
}
