// Benchmarks of the buffers under the hot path's sizes: records of 108 bytes, batches taken by one consumer.

package ringbuf

import (
	"sync"
	"testing"
)

// BenchmarkDouble reserves and fills a record under the link's lock and swaps every 256 KiB.
func BenchmarkDouble(b *testing.B) {
	d := &Double{Limit: 1 << 20}
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
