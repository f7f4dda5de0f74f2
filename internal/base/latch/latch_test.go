// Tests of the lock: it excludes, and a goroutine that waits gets it.

package latch

import (
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// One goroutine has a latch at a time, and sees all that those before it wrote.
func TestLatchExcludes(t *testing.T) {
	const each = 20_000
	var l Latch
	var shared [64]int // more than one line of memory
	var all sync.WaitGroup
	goroutines := 2 * runtime.GOMAXPROCS(0)
	for range goroutines {
		all.Go(func() {
			for n := range each {
				l.Lock()
				for i := range shared {
					if shared[i] != shared[0] {
						t.Errorf("place %d has %d, place 0 %d", i, shared[i], shared[0])
					}
				}
				for i := range shared {
					shared[i]++
				}
				if n%1000 == 0 {
					runtime.Gosched() // a holder that is held up
				}
				l.Unlock()
			}
		})
	}
	all.Wait()
	require.Equal(t, goroutines*each, shared[0])
}

// Goroutines that wait for a holder that is held up for long get it, one after the other.
func TestLatchWaits(t *testing.T) {
	var l Latch
	require.True(t, l.TryLock())
	require.False(t, l.TryLock())
	const waiters = 8
	got := make(chan int, waiters)
	begun := make(chan struct{})
	for i := range waiters {
		go func() {
			begun <- struct{}{}
			l.Lock()
			got <- i
			l.Unlock()
		}()
	}
	for range waiters {
		<-begun
	}
	for range 1000 {
		runtime.Gosched()
	}
	require.Empty(t, got, "it is held")
	l.Unlock()
	seen := map[int]bool{}
	for range waiters {
		seen[<-got] = true
	}
	require.Len(t, seen, waiters)
	require.True(t, l.TryLock())
	l.Unlock()
}
