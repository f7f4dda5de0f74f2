// Enabled in ordinary builds.

//go:build !race && !invariants

package invariant

// Enabled tells whether checks that walk whole structures run: under the race detector or the build tag invariants.
const Enabled = false
