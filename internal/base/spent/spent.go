// Package spent tells tests how much memory something allocated, at a price that a fuzz target can pay each time.
package spent

import "runtime/metrics"

// Floor is what Within allows in any case, in bytes: what the runtime and other goroutines allocate meanwhile, and what
// small objects take, which are counted some time later.
const Floor = 2 << 20

// Bytes returns how many bytes the process has allocated so far, nearly: large objects at once, small ones by the span.
func Bytes() uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

// failer is a testing.TB.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// Within fails the test when more was allocated since before than so many bytes, and Floor.
func Within(t failer, before uint64, bytes int) {
	t.Helper()
	if n := Bytes() - before; n > Floor+uint64(bytes) {
		t.Fatalf("%d bytes were allocated, %d are in proportion", n, bytes)
	}
}
