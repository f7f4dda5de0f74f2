// The bench on which a simulated cluster lies: what a test is to package sim otherwise.

package durables

import "fmt"

// bench is a sim.TB.
type bench struct {
	broken  []string
	cleanup []func()
}

// fatal is what a bench panics with that goes no further.
type fatal struct{}

func (*bench) Helper() {}

// Name implements sim.TB.
func (*bench) Name() string { return "storm-durable" }

// Logf implements sim.TB.
func (*bench) Logf(string, ...any) {}

// Errorf implements sim.TB.
func (b *bench) Errorf(format string, args ...any) {
	b.broken = append(b.broken, fmt.Sprintf(format, args...))
}

// Fatalf implements sim.TB.
func (b *bench) Fatalf(format string, args ...any) {
	b.Errorf(format, args...)
	panic(fatal{})
}

// Failed implements sim.TB: the caller of the storm keeps the trace.
func (*bench) Failed() bool { return false }

// Cleanup implements sim.TB.
func (b *bench) Cleanup(f func()) { b.cleanup = append(b.cleanup, f) }

// ends does what was to be done at the end, the last first.
func (b *bench) ends() {
	for i := len(b.cleanup) - 1; i >= 0; i-- {
		b.cleanup[i]()
	}
}
