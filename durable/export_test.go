// What tests of the package outside of it may set.

package durable

import "time"

// WithClock returns t with another clock.
func WithClock[S, M, R any](t Type[S, M, R], now func() time.Time) Type[S, M, R] {
	t.now = now
	return t
}
