// The SPSC under two goroutines at once: everything arrives, once, in order.

package ringbuf

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSPSCConcurrent moves entries between two goroutines; the race detector watches the memory order, the values prove
// that none is lost, doubled or torn.
func TestSPSCConcurrent(t *testing.T) {
	type entry struct{ a, b uint64 }
	const count = 200_000
	q := NewSPSC[entry](64)
	go func() {
		for i := uint64(0); i < count; {
			if q.Push(entry{i, ^i}) {
				i++
			} else {
				runtime.Gosched()
			}
		}
	}()
	for i := uint64(0); i < count; {
		v, ok := q.Pop()
		if !ok {
			runtime.Gosched()
			continue
		}
		if v != (entry{i, ^i}) {
			t.Fatalf("entry %d is %v", i, v)
		}
		if n := q.Len(); n < 0 || n > q.Cap() {
			t.Fatalf("length %d of %d", n, q.Cap())
		}
		i++
	}
	_, ok := q.Pop()
	require.False(t, ok)
}
