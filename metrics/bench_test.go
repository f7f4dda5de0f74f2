// Benchmark of what one sample costs: the two readings of the clock, and the functions that get it.

package metrics

import (
	"testing"
	"time"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/latency"
)

func BenchmarkObserve(b *testing.B) {
	m, _ := New(Config{})
	r := latency.New()
	b.Run("clock", func(b *testing.B) {
		var s time.Duration
		for b.Loop() {
			s += time.Since(time.Now())
		}
	})
	b.Run("metrics", func(b *testing.B) {
		d := time.Duration(100)
		for b.Loop() {
			d = d%5000 + 7
			m.Observe(kith.HandlerTime, "worker", d)
		}
	})
	b.Run("recorder", func(b *testing.B) {
		d := time.Duration(100)
		for b.Loop() {
			d = d%5000 + 7
			r.Record(kith.HandlerTime, "worker", d)
		}
	})
}
