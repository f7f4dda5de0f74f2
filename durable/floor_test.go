// Tests of versions that never restart: copies of earlier commits that arrive late.

package durable_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/store"
)

// echoing is a store at which copies of earlier commits arrive before each one: the last ones, and any other.
type echoing struct {
	*store.MemoryStore
	mu   sync.Mutex
	sent [][]store.Write
}

// Commit implements store.Store.
func (e *echoing) Commit(ctx context.Context, s store.Shard, f route.Fence, w ...store.Write) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	for i, old := range e.sent {
		if i >= len(e.sent)-4 || rand.IntN(4) == 0 {
			_ = e.MemoryStore.Commit(ctx, s, f, old...) // whatever it is told
		}
	}
	c := slices.Clone(w)
	for i := range c {
		c[i].State = slices.Clone(c[i].State)
	}
	e.sent = append(e.sent, c)
	return e.MemoryStore.Commit(ctx, s, f, w...)
}

// TestLateCopiesOfCommits: an entity is made, changed, deleted and made anew, by one caller and by several that share
// commits, while copies of all that was committed before arrive: nothing comes back, nothing is overwritten, and the
// type does not stop (SHD-11).
func TestLateCopiesOfCommits(t *testing.T) {
	m := &echoing{MemoryStore: store.Memory()}
	_, e := begin(t, bank{Store: m})
	for round := range 12 {
		for i, o := range []order{{Add: 5}, {Add: 3}, {Gone: true}, {}, {Gone: true}, {Add: 4}, {Gone: true}} {
			r, err := e.Ask(within(t), "anna", &o)
			require.NoError(t, err, "%d, %d", round, i)
			require.EqualValues(t, []int64{5, 8, 8, 0, 0, 4, 4}[i], r)
		}
		var got []<-chan answer
		for i := range 12 {
			got = append(got, asks(t, e, string(rune('a'+i%3)), order{Add: 1, Gone: i%4 == 3}))
		}
		for _, ch := range got {
			require.NoError(t, (<-ch).err)
		}
	}
	require.NoError(t, e.Err())
	_, version := stored(t, m.MemoryStore, "anna")
	require.Zero(t, version)
}

var _ store.Store = (*echoing)(nil)
