// Tests of fenced records on real nodes: the laws of stores, and durable entities on the nodes' own disks.

package quorum_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/durable"
	core "github.com/kith-io/kith/internal/core/quorum"
	"github.com/kith-io/kith/quorum"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/store"
	"github.com/kith-io/kith/store/storetest"
)

// again ends all nodes, and starts them on their disks.
func (c *cluster) again() {
	for i := range c.nodes {
		c.kill(i)
	}
	for i := range c.nodes {
		c.start(i)
	}
	c.ready()
}

// TestFenced: fenced records on three nodes' disks keep the contract of package store (DYN-1).
func TestFenced(t *testing.T) {
	t.Parallel()
	c := newCluster(t, quorum.Store{}, 3)
	opens := 0
	storetest.Run(t, storetest.Engine{
		Open: func(*testing.T) store.Store {
			opens++
			return c.values[opens%len(c.values)].Fenced()
		},
		Again: func(*testing.T) { c.again() },
	})
}

// TestFencedLostDisk: of five nodes one loses its disk and another one is away: what was committed is there, the empty
// disk takes the place of the lost one, and then two others may die (DYN-1).
func TestFencedLostDisk(t *testing.T) {
	t.Parallel()
	c := newCluster(t, quorum.Store{Founders: 5, Timeout: time.Second}, 5)
	f := route.MakeFence(1, 1, 1)
	claim := func(i int, sh store.Shard, f route.Fence) {
		c.eventually("a claim", func() bool {
			_, err := c.values[i].Fenced().Claim(c.ctx, sh, f)
			return err == nil
		})
	}
	shards := make([]store.Shard, 10)
	for n := range shards {
		shards[n] = store.Shard{Type: "t", N: route.ShardID(n)}
		claim(0, shards[n], f)
		c.eventually("a commit", func() bool {
			return c.values[0].Fenced().Commit(c.ctx, shards[n], f, storetest.Put("a", 1, "1")) == nil
		})
	}
	c.kill(1)
	c.disks[1] = quorum.Memory()
	c.start(1)
	c.ready()
	c.eventually("the empty disk copies shards", func() bool { return c.values[1].Stats().Shards > 0 })
	held := func() (n int) {
		for _, v := range c.values {
			if v != nil {
				n += v.Stats().Shards
			}
		}
		return n
	}
	c.eventually("each shard has three replicas again", func() bool { return held() >= 3*len(shards) })
	c.kill(2)
	f = route.MakeFence(2, 1, 1)
	for _, sh := range shards {
		claim(4, sh, f)
		c.eventually("a read", func() bool {
			list, err := c.values[4].Fenced().Load(c.ctx, sh, f, "a")
			require.True(t, err != nil || len(list) == 1, "%v has %v", sh, list)
			return err == nil
		})
	}
}

type purse struct{ Coins int64 }

// TestDurableOnQuorum: durable entities with nothing beside the nodes: what was answered outlives the end of all of
// them, and a key has its effect once (DYN-1).
func TestDurableOnQuorum(t *testing.T) {
	t.Parallel()
	c := newCluster(t, quorum.Store{}, 3)
	var types []*durable.Entities[int64, int64]
	register := func() {
		types = nil
		for i, n := range c.nodes {
			e, err := durable.Register(n, durable.Type[purse, int64, int64]{Name: "purse", Shards: 4,
				Store: c.values[i].Fenced(), Handle: func(tx *durable.Tx[purse], add *int64) (int64, error) {
					tx.State.Coins += *add
					return tx.State.Coins, nil
				}})
			require.NoError(t, err)
			types = append(types, e)
		}
	}
	once := func(key string, want int64) {
		for i := range 8 {
			id, five := fmt.Sprint("anna", i), int64(5)
			var got int64
			c.eventually("an answer", func() (is bool) { // the key makes it safe to ask again
				var err error
				got, err = types[i%3].AskOnce(c.ctx, key, id, &five)
				return err == nil
			})
			require.Equal(t, want, got, id)
		}
	}
	register()
	once("first", 5)
	once("second", 10)
	once("first", 5)
	c.again()
	register()
	once("second", 10)
	once("third", 15)
	var sum quorum.Stats
	for _, n := range c.nodes {
		s := n.Stats().Values[0]
		sum.Shards, sum.Owners = sum.Shards+s.Shards, sum.Owners+s.Owners
		sum.Entries, sum.Commits = sum.Entries+s.Entries, sum.Commits+s.Commits
	}
	require.Positive(t, sum.Shards)
	require.Positive(t, sum.Owners)
	require.Positive(t, sum.Entries)
	require.GreaterOrEqual(t, sum.Commits, uint64(8))
}

// TestBackup: a disk that comes back from a backup is renewed: a new replica, which keeps what it has and reads the
// rest, and none of the records that it had (DYN-1).
func TestBackup(t *testing.T) {
	t.Parallel()
	c := newCluster(t, quorum.Store{Mode: quorum.Register, Timeout: time.Second}, 3)
	write := func(key, data string) {
		c.eventually("a write", func() bool {
			_, err := c.values[0].Put(c.ctx, []byte(key), []byte(data), nil)
			return err == nil
		})
	}
	sh, f := store.Shard{Type: "t"}, route.MakeFence(1, 1, 1)
	commit := func(version uint64) {
		c.eventually("a commit", func() bool {
			_, err := c.values[0].Fenced().Claim(c.ctx, sh, f)
			return err == nil && c.values[0].Fenced().Commit(c.ctx, sh, f, storetest.Put("a", version, "")) == nil
		})
	}
	write("old", "one")
	write("new", "one")
	commit(1)
	c.kill(2)
	backup := c.disks[2].(interface{ Copy() *core.MemoryEngine }).Copy()
	c.start(2)
	c.ready()
	write("new", "two")
	commit(2)
	c.kill(2)
	s := c.store
	s.Engine = quorum.Memory()
	require.ErrorIs(t, quorum.Renew(s), quorum.ErrDisk)
	s.Engine = backup
	require.NoError(t, quorum.Renew(s))
	c.disks[2] = backup
	c.start(2)
	c.ready()
	c.eventually("the records are copied", func() bool { return c.values[2].Stats().Shards > 0 })
	c.eventually("three disks", func() bool { return c.values[2].Stats().Disks == 3 && c.values[0].Stats().Disks == 3 })
	c.kill(1)
	for key, want := range map[string]string{"old": "one", "new": "two"} {
		c.eventually("a read", func() bool {
			r, err := c.values[2].Get(c.ctx, []byte(key))
			require.True(t, err != nil || len(r.Values) == 1 && string(r.Values[0]) == want, "%q: %q", key, r.Values)
			return err == nil
		})
	}
	f = route.MakeFence(2, 1, 1)
	c.eventually("a claim", func() bool {
		_, err := c.values[2].Fenced().Claim(c.ctx, sh, f)
		return err == nil
	})
	list, err := c.values[2].Fenced().Load(c.ctx, sh, f, "a")
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.EqualValues(t, 2, list[0].Version)
}

// tenShards returns shards with a record each, which the last two of five nodes have written under a fence.
func tenShards(c *cluster, f route.Fence) []store.Shard {
	shards := make([]store.Shard, 10)
	for n := range shards {
		shards[n] = store.Shard{Type: "t", N: route.ShardID(n)}
		at := c.values[3+n%2].Fenced()
		c.eventually("a claim", func() bool { _, err := at.Claim(c.ctx, shards[n], f); return err == nil })
		c.eventually("a commit", func() bool {
			return at.Commit(c.ctx, shards[n], f, storetest.Put("a", 1, "1")) == nil
		})
	}
	return shards
}

// TestFencedDisksGoOneByOne: nodes die for good, one behind the other, all that wrote records among them: their disks
// are replaced though nobody owns the shards, and three nodes that are left read all records (DYN-1).
func TestFencedDisksGoOneByOne(t *testing.T) {
	t.Parallel()
	c := newCluster(t, quorum.Store{Founders: 5, Timeout: time.Second, ReplaceAfter: time.Second}, 5)
	f := route.MakeFence(1, 1, 1)
	shards := tenShards(c, f)
	held := func() (n int) {
		for _, v := range c.values {
			if v != nil {
				n += v.Stats().Shards
			}
		}
		return n
	}
	c.eventually("each shard has three replicas", func() bool { return held() == 3*len(shards) })
	cared := uint64(0)
	for _, i := range []int{4, 3} {
		all := held()
		c.kill(i)
		require.NoError(t, c.nodes[0].Down(c.ctx, c.addrs[i]))
		c.eventually("each shard has three again", func() bool { return held() >= all })
	}
	for _, v := range c.values[:3] {
		cared += v.Stats().Cared
	}
	require.Positive(t, cared)
	f = route.MakeFence(2, 1, 1)
	for _, sh := range shards {
		at := c.values[0].Fenced()
		c.eventually("a claim", func() bool { _, err := at.Claim(c.ctx, sh, f); return err == nil })
		c.eventually("a record", func() bool {
			got, err := at.Load(c.ctx, sh, f, "a")
			return err == nil && len(got) == 1 && string(got[0].State) == "1"
		})
	}
}
