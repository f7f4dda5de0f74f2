// Keep: a port for a test that dials an address at which nobody listens yet, or no longer.

// Package port keeps ports for tests. A port that was found by listening on port 0 and closing again is anybody's: the
// very next listener on port 0 may get it, also the node that the test points at the closed port, which then finds
// itself there.
package port

import "testing"

// Keep returns an address 127.0.0.1:port that is the test's own until it ends. Nobody listens there, dials to it are
// refused, and on Linux the system gives the port to no socket that asks for any free one. A listener that names the
// address gets it, as often as one comes and goes.
func Keep(t testing.TB) string {
	t.Helper()
	addr, release, err := keep()
	if err != nil {
		t.Fatalf("keep a port: %v", err)
	}
	t.Cleanup(release)
	return addr
}
