// Usage: what this process has used so far, to be subtracted from what it has used later.

package bench

import (
	"runtime"
	"syscall"
	"time"
)

// Usage is a snapshot of this process. Times are nanoseconds; At counts from the start of the process's clock.
type Usage struct {
	At      time.Duration
	CPU     time.Duration // user and system
	Mallocs uint64        // objects allocated since the start
	Heap    uint64        // bytes of live and not yet swept heap objects
}

var epoch = time.Now()

// Now takes a snapshot. It stops the world for a moment, so take it outside of what is timed.
func Now() Usage {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	var r syscall.Rusage
	cpu := time.Duration(0)
	if syscall.Getrusage(syscall.RUSAGE_SELF, &r) == nil {
		cpu = time.Duration(r.Utime.Nano() + r.Stime.Nano())
	}
	return Usage{At: time.Since(epoch), CPU: cpu, Mallocs: m.Mallocs, Heap: m.HeapAlloc}
}

// LiveHeap collects garbage and returns the bytes of heap that spans in use take.
func LiveHeap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse
}

// Per returns what a single one of n things has cost between two snapshots: objects allocated, and CPU nanoseconds.
func (u Usage) Per(earlier Usage, n uint64) (allocs, cpu float64) {
	return float64(u.Mallocs-earlier.Mallocs) / float64(n), float64(u.CPU-earlier.CPU) / float64(n)
}
