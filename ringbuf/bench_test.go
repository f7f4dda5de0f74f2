// Benchmarks of the buffers under the hot path's sizes: records of 108 bytes, batches taken by one consumer.

package ringbuf

import (
	"runtime"
	"sync"
	"testing"
)

// BenchmarkSPSC pushes and pops from one goroutine.
func BenchmarkSPSC(b *testing.B) {
	q := NewSPSC[uint64](4096)
	b.ReportAllocs()
	for b.Loop() {
		q.Push(1)
		q.Pop()
	}
}

// BenchmarkSPSCPair moves entries between two goroutines.
func BenchmarkSPSCPair(b *testing.B) {
	q := NewSPSC[uint64](4096)
	done := make(chan struct{})
	b.ReportAllocs()
	b.ResetTimer()
	go func() {
		defer close(done)
		for n := 0; n < b.N; {
			if _, ok := q.Pop(); ok {
				n++
			} else {
				runtime.Gosched()
			}
		}
	}()
	for n := 0; n < b.N; {
		if q.Push(uint64(n)) {
			n++
		} else {
			runtime.Gosched()
		}
	}
	<-done
}

// BenchmarkDouble reserves and fills a record under the link's lock and swaps every 256 KiB.
func BenchmarkDouble(b *testing.B) {
	d := NewDouble(1 << 20)
	rec := make([]byte, 108)
	var mu sync.Mutex
	b.SetBytes(int64(len(rec)))
	b.ReportAllocs()
	for b.Loop() {
		mu.Lock()
		span, err := d.Reserve(len(rec))
		if err != nil {
			b.Fatal(err)
		}
		copy(span, rec)
		if d.Len() > 256<<10 {
			d.Swap()
		}
		mu.Unlock()
	}
}

// BenchmarkQueue pushes and pops records with a few hundred waiting.
func BenchmarkQueue(b *testing.B) {
	q := NewQueue(1 << 20)
	rec := make([]byte, 108)
	for range 300 {
		_ = q.Push(rec)
	}
	b.SetBytes(int64(len(rec)))
	b.ReportAllocs()
	for b.Loop() {
		if q.Push(rec) != nil {
			b.Fatal("full")
		}
		q.Pop()
	}
}
