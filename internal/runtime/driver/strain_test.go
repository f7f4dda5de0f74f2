// Tests of what a process knows of its own load.

package driver

import (
	"math"
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestStrain: what the Go runtime says becomes shares of what the process may have, with a memory limit or without; the
// collector is a part of the processor (PRT-5).
func TestStrain(t *testing.T) {
	s := strain{}
	for range 20 { // until a tenth of a processor second has passed, and the collector took some of it
		runtime.GC()
	}
	n := s.read()
	require.Zero(t, n.Memory)
	require.Positive(t, n.Processor)
	require.Positive(t, n.Collector)
	require.LessOrEqual(t, n.Processor, uint16(1100))
	require.LessOrEqual(t, n.Collector, n.Processor)
	was := debug.SetMemoryLimit(64 << 30)
	defer debug.SetMemoryLimit(was)
	before := s.last
	n = s.read()
	require.Positive(t, n.Memory+1)
	require.Less(t, n.Memory, uint16(500))
	require.GreaterOrEqual(t, s.last[0], before[0])
	debug.SetMemoryLimit(1 << 20)
	require.True(t, s.read().Strained(), "the limit is below what it has")
	debug.SetMemoryLimit(math.MaxInt64)
	require.Zero(t, s.read().Memory)
}
