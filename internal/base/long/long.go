// Package long is for tests that take long, or want the machine for themselves: make test-long runs them, make test
// does not.
package long

import (
	"os"
	"strings"
	"testing"
)

// Env is the variable of the environment that is set where such tests are wanted.
const Env = "KITH_LONG"

// Prefix begins their names: make test-long goes by it.
const Prefix = "TestLong"

// Test skips a test that nobody wants now.
func Test(t *testing.T) {
	t.Helper()
	if !strings.HasPrefix(t.Name(), Prefix) {
		t.Fatalf("a test that takes long begins with %s: else make test-long does not find it", Prefix)
	}
	if os.Getenv(Env) == "" {
		t.Skip("it takes long: make test-long runs it")
	}
}

// Fewer returns how many seeds a test draws of so many: a quarter with -short, which make quick sets, at least one.
func Fewer(seeds uint64) uint64 {
	if testing.Short() {
		return max(seeds/4, 1)
	}
	return seeds
}
