// Package incall tells on which goroutine a call runs, and makes the ended context that any other goroutine gets.
package incall

import (
	"context"
	"time"
)

// Here returns a number that no other goroutine has while the one that asks lives, never zero. It takes a nanosecond.
// On other architectures than amd64 and arm64 all goroutines have the same one. It is for telling goroutines apart
// while one of them is known to live, and for nothing else: a goroutine that ends leaves its number to another.
func Here() uintptr { return here() }

// Over returns a context that has ended because of why.
func Over(why error) context.Context { return over{why} }

// over is such a context.
type over struct{ why error }

var closed = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// Deadline returns that there is none.
func (over) Deadline() (at time.Time, ok bool) { return time.Time{}, false }

// Done returns a channel that is closed.
func (over) Done() <-chan struct{} { return closed }

// Err returns why it has ended.
func (o over) Err() error { return o.why }

// Value returns nil.
func (over) Value(any) any { return nil }
