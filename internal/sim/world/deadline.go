// Contexts of handlers that end at a moment of virtual time.

package world

import (
	"context"
	"time"

	"github.com/kith-io/kith/internal/core/lifetime"
)

// inTime is a lifetime.Limiter.
func (r shardRuntime) inTime(parent context.Context, d time.Duration, cause error) context.Context {
	ctx, end := lifetime.At(parent, r.Wall().Add(d), cause)
	endAt(r.p, r.p.clock()+d, end)
	return ctx
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
		for _, at := range r.shards.All {
			h := *at
			if h != nil {
				do(h)
			}
		}
	}
}
