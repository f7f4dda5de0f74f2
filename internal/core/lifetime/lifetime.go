// Lifetime: when the contexts of one shard's handlers end, decided once for both runtimes.

// Package lifetime makes the context.Context that a handler is given, and ends it: with the suspension of its node, the
// stop of its shard, the loss of it, and at a limit. Nothing is made before somebody asks.
package lifetime

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/kith-io/kith/route"
)

// The causes of an end beside route.ErrSuspended and route.ErrShardStopping.
var (
	errLimit = fmt.Errorf("%w: whoever waits for this call waits no longer", route.ErrTimeout)
	errStop  = fmt.Errorf("%w: the shard had so long to stop", route.ErrTimeout)
	errLease = fmt.Errorf("%w: the lease is not held any more", route.ErrStopped)
	errLost  = fmt.Errorf("%w, or has lost the shard", route.ErrStopped)
)

// Limiter returns a context that ends with parent and, for cause, in d of real or of virtual time, at once when d is
// not positive.
type Limiter func(parent context.Context, d time.Duration, cause error) context.Context

// Shard is the lifetime of one shard's handlers on one node. Its methods are safe for concurrent use. The zero value is
// that of a shard that is served.
type Shard struct {
	mu       sync.Mutex
	now      context.Context // handed out; nil: nobody has asked since the last end
	end      context.CancelCauseFunc
	stopping bool
	by       time.Duration // when a stop must be over, on the clock of the node; zero: nobody knows
	lost     bool
}

// Context returns the context of a call that is made at now. suspended reports whether the node is suspended and is
// called under the lock: the code that suspends the node first makes it true, then calls Suspend. limit is the time
// until which a caller waits for the call, zero when that is not known.
func (s *Shard) Context(now, limit time.Duration, suspended func() bool, limited Limiter) context.Context {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.context(now, limit, suspended, limited)
}

// context is Context under the lock.
func (s *Shard) context(now, limit time.Duration, suspended func() bool, limited Limiter) context.Context {
	switch {
	case s.lost:
		return over(errLost)
	case suspended():
		return over(route.ErrSuspended)
	}
	if s.now == nil {
		base, end := context.WithCancelCause(context.Background())
		s.now, s.end = base, end
		if s.stopping && s.by != 0 {
			s.now = limited(base, s.by-now, errStop)
		}
	}
	if limit == 0 {
		return s.now
	}
	return limited(s.now, limit-now, errLimit)
}

// Serving returns the context of what goes on as long as the shard is served: one that ends as that of a call does, and
// has ended once the shard is being stopped. suspended is as for Context.
func (s *Shard) Serving(suspended func() bool) context.Context {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping && !s.lost {
		return over(route.ErrShardStopping)
	}
	return s.context(0, 0, suspended, nil)
}

// over returns a context that has ended.
func over(cause error) context.Context {
	ctx, end := context.WithCancelCause(context.Background())
	end(cause)
	return ctx
}

// Suspend ends what was handed out: the node has suspended itself. When it goes on, the next call gets a new one.
func (s *Shard) Suspend() { s.over(route.ErrSuspended, func() {}) }

// Withhold ends what was handed out: the entity must not live without its lease. What it is given when it has it again
// is new.
func (s *Shard) Withhold() { s.over(errLease, func() {}) }

// Stop ends what was handed out: the shard is being stopped. What is called from then on, Stop included, has until by,
// zero for nobody knows how long.
func (s *Shard) Stop(by time.Duration) {
	s.over(route.ErrShardStopping, func() { s.stopping, s.by = true, by })
}

// Lose ends what was handed out, and whatever will be: the node has ended, or others own the shard.
func (s *Shard) Lose() { s.over(errLost, func() { s.lost = true }) }

func (s *Shard) over(cause error, change func()) {
	s.mu.Lock()
	end := s.end
	s.now, s.end = nil, nil
	change()
	s.mu.Unlock()
	if end != nil {
		end(cause)
	}
}
