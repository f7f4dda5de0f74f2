// Contexts that end at a moment of virtual time, for runtimes that keep their own.

package lifetime

import (
	"context"
	"time"
)

// deadline is a context that ends with its parent and at a moment that somebody else sees come.
type deadline struct {
	context.Context
	at    time.Time
	cause error
}

// Deadline is virtual, as entity.Context.Now is.
func (d *deadline) Deadline() (time.Time, bool) { return d.at, true }

// Err tells the deadline from other ends.
func (d *deadline) Err() error {
	err := d.Context.Err()
	if err != nil && context.Cause(d.Context) == d.cause {
		return context.DeadlineExceeded
	}
	return err
}

// At returns a context that ends with parent and, for cause, when end is called: the keeper of the time calls it at the
// moment at. Its deadline is at, or that of parent if it is earlier.
func At(parent context.Context, at time.Time, cause error) (ctx context.Context, end func()) {
	inner, cancel := context.WithCancelCause(parent)
	if before, ok := parent.Deadline(); ok && before.Before(at) {
		at = before
	}
	return &deadline{inner, at, cause}, func() { cancel(cause) }
}
