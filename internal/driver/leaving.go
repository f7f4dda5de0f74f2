// Leaving: the node's own tasks in its coordinated shutdown, and what begins one (MEM-8).

package driver

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/kith-io/kith/internal/node"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/shutdown"
)

var endReasons = map[membership.EndKind]shutdown.Reason{
	membership.EndLeft: shutdown.ReasonLeft, membership.EndDowned: shutdown.ReasonDowned,
	membership.EndRemoved: shutdown.ReasonRemoved, membership.EndTwin: shutdown.ReasonTwin,
	membership.EndJoinRefused: shutdown.ReasonIncompatible, membership.EndJoinTimeout: shutdown.ReasonJoinUnsuccessful,
	membership.EndIsolated: shutdown.ReasonIsolated, membership.EndRejoin: shutdown.ReasonRejoin,
}

// makePhases prepares the node's shutdown with its own tasks.
func (d *Driver) makePhases() error {
	order, err := orderPhases(defaultPhases(d.cfg.LeaveTimeout), d.cfg.Phases)
	if err != nil {
		return err
	}
	d.phases = newPhases(order, d.log)
	for _, t := range []struct {
		phase, name string
		run         func(ctx context.Context) error
	}{
		{shutdown.PhaseShardingShutdown, "give shards back", func(ctx context.Context) error {
			d.inbox.post(d.leave)
			return d.await(ctx, membership.Leaving, membership.Exiting, membership.Down)
		}},
		{shutdown.PhaseClusterLeave, "leave", func(ctx context.Context) error {
			d.inbox.post(d.leaveNow)
			return d.await(ctx, membership.Leaving, membership.Exiting, membership.Down)
		}},
		{shutdown.PhaseClusterExiting, "wait for exiting", func(ctx context.Context) error {
			return d.await(ctx, membership.Exiting, membership.Down)
		}},
		{shutdown.PhaseClusterExitingDone, "wait for removal", func(ctx context.Context) error { return d.await(ctx) }},
		{shutdown.PhaseClusterShutdown, "end the node", d.endAnyway},
	} {
		if err := d.phases.add(t.phase, t.name, t.run); err != nil {
			return err
		}
	}
	return nil
}

// await waits until this node has one of these statuses in its own view, or has ended.
func (d *Driver) await(ctx context.Context, status ...membership.Status) error {
	for ev := range d.Events(ctx) {
		if m, ok := ev.View.SelfMember(); ok && slices.Contains(status, m.Status) {
			return nil
		}
	}
	select {
	case <-d.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// endAnyway is the last of the node's own tasks: one that could not leave in time ends without having been removed.
func (d *Driver) endAnyway(ctx context.Context) error {
	d.inbox.post(func() {
		if d.control.ended == nil {
			d.log.Warn("the cluster has not let this node go in time: it ends anyway", "node", d.self)
			d.end(&shutdown.EndedError{Kind: shutdown.EndClosed, At: time.Now(), Reason: "it was not removed in time"})
		}
	})
	select {
	case <-d.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// leaveNow leaves without waiting for what is hosted here, unless that has been begun. Control goroutine.
func (d *Driver) leaveNow() {
	c := &d.control
	if c.forced {
		return
	}
	if m, ok := d.View().SelfMember(); ok && m.Status.Rank() >= membership.Leaving.Rank() {
		return // it is on its way
	}
	c.forced, c.leaveBy = true, d.now()
	if err := d.command(node.LeaveCommand{Force: true}); err != nil {
		d.leaveFailed(err)
	}
}

// OnShutdown adds a task to a phase of the shutdown; see the face.
func (d *Driver) OnShutdown(phase, name string, run func(ctx context.Context) error) error {
	return d.phases.add(phase, name, run)
}

// Shutdown runs the coordinated shutdown from a phase on, the first one if from is empty, and waits until it is over or
// ctx ends. It runs once: the first reason stands, every later call waits for the same run and returns its result.
func (d *Driver) Shutdown(ctx context.Context, why shutdown.Reason, from string) error {
	if err := d.phases.begin(why, from); err != nil {
		return err
	}
	select {
	case <-d.phases.finish:
		return d.phases.err
	case <-ctx.Done():
		return fmt.Errorf("kith: shutdown goes on: %w", ctx.Err())
	}
}

// ShutdownDone is closed when the coordinated shutdown has run.
func (d *Driver) ShutdownDone() <-chan struct{} { return d.phases.finish }

// ShutdownReason returns why the coordinated shutdown runs or ran, empty before it has begun.
func (d *Driver) ShutdownReason() shutdown.Reason { return d.phases.reason() }
