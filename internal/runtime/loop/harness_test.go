// Test harness: tasks, pairs of sockets, and waiting for what must come.

package loop

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// patience is how long a test waits for what must come.
const patience = 2 * time.Minute

// taskFunc is a function as a Task.
type taskFunc func()

// Run calls it.
func (f taskFunc) Run(*Loop) { f() }

func want[T any](t testing.TB, ch <-chan T) T {
	t.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(patience):
		require.FailNow(t, "nothing came in time")
		panic("unreachable")
	}
}

func until(t testing.TB, cond func() bool) {
	t.Helper()
	require.Eventually(t, cond, patience, time.Millisecond)
}
