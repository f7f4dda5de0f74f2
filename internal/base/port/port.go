// Keep: a port for a test that dials an address at which nobody listens yet, or no longer.

// Package port keeps ports, for tests and for processes that come again at the same address. A port that was found by
// listening on port 0 and closing again is anybody's: the very next listener on port 0 may get it, also the node that
// the test points at the closed port, which then finds itself there.
package port

// TB is the part of testing.TB that Keep needs.
type TB interface {
	Helper()
	Fatalf(format string, args ...any)
	Cleanup(f func())
}

// Keep returns an address 127.0.0.1:port that is the test's own until it ends. Nobody listens there, dials to it are
// refused, and on Linux the system gives the port to no socket that asks for any free one. A listener that names the
// address gets it, as often as one comes and goes.
func Keep(t TB) string {
	t.Helper()
	addr, release, err := Hold()
	if err != nil {
		t.Fatalf("keep a port: %v", err)
	}
	t.Cleanup(release)
	return addr
}

// Hold is Keep for commands: the address is the caller's until release is called.
func Hold() (addr string, release func(), err error) { return keep() }
