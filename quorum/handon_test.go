// Tests of nodes that leave for good: their disks hand on what they have.

package quorum_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/quorum"
	"github.com/kith-io/kith/quorum/disk"
	"github.com/kith-io/kith/route"
)

// TestPlannedShrink: of five nodes one drains and leaves, then another one leaves, and a third dies right behind: all
// values, and all records, those of a shard that nobody owns among them, are there. A drain that is taken back has the
// disk read anew. Of three disks none can leave: the error says that two need it, and for how many shards (DYN-1).
func TestPlannedShrink(t *testing.T) {
	t.Parallel()
	c := newCluster(t, quorum.Store{Founders: 5, Timeout: time.Second, HandOn: true}, 5)
	f := route.MakeFence(1, 1, 1)
	shards := tenShards(c, f)
	keys := []string{"a", "b", "c", "d", "e", "f", "g", "h"}
	for i, key := range keys {
		c.eventually("a write", func() bool {
			_, err := c.values[i%5].Put(c.ctx, []byte(key), []byte(key), nil)
			return err == nil
		})
	}

	require.NoError(t, c.nodes[4].Drain(c.ctx))
	s := c.values[4].Stats()
	require.Equal(t, quorum.HandOn{Leaves: true}, s.HandOn)
	require.NoError(t, c.nodes[4].Undrain(c.ctx))
	c.eventually("it reads its groups", func() bool { return c.values[4].Stats().Lacking > 0 })
	c.ready()
	for _, i := range []int{4, 3} {
		require.NoError(t, c.nodes[i].Leave(c.ctx))
		require.NoError(t, c.values[i].Close())
		c.nodes[i], c.values[i] = nil, nil
	}
	c.eventually("the disks lose their places at once", func() bool { return c.values[0].Stats().Disks == 3 })
	c.kill(1)
	for _, key := range keys {
		c.eventually("a read", func() bool {
			r, err := c.values[0].Get(c.ctx, []byte(key))
			return err == nil && len(r.Values) > 0 && string(r.Values[0]) == key
		})
	}
	f = route.MakeFence(2, 1, 1)
	for _, sh := range shards {
		at := c.values[0].Fenced()
		c.eventually("a claim", func() bool { _, err := at.Claim(c.ctx, sh, f); return err == nil })
		c.eventually("a record", func() bool {
			got, err := at.Load(c.ctx, sh, f, "a")
			return err == nil && len(got) == 1 && string(got[0].State) == "1"
		})
	}
	c.start(1)
	c.ready()
	err := c.nodes[2].Leave(c.ctx)
	var needed *kith.NeededDisksError
	require.ErrorAs(t, err, &needed)
	require.ErrorIs(t, err, kith.ErrDisksNeeded)
	require.Equal(t, []disk.Needed{{Store: "values", Disks: 2, Shards: needed.Stores[0].Shards}}, needed.Stores)
	require.ErrorContains(t, err, `"values" by 2 disks`)
}

// TestDrainWaitsForDisks: a drain goes on when its context ends, and says what the disk is needed for; stores that are
// opened while the node drains hand on, too. Without Store.HandOn a leave does not wait (DYN-1).
func TestDrainWaitsForDisks(t *testing.T) {
	t.Parallel()
	c := newCluster(t, quorum.Store{Timeout: time.Second}, 3)
	ctx, stop := context.WithTimeout(c.ctx, 300*time.Millisecond)
	defer stop()
	err := c.nodes[0].Drain(ctx)
	require.ErrorIs(t, err, kith.ErrDisksNeeded)
	s := c.store
	s.Name, s.Engine = "late", quorum.Memory()
	v, err := quorum.Open(c.nodes[0], s)
	require.NoError(t, err)
	require.True(t, v.Stats().HandOn.Leaves)
	require.NoError(t, c.nodes[0].Undrain(c.ctx))
	require.NoError(t, c.nodes[0].Leave(c.ctx))
}
