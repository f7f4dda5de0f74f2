// What durable entities cost beside the engine itself, driven with the same batches and records in the same run.

package sqlite

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/kith-io/kith/internal/lab/storebench"
	"github.com/kith-io/kith/store"
)

// opener opens a new file at each call.
func opener(b *testing.B) func() store.Store {
	dir, n := b.TempDir(), 0
	return func() store.Store {
		n++
		return open(b, filepath.Join(dir, fmt.Sprint(n, ".db")))
	}
}

func BenchmarkDurable(b *testing.B) { storebench.Rates(b, opener(b)) }

func BenchmarkLatency(b *testing.B) { storebench.Latency(b, opener(b)) }
