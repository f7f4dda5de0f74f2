//go:build linux

// Test of marks that are forgotten while they are written.

package postgres

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/store"
	"github.com/kith-io/kith/store/storetest"
)

// TestForgetSparesWhatIsWritten: an old mark that a commit under way writes anew is not forgotten when that has taken
// place, though it was old when the search for old ones began (SHD-12).
func TestForgetSparesWhatIsWritten(t *testing.T) {
	st, ctx := open(t, need(t)), context.Background()
	at, f := store.Shard{Type: "spared", N: 1}, route.MakeFence(1, 1, 1)
	_, err := st.Claim(ctx, at, f)
	require.NoError(t, err)
	now := time.UnixMilli(time.Now().UnixMilli())
	w := storetest.Put("a", 1, "x")
	w.Marks = []store.Mark{{From: "s", Number: 1, At: now.Add(-time.Hour)}, {From: "old", Number: 1, At: now.Add(-time.Hour)}}
	require.NoError(t, st.Commit(ctx, at, f, w))
	tx, err := st.pool.Begin(ctx)
	require.NoError(t, err)
	w = storetest.Put("a", 2, "y")
	w.Marks = []store.Mark{{From: "s", Number: 2, At: now}}
	require.NoError(t, commit(ctx, tx, at, f, []store.Write{w}))
	type forgotten struct {
		n   int
		err error
	}
	done := make(chan forgotten, 1)
	go func() {
		n, err := st.ForgetMarks(ctx, at, f, now.Add(-time.Minute), 100)
		done <- forgotten{n, err}
	}()
	require.Eventually(t, func() bool {
		var n int
		err := st.pool.QueryRow(ctx, "select count(*) from pg_stat_activity where wait_event_type = 'Lock'").Scan(&n)
		return err == nil && n > 0
	}, time.Minute, time.Millisecond, "it waits for the commit")
	require.NoError(t, tx.Commit(ctx))
	require.Equal(t, forgotten{1, nil}, <-done)
	list, err := st.Marks(ctx, at, f, "a", "s", "old")
	require.NoError(t, err)
	require.Equal(t, w.Marks, list)
}
