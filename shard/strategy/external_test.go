// External by table: wishes, their versions and bounds, and which regions may be wished for (SHD-6).

package strategy

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
)

func TestExternalMovesByHand(t *testing.T) {
	v := sized(4, 1, 0)
	e := NewExternal(v.Shards)
	require.Empty(t, settle(t, e, v), "without a wish nothing moves")
	nobody := peer.MustAddr("10.9.9.9:1")
	require.NoError(t, e.Update(1, []Wish{{3, node(2).Addr}, {0, node(1).Addr}, {1, node(0).Addr}, {2, nobody}}))
	require.Equal(t, uint64(1), e.Version())

	moves, err := e.Rebalance(v)
	require.NoError(t, err)
	require.Equal(t, []Move{{0, node(0), node(1)}, {3, node(0), node(2)}}, moves)
	v.Moving = moves[:1]
	moves, err = e.Rebalance(v)
	require.NoError(t, err)
	require.Equal(t, []Move{{3, node(0), node(2)}}, moves, "a shard that moves is left alone")
	e.Limit = 1
	moves, err = e.Rebalance(v)
	require.NoError(t, err)
	require.Empty(t, moves)

	v.Regions[2].Draining = true
	for s, want := range map[route.ShardID]peer.ID{0: node(1), 3: node(1), 2: node(1), 4: node(1), 1: node(0)} {
		id, err := e.Allocate(v, s)
		require.NoError(t, err)
		require.Equal(t, want, id, "shard %d: wished for, or the fewest shards of those that may be chosen", s)
	}
}

// A wish is for an address: the eligible incarnation there has it.
func TestExternalFindsTheIncarnation(t *testing.T) {
	v := sized(1, 0, 0, 0)
	v.Regions[1].ID.Addr, v.Regions[2].ID.Addr = node(0).Addr, node(0).Addr
	v.Regions[1].ID.Inc, v.Regions[2].ID.Inc = 5, 9
	v.Regions[0].Unreachable, v.Regions[2].NotReady = true, true
	require.NoError(t, v.Validate())
	e := NewExternal(v.Shards)
	require.NoError(t, e.Update(1, []Wish{{0, node(0).Addr}}))
	id, err := e.Allocate(v, 0)
	require.NoError(t, err)
	require.Equal(t, v.Regions[1].ID, id)
}

// What is refused changes nothing: an older or equal version, a shard that is not there, one twice, too many.
func TestExternalRefuses(t *testing.T) {
	e := NewExternal(2)
	require.NoError(t, e.Update(5, []Wish{{0, node(0).Addr}, {1, node(1).Addr}}))
	for _, c := range []struct {
		version uint64
		wishes  []Wish
		want    error
	}{
		{5, []Wish{{0, node(2).Addr}}, ErrStaleVersion},
		{4, nil, ErrStaleVersion},
		{6, []Wish{{0, node(2).Addr}, {2, node(2).Addr}}, ErrBadWish},
		{6, []Wish{{0, node(2).Addr}, {0, node(3).Addr}}, ErrBadWish},
		{6, []Wish{{0, node(2).Addr}, {1, node(2).Addr}, {0, node(2).Addr}}, ErrBadWish},
		{6, []Wish{{route.NoShard, node(2).Addr}}, ErrBadWish},
	} {
		require.ErrorIs(t, e.Update(c.version, c.wishes), c.want)
		require.Equal(t, uint64(5), e.Version())
		require.Equal(t, []Wish{{0, node(0).Addr}, {1, node(1).Addr}}, e.Wishes())
	}
	require.NoError(t, e.Update(6, []Wish{{Shard: 0}}), "a wish is taken back")
	require.Equal(t, []Wish{{1, node(1).Addr}}, e.Wishes())
}
