// Tests of loops that sleep so that more gathers.

package loop

import (
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A loop does not wait for more frames when it has something to read, or more connections than it can look at, or when
// it polls; and without such links not at all.
func TestRest(t *testing.T) {
	ours, theirs := sockets(t)
	l := New(Config{})
	require.False(t, l.MayRest(), "no wake-up to hear")
	l.polled.add(ours)
	require.True(t, l.MayRest())
	require.False(t, l.rest())

	first, second := taskFunc(func() {}), taskFunc(func() {})
	l.Await(first)
	l.Await(second)
	_, err := syscall.Write(theirs, []byte{1})
	require.NoError(t, err)
	require.True(t, l.rest())
	require.Len(t, l.dirty, 2)
	require.Empty(t, l.coalescing)
	require.True(t, l.busy)
	require.EqualValues(t, 1, l.stats.rests.Load())

	l.polled.every = time.Millisecond
	require.False(t, l.MayRest())
	l.polled.every = 0
	for range maxPolled {
		l.polled.add(ours)
	}
	require.False(t, l.MayRest())
}
