// The number of a goroutine is its own while it lives.

package incall

import (
	"context"
	"errors"
	"iter"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestHereIsTheGoroutinesOwn(t *testing.T) {
	if runtime.GOARCH != "amd64" && runtime.GOARCH != "arm64" {
		t.Skip("all goroutines count as one")
	}
	const n = 1000
	own := Here()
	require.NotZero(t, own)
	numbers, end := make(chan uintptr), make(chan struct{})
	for range n {
		go func() {
			numbers <- deep(100) // also after its stack has moved
			<-end
		}()
	}
	seen := map[uintptr]bool{own: true}
	for range n {
		at := <-numbers
		require.False(t, seen[at])
		seen[at] = true
	}
	close(end)
	require.Equal(t, own, deep(1000))
	next, stop := iter.Pull(func(yield func(uintptr) bool) { yield(Here()) })
	defer stop()
	inside, _ := next()
	require.NotEqual(t, own, inside, "a coroutine is not its caller")
	require.Zero(t, testing.AllocsPerRun(100, func() { Here() }))
}

func deep(n int) uintptr {
	var room [256]byte
	if n == 0 {
		return Here()
	}
	at := Here()
	if below := deep(n - 1); below != at || room[n%256] != 0 {
		return 0
	}
	return at
}

func TestOver(t *testing.T) {
	why := errors.New("why")
	c := Over(why)
	<-c.Done()
	require.ErrorIs(t, c.Err(), why)
	require.ErrorIs(t, context.Cause(c), why)
	child, end := context.WithCancel(c)
	defer end()
	require.ErrorIs(t, child.Err(), why)
	_, ok := c.Deadline()
	require.False(t, ok)
	require.Nil(t, c.Value(1))
}

func BenchmarkHere(b *testing.B) {
	for b.Loop() {
		Here()
	}
}
