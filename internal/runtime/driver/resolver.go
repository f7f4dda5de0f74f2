// Resolver: the split brain resolver's words to the log and to readers, and the lease that it asks for.

package driver

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/kith-io/kith/internal/base/callback"
	"github.com/kith-io/kith/internal/core/node"
)

// Lease is the lock of lease-majority; the root package documents its methods.
type Lease interface {
	Acquire(ctx context.Context, name, owner string) (bool, error)
	Release(ctx context.Context, name, owner string) error
}

// Decision is one explained decision of the resolver, with the time of day at which it was made.
type Decision struct {
	node.Decision
	Time time.Time
}

// maxDecisions is how many decisions readers are shown.
const maxDecisions = 64

// resolver is what is heard of the node's resolver: its decisions for readers and the log, and the lease that it asks
// for.
type resolver struct {
	decided atomic.Pointer[[]Decision]
	leasing chan struct{} // closed when the last operation on the lease is over; the control goroutine's

	log         *slog.Logger
	start       time.Time
	now         func() time.Duration
	lease       Lease
	name, owner string // of the lease
	result      func(node.LeaseResult)
	callbacks   *callback.Guard
}

func (r *resolver) init(d *Driver) {
	r.log, r.start, r.now, r.lease = d.log, d.start, d.now, d.cfg.Lease
	r.name, r.owner, r.callbacks = d.cfg.leaseName(), d.self.String(), &d.count.callbacks
	r.result = func(l node.LeaseResult) { d.inbox.post(func() { _ = d.command(l) }) }
}

// Decisions returns the newest decisions of the resolver, oldest first.
func (r *resolver) Decisions() []Decision {
	if p := r.decided.Load(); p != nil {
		return slices.Clone(*p)
	}
	return nil
}

// resolved logs what the resolver decided and tells, and carries out what it wants of its lease. Control goroutine.
func (r *resolver) resolved(e *node.Effects) {
	for _, v := range e.Decisions {
		list := r.Decisions()
		if len(list) == maxDecisions {
			list = list[1:]
		}
		list = append(list, Decision{Decision: v, Time: r.start.Add(v.At)})
		r.decided.Store(&list)
		r.log.Warn("resolver decided", "decision", v.String(), "lives", v.Lives, "leader", v.Leader, "down", len(v.Down),
			"stable_after", v.StableAfter)
	}
	for _, ev := range e.ResolverEvents {
		r.log.Warn("resolver", "event", ev.Text)
	}
	for _, op := range e.Lease {
		r.leaseOp(op)
	}
}

// terms is what all nodes must agree on.
func (c Config) terms() *node.Terms {
	t := &node.Terms{Config: c.node(), MaxPayload: c.MaxPayload, Window: c.Window}
	if c.Resolver.Strategy == node.ResolverLeaseMajority {
		t.LeaseName = c.leaseName()
	}
	return t
}

// leaseName returns the name of the lease: blank counts as unset.
func (c Config) leaseName() string {
	if name := strings.TrimSpace(c.Resolver.LeaseName); name != "" {
		return name
	}
	return c.Name + "-resolver"
}

// leaseOp runs one operation in a goroutine of its own, behind the one before it, until its deadline at most, and
// brings the answer back.
func (r *resolver) leaseOp(op node.LeaseOp) {
	before, done := r.leasing, make(chan struct{})
	r.leasing = done
	go func() {
		defer close(done)
		ctx, cancel := context.WithTimeout(context.Background(), op.Deadline-r.now())
		defer cancel()
		if before != nil {
			select {
			case <-before:
			case <-ctx.Done():
			}
		}
		ok, err := false, callback.ErrPanicked
		defer func() { r.result(node.LeaseResult{Op: op.Op, OK: ok && err == nil}) }() // also when it ends the goroutine
		if why := r.callbacks.Call("Resolver.Lease", func() {
			if op.Release {
				err = r.lease.Release(ctx, r.name, r.owner)
				ok = err == nil
			} else {
				ok, err = r.lease.Acquire(ctx, r.name, r.owner)
			}
		}); why != nil {
			ok, err = false, why
		}
		if err != nil {
			r.log.Warn("lease", "name", r.name, "release", op.Release, "error", err)
		}
	}()
}
