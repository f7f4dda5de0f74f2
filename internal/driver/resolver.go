// Resolver: the split brain resolver's words to the log and to readers, and the lease that it asks for.

package driver

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/kith-io/kith/internal/node"
	"github.com/kith-io/kith/membership"
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

// Decisions returns the newest decisions of the resolver, oldest first.
func (d *Driver) Decisions() []Decision {
	if p := d.decided.Load(); p != nil {
		return slices.Clone(*p)
	}
	return nil
}

// resolved logs what the resolver decided and tells, and carries out what it wants of its lease. Control goroutine.
func (d *Driver) resolved(e *node.Effects) {
	for _, v := range e.Decisions {
		list := d.Decisions()
		if len(list) == maxDecisions {
			list = list[1:]
		}
		list = append(list, Decision{Decision: v, Time: d.start.Add(v.At)})
		d.decided.Store(&list)
		d.log.Warn("resolver decided", "decision", v.String(), "lives", v.Lives, "leader", v.Leader, "down", len(v.Down),
			"stable_after", v.StableAfter)
	}
	for _, ev := range e.ResolverEvents {
		d.log.Warn("resolver", "event", ev.Text)
	}
	for _, op := range e.Lease {
		d.leaseOp(op)
	}
}

// resolverSettings is what all nodes must agree on about the resolver: two that decide by different rules may both
// live.
func (c Config) resolverSettings() []membership.Setting {
	r := c.Resolver
	r.Role, r.LeaseName = "", ""
	list := []membership.Setting{{Key: "kith.resolver", Value: r.Settings()},
		{Key: "kith.resolver-role", Value: c.Resolver.Role}}
	if r.Strategy == node.ResolverLeaseMajority {
		list = append(list, membership.Setting{Key: "kith.resolver-lease", Value: c.leaseName()})
	}
	return list
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
func (d *Driver) leaseOp(op node.LeaseOp) {
	before, done := d.control.leasing, make(chan struct{})
	d.control.leasing = done
	name, owner := d.cfg.leaseName(), d.self.String()
	go func() {
		defer close(done)
		ctx, cancel := context.WithTimeout(context.Background(), op.Deadline-d.now())
		defer cancel()
		if before != nil {
			select {
			case <-before:
			case <-ctx.Done():
			}
		}
		var ok bool
		var err error
		if op.Release {
			err = d.cfg.Lease.Release(ctx, name, owner)
			ok = err == nil
		} else {
			ok, err = d.cfg.Lease.Acquire(ctx, name, owner)
			ok = ok && err == nil
		}
		if err != nil {
			d.log.Warn("lease", "name", name, "release", op.Release, "error", err)
		}
		d.inbox.post(func() { _ = d.command(node.LeaseResult{Op: op.Op, OK: ok}) })
	}()
}

// followTakeover keeps the time that messages may wait for a home above the takeover time, or warns once that a fixed
// one is below it. Control goroutine.
func (d *Driver) followTakeover(takeover time.Duration) {
	need := node.ParkTimeFor(takeover)
	d.parkTime.Store(int64(need))
	c := &d.control
	if c.parksShortly || d.cfg.ParkTime == 0 || d.cfg.ParkTime >= takeover {
		return
	}
	c.parksShortly = true
	d.log.Warn("ParkTime is below the takeover time: what is sent to an entity whose node was lost fails before that "+
		"entity can live elsewhere", "park_time", d.cfg.ParkTime, "takeover_time", takeover, "needed", need)
}

// outgrown warns once when the cluster has become too large for a takeover time that was fixed. Control goroutine.
func (d *Driver) outgrown(v *membership.View) {
	c := &d.control
	if c.outgrown || d.cfg.TakeoverTime == 0 || d.cfg.Resolver.Strategy == node.ResolverOff {
		return
	}
	up := v.CountUp()
	if need := d.cfg.node().DerivedTakeover(up); need > d.cfg.TakeoverTime {
		c.outgrown = true
		d.log.Warn("TakeoverTime is too short for this cluster: a node that is cut off may go on while its shards live "+
			"elsewhere", "takeover_time", d.cfg.TakeoverTime, "needed", need, "members", up)
	}
}
