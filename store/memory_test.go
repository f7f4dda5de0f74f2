// Tests of the store in memory: the suite, and the faults that it has on demand.

package store_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/store"
	"github.com/kith-io/kith/store/storetest"
)

// TestMemory: the store in memory keeps the contract (SHD-11).
func TestMemory(t *testing.T) {
	m := store.Memory()
	storetest.Run(t, storetest.Engine{Open: func(*testing.T) store.Store { return m }})
}

var (
	ctx   = context.Background()
	shard = store.Shard{Type: "t", N: 3}
	first = route.MakeFence(1, 1, 1)
)

// TestFates: lost calls have no effect, blind ones theirs, both end with ErrUnknown, and their repeats are known; what
// waits ends with its context.
func TestFates(t *testing.T) {
	m, fate := store.Memory(), store.Fate{}
	_, err := m.Claim(ctx, shard, first)
	require.NoError(t, err)
	var calls []string
	m.Fail(func(c store.Call) store.Fate {
		calls = append(calls, c.Do)
		return fate
	})
	w := storetest.Put("a", 1, "x")
	read := func() int {
		was := fate
		fate = store.Fate{}
		list, err := m.Load(ctx, shard, first, "a")
		require.NoError(t, err)
		fate = was
		return len(list)
	}
	fate = store.Fate{Lost: true}
	require.ErrorIs(t, m.Commit(ctx, shard, first, w), store.ErrUnknown)
	require.Zero(t, read())
	fate = store.Fate{Blind: true}
	require.ErrorIs(t, m.Commit(ctx, shard, first, w), store.ErrUnknown)
	require.Equal(t, 1, read())
	fate = store.Fate{}
	require.NoError(t, m.Commit(ctx, shard, first, w))
	require.Equal(t, []string{"commit", "load", "commit", "load", "commit"}, calls)

	fate = store.Fate{Before: make(chan struct{})}
	over, cancel := context.WithCancel(ctx)
	cancel()
	for a, err := range m.Due(over, shard, w.Due) {
		require.Empty(t, a)
		require.ErrorIs(t, err, context.Canceled)
	}
	_, err = m.Claim(over, shard, first)
	require.ErrorIs(t, err, context.Canceled)
}

// TestStoreThatGoesBack: a replica that was behind takes the place of a store: its owner learns it, whether the claim
// is lost or what was written under it.
func TestStoreThatGoesBack(t *testing.T) {
	m := store.Memory()
	before := m.Copy()
	_, err := m.Claim(ctx, shard, first)
	require.NoError(t, err)
	claimed := m.Copy()
	require.NoError(t, m.Commit(ctx, shard, first, storetest.Put("a", 1, "x")))
	m.Become(claimed)
	require.ErrorIs(t, m.Commit(ctx, shard, first, storetest.Put("a", 2, "x")), store.ErrVersion)
	m.Become(before)
	require.ErrorIs(t, m.Commit(ctx, shard, first, storetest.Put("a", 2, "x")), store.ErrStoreWentBack)
}
