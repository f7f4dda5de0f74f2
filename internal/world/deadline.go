// Contexts of handlers that end at a moment of virtual time.

package world

import (
	"context"
	"time"
)

// deadline is a context that ends with its parent and at a moment of its process's clock.
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

// inTime is a lifetime.Limiter.
func (r shardRuntime) inTime(parent context.Context, d time.Duration, cause error) context.Context {
	ctx, end := context.WithCancelCause(parent)
	at := r.Wall().Add(d)
	if before, ok := parent.Deadline(); ok && before.Before(at) {
		at = before
	}
	endAt(r.p, r.p.clock()+d, func() { end(cause) })
	return &deadline{ctx, at, cause}
}

// endAt runs end when the clock of the process has come to at, unless the process is no more by then.
func endAt(p *Process, at time.Duration, end func()) {
	if left := at - p.clock(); left > 0 {
		p.Later(left, func() { endAt(p, at, end) })
		return
	}
	end()
}

// eachHosted calls do for every shard that lives on a process, in order.
func eachHosted(p *Process, do func(*hosted)) {
	for _, r := range p.Regions {
		for _, h := range r.shards {
			if h != nil {
				do(h)
			}
		}
	}
}
