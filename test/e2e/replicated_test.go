// Replicated values on real sockets: three nodes, one that is lost, one that comes late, levels, watching, bounds,
// counters.

package e2e_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/replicated"
)

type nameSet = replicated.ORSet[string]

func openNames(t *testing.T, n *kith.Node) *replicated.Handle[nameSet] {
	t.Helper()
	h, err := replicated.Open(n, "online", nameSet{})
	require.NoError(t, err)
	return h
}

func adds(name string) func(nameSet, kith.ID) nameSet {
	return func(s nameSet, me kith.ID) nameSet { return s.Add(me, name) }
}

// What one node adds all have; what a majority holds another majority reads; long values; bounds; counters (REP-1).
func TestReplicated(t *testing.T) {
	t.Parallel()
	ctx := within(t)
	nodes := cluster(t, 3, nil, nil)
	var all []*replicated.Handle[nameSet]
	for _, n := range nodes {
		all = append(all, openNames(t, n))
	}
	require.NoError(t, all[0].Update(ctx, replicated.All, adds("anna")))
	for _, h := range all {
		require.True(t, h.Get().Has("anna"), "who was waited for has it")
	}
	require.NoError(t, all[1].Update(ctx, replicated.Local, adds("ben")))
	seen, cancel := context.WithCancel(ctx)
	for s := range all[2].Watch(seen) {
		if s.Has("ben") {
			cancel()
		}
	}
	takes := func(s nameSet, _ kith.ID) nameSet { return s.Remove("anna") }
	require.NoError(t, all[1].Update(ctx, replicated.Majority, takes))
	s, err := all[2].Read(ctx, replicated.Majority)
	require.NoError(t, err)
	require.False(t, s.Has("anna"), "what a majority was told a majority tells")

	long := strings.Repeat("x", 300<<10) // travels in pieces
	require.NoError(t, all[0].Update(ctx, replicated.All, adds(long)))
	require.True(t, all[1].Get().Has(long))
	err = all[0].Update(ctx, replicated.Local, adds(strings.Repeat("x", replicated.MaxValue)))
	require.ErrorIs(t, err, replicated.ErrTooLarge)
	require.Equal(t, 2, all[0].Get().Len(), "nothing has changed")

	require.NoError(t, nodes[2].Close())
	require.NoError(t, all[0].Update(ctx, replicated.Majority, adds("carl")), "two of three are a majority")
	gone, cancel := context.WithCancel(ctx)
	cancel()
	require.ErrorIs(t, all[0].Update(gone, replicated.Local, adds("nobody")), context.Canceled)
	var ended *kith.EndedError
	require.ErrorAs(t, all[2].Update(ctx, replicated.Local, adds("nobody")), &ended)
	stats := nodes[0].Stats().Replicated
	require.Equal(t, 1, stats.Keys)
	require.Greater(t, stats.Bytes, int64(300<<10))
	require.Positive(t, stats.Rounds)
	require.Zero(t, stats.Refused+stats.Strangers+stats.Dropped)
}

// An update that waits for one that has not opened the value returns that error when its time is over, and is made all
// the same (REP-1).
func TestReplicatedMissing(t *testing.T) {
	t.Parallel()
	ctx := within(t)
	nodes := cluster(t, 2, nil, nil)
	h := openNames(t, nodes[0])
	short, cancel := context.WithCancel(ctx)
	go func() {
		for s := range h.Watch(ctx) {
			if s.Has("anna") {
				cancel() // it is made, and waits
				return
			}
		}
	}()
	err := h.Update(short, replicated.All, adds("anna"))
	var missing *replicated.MissingError
	require.ErrorAs(t, err, &missing)
	require.Equal(t, []kith.ID{nodes[1].ID()}, missing.Missing)
	require.Equal(t, [2]int{2, 1}, [2]int{missing.Need, missing.Have})
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, err, nodes[1].ID().String())
	late := openNames(t, nodes[1])
	require.NoError(t, h.Update(ctx, replicated.All, func(s nameSet, _ kith.ID) nameSet { return s }),
		"an update that changes nothing waits for what is there")
	require.True(t, late.Get().Has("anna"))
	_, err = replicated.Open(nodes[0], "online", replicated.GCounter{})
	require.ErrorIs(t, err, replicated.ErrOpen)
	_, err = replicated.Open(nodes[0], "nested", replicated.ORMap[string, nameSet]{})
	require.ErrorIs(t, err, replicated.ErrBadValue)
	require.Panics(t, func() {
		_ = h.Update(ctx, replicated.Local, func(nameSet, kith.ID) nameSet { panic("of the caller") })
	})
	require.NoError(t, h.Update(ctx, replicated.Local, adds("ben")), "a panic of a change is the caller's alone")
}

// faulty is a value of a user's own with a merge that panics when the number five comes from elsewhere for the first
// time.
type faulty struct {
	replicated.GCounter
	fives *atomic.Int32 // that came; nil: the value was made here
}

func (f faulty) Merge(o faulty) faulty {
	if o.fives != nil && o.Value() == 5 && o.fives.Add(1) == 1 {
		panic("of a user's value")
	}
	return faulty{f.GCounter.Merge(o.GCounter), f.fives}
}

func (f faulty) Since(old faulty) faulty  { return faulty{f.GCounter.Since(old.GCounter), nil} }
func (f faulty) Fold(gone kith.ID) faulty { return faulty{f.GCounter.Fold(gone), nil} }
func (f faulty) Parse(b []byte) (faulty, error) {
	c, err := f.GCounter.Parse(b)
	return faulty{c, f.fives}, err
}

// A merge of a user's own type that panics costs nothing but the merge, which is tried again; the panic is counted
// (REP-1).
func TestReplicatedPanic(t *testing.T) {
	t.Parallel()
	ctx := within(t)
	nodes := cluster(t, 2, nil, nil)
	var all []*replicated.Handle[faulty]
	for _, n := range nodes {
		h, err := replicated.Open(n, "faulty", faulty{fives: &atomic.Int32{}})
		require.NoError(t, err)
		all = append(all, h)
	}
	count := func(n uint64) func(faulty, kith.ID) faulty {
		return func(f faulty, me kith.ID) faulty { return faulty{f.Add(me, n), f.fives} }
	}
	require.NoError(t, all[1].Update(ctx, replicated.All, count(5)))
	require.EqualValues(t, 5, all[0].Get().Value())
	require.EqualValues(t, 1, nodes[0].Stats().CallbackPanics)
}

// A name that is open with values of another Go type, which are written in the same way, is refused: Get could not
// return them (REP-1).
func TestReplicatedOfTwoTypes(t *testing.T) {
	t.Parallel()
	n := cluster(t, 1, nil, nil)[0]
	openNames(t, n)
	type login string
	_, err := replicated.Open(n, "online", replicated.ORSet[login]{})
	require.ErrorIs(t, err, replicated.ErrOpen)
}
