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
	bounded := outlook{undecided: 20 * s}
	counted := 0
	count := func(peer.ID) int { counted++; return 7 * counted }
	var o Outages
	require.Empty(t, o.At(0))

	o.follow(10*s, view(false, id(1)), nil, bounded, count)
	want := Outage{Member: id(1), Since: 10 * s, Until: 30 * s, Shards: 7}
	require.Equal(t, []Outage{want}, o.At(11*s))
	require.Equal(t, []Outage{want}, o.At(99*s), "nobody has decided: it is not over")
	o.follow(12*s, view(false), nil, bounded, count)
	require.Empty(t, o.At(12*s), "it is heard again")

	o.follow(13*s, view(false, id(1), id(2)), nil, bounded, count)
	o.follow(18*s, view(true, id(1), id(2)), []shard.Loss{{ID: id(1), Since: 18 * s, Until: 35 * s}}, bounded, count)
	require.Equal(t, []Outage{
		{Member: id(1), Since: 13 * s, Decided: true, Until: 35 * s, Shards: 14},
		{Member: id(2), Since: 13 * s, Until: 33 * s, Shards: 21},
	}, o.At(20*s))
	require.Equal(t, 3, counted, "shards are counted once for each loss")
	require.Len(t, o.At(35*s), 1, "its time is over")

	o.follow(20*s, view(true), []shard.Loss{{ID: id(1), Since: 18 * s, Until: 35 * s, Proven: true}}, bounded, count)
	require.Empty(t, o.At(20*s), "its process is proven dead: nothing is waited for")

	o.follow(21*s, view(false, id(3)), nil, outlook{}, count)
	require.Equal(t, []Outage{{Member: id(3), Since: 21 * s, Shards: 28}}, o.At(22*s), "without a resolver")
}

// TestOutagesLastUntilTheyAreProven: where proof alone frees shards an outage lasts beyond its estimate, and says that
// it is late; without a quorum of seats nobody knows when it ends (AVL-5, MEM-10).
func TestOutagesLastUntilTheyAreProven(t *testing.T) {
	const s = time.Second
	lost := peer.ID{Addr: peer.MustAddr("10.0.0.1:1"), Inc: 1}
	v := &cluster.View{Members: []cluster.Member{{ID: lost, Status: cluster.Down}}}
	count := func(peer.ID) int { return 7 }
	var o Outages
	loss := []shard.Loss{{ID: lost, Since: 10 * s, Until: 13 * s}}
	want := Outage{Member: lost, Since: 10 * s, Decided: true, Until: 13 * s, Shards: 7, Proof: true}
	o.follow(10*s, v, loss, outlook{undecided: 3 * s, proof: true}, count)
	require.Equal(t, []Outage{want}, o.At(12*s))
	require.False(t, want.Late(12*s))
	require.Equal(t, []Outage{want}, o.At(99*s), "its estimate is over, and its end not proven")
	require.True(t, want.Late(99*s))
	o.follow(99*s, v, loss, outlook{undecided: 3 * s, proof: true}, count)
	require.Equal(t, []Outage{want}, o.At(99*s), "a new view changes nothing")

	loss[0].Until = 0
	want.Until, want.NoQuorum = 0, true
	o.follow(100*s, v, loss, outlook{proof: true, noQuorum: true}, count)
	require.Equal(t, []Outage{want}, o.At(101*s))
	require.False(t, want.Late(101*s), "there is no estimate")

	loss[0].Proven = true
	o.follow(102*s, v, loss, outlook{undecided: 3 * s, proof: true}, count)
	require.Empty(t, o.At(102*s), "its end is proven")
	undecided := Outage{Since: 10 * s, Until: 30 * s}
	require.True(t, undecided.Late(30*s), "nobody has decided in time")
}
