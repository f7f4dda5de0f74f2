// Tests of outages: what is reported of a member from its first accusation until its shards live elsewhere.

package node

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/shard"
)

// TestOutages: an accusation, its end, a decision, a removal, a proof of death; shards are counted once (AVL-5).
func TestOutages(t *testing.T) {
	const s = time.Second
	id := func(n uint64) peer.ID { return peer.ID{Addr: peer.MustAddr("10.0.0.1:1"), Inc: n} }
	view := func(down bool, unreachable ...peer.ID) *cluster.View {
		v := &cluster.View{Self: id(9), Unreachable: unreachable}
		for n := range uint64(3) {
			m := cluster.Member{ID: id(n + 1), Status: cluster.Up}
			if down && n == 0 {
				m.Status = cluster.Down
			}
			v.Members = append(v.Members, m)
		}
		return v
	}
	counted := 0
	count := func(peer.ID) int { counted++; return 7 * counted }
	var o Outages
	require.Empty(t, o.At(0))

	o.follow(10*s, view(false, id(1)), nil, 20*s, count)
	want := Outage{Member: id(1), Since: 10 * s, Until: 30 * s, Shards: 7}
	require.Equal(t, []Outage{want}, o.At(11*s))
	require.Equal(t, []Outage{want}, o.At(99*s), "nobody has decided: it is not over")
	o.follow(12*s, view(false), nil, 20*s, count)
	require.Empty(t, o.At(12*s), "it is heard again")

	o.follow(13*s, view(false, id(1), id(2)), nil, 20*s, count)
	o.follow(18*s, view(true, id(1), id(2)), []shard.Loss{{ID: id(1), Since: 18 * s, Until: 35 * s}}, 20*s, count)
	require.Equal(t, []Outage{
		{Member: id(1), Since: 13 * s, Decided: true, Until: 35 * s, Shards: 14},
		{Member: id(2), Since: 13 * s, Until: 33 * s, Shards: 21},
	}, o.At(20*s))
	require.Equal(t, 3, counted, "shards are counted once for each loss")
	require.Len(t, o.At(35*s), 1, "its time is over")

	o.follow(20*s, view(true), []shard.Loss{{ID: id(1), Since: 18 * s, Until: 35 * s, Proven: true}}, 20*s, count)
	require.Empty(t, o.At(20*s), "its process is proven dead: nothing is waited for")

	o.follow(21*s, view(false, id(3)), nil, 0, count)
	require.Equal(t, []Outage{{Member: id(3), Since: 21 * s, Shards: 28}}, o.At(22*s), "without a resolver")
}
