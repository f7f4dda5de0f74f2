// Tests of versions that never restart: copies of earlier commits that arrive late.

package durable_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

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
			_ = e.MemoryStore.Commit(ctx, s, f, old...) // whatever the answer
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

// TestDeletionJoinsWhatWaits: an entity is deleted by a message with a write that would join one that waits for its
// commit before those of more new entities than one commit takes: all are stored, and the type does not stop (SHD-11).
func TestDeletionJoinsWhatWaits(t *testing.T) {
	m := store.Memory()
	_, e := begin(t, bank{Store: m})
	for range 5 {
		_, err := e.Ask(within(t), "old", &order{Add: 1})
		require.NoError(t, err)
	}
	waits := func(n int) {
		t.Helper()
		require.Eventually(t, func() bool { return e.Stats().Waiting == n }, time.Minute, time.Millisecond)
	}
	g := hold(m, "commit")
	got := []<-chan answer{asks(t, e, "first", order{Add: 1})}
	<-g.came
	got = append(got, asks(t, e, "old", order{Add: 1}))
	waits(2)
	const many = store.MaxWrites + 20
	for i := range many {
		got = append(got, asks(t, e, fmt.Sprint("new", i), order{Add: 1}))
	}
	waits(2 + many)
	got = append(got, asks(t, e, "old", order{Gone: true}))
	waits(3 + many)
	m.Fail(nil)
	close(g.open)
	for i, ch := range got {
		require.NoError(t, (<-ch).err, "%d", i)
	}
	require.NoError(t, e.Err())
	for i := range many {
		b, _ := stored(t, m, fmt.Sprint("new", i))
		require.Equal(t, `{"Balance":1}`, b)
	}
	_, version := stored(t, m, "old")
	require.Zero(t, version)
}
