// Check: the one way to stop at a broken invariant.

// Package invariant stops the process where going on would break a promise. It is for what cannot happen unless this
// program is wrong; input from outside is never an invariant.
package invariant

// Violation is the value that Check panics with.
type Violation struct {
	// What names the invariant that does not hold.
	What string
}

// Error says which invariant does not hold.
func (v *Violation) Error() string { return "kith: broken invariant: " + v.What }

// Check panics with a *Violation naming what unless cond holds. It is always on: keep cond cheap and what a constant;
// guard costly walks with Enabled.
func Check(cond bool, what string) {
	if !cond {
		fail(what)
	}
}

//go:noinline
func fail(what string) { panic(&Violation{What: what}) }
