// Tests of the takeover time: it grows with the cluster and shrinks late (MEM-10, SHD-9).

package node

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/shard"
)

func upView(self peer.ID, n int, converged bool) *membership.View {
	v := &membership.View{Self: self, Converged: converged}
	for i := range n {
		id := peer.ID{Addr: peer.MustAddr(fmt.Sprintf("10.0.0.%d:7355", i+1)), Inc: 1}
		v.Members = append(v.Members, membership.Member{ID: id, Status: membership.Up, UpNumber: uint32(i + 1)})
	}
	return v
}

func TestTakeoverFollowsTheCluster(t *testing.T) {
	self := peer.ID{Addr: peer.MustAddr("10.0.0.1:7355"), Inc: 1}
	n := New(Config{Self: self})
	at := func(now time.Duration, up int, converged bool) time.Duration {
		n.now = now
		n.follow(upView(self, up, converged))
		return n.TakeoverTime()
	}
	require.Equal(t, shard.DefaultTakeoverTime, at(0, 5, true))
	require.Equal(t, 20*time.Second+5250*time.Millisecond, at(time.Second, 6, true), "1.75 times 3 s more")
	require.Equal(t, 20*time.Second+5250*time.Millisecond, at(2*time.Second, 60, false), "only what all know counts")
	require.Equal(t, 60*time.Second+250*time.Millisecond, at(3*time.Second, 200, true))
	require.Equal(t, 60*time.Second+250*time.Millisecond, at(100*time.Second, 3, true), "those cut off decide by 200 still")
	require.Equal(t, 20*time.Second, at(124*time.Second, 3, true))

	n = New(Config{Self: self, Resolver: Resolver{Strategy: ResolverOff}, Shard: shard.Config{TakeoverTime: time.Second}})
	require.Equal(t, time.Second, at(0, 200, true))
	n = New(Config{Self: self, Resolver: Resolver{StableAfter: time.Minute}})
	require.Equal(t, 20*time.Second, at(0, 200, true), "as configured")
}
