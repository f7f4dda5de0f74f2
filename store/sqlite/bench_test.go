// What durable entities cost beside the engine itself, driven with the same batches and records in the same run.

package sqlite

import (
	"path/filepath"
	"testing"

	"github.com/kith-io/kith/internal/lab/storebench"
	"github.com/kith-io/kith/store"
)

// opener opens a new file at each call, until the benchmark that asks for it is over.
func opener(b *testing.B) store.Store { return open(b, filepath.Join(b.TempDir(), "db")) }

func BenchmarkDurable(b *testing.B) { storebench.Rates(b, opener) }

func BenchmarkLatency(b *testing.B) { storebench.Latency(b, opener) }

func BenchmarkDelivery(b *testing.B) { storebench.Delivery(b, opener) }
