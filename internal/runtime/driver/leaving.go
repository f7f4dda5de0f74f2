// Leaving: the node's own tasks in its coordinated shutdown, and what begins one (MEM-8).

package driver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/kith-io/kith/internal/core/node"
	"github.com/kith-io/kith/internal/runtime/parcels"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/quorum/disk"
	"github.com/kith-io/kith/shutdown"
)

var endReasons = map[membership.EndKind]shutdown.Reason{
	membership.EndLeft: shutdown.ReasonLeft, membership.EndDowned: shutdown.ReasonDowned,
	membership.EndRemoved: shutdown.ReasonRemoved, membership.EndDuplicate: shutdown.ReasonDuplicate,
	membership.EndJoinRefused: shutdown.ReasonIncompatible, membership.EndJoinTimeout: shutdown.ReasonJoinUnsuccessful,
	membership.EndIsolated: shutdown.ReasonIsolated, membership.EndRejoin: shutdown.ReasonRejoin,
}

// leaving is the end of a node that is not sudden: its phases, and its leave from the cluster. What has no lock of its
// own belongs to the control goroutine.
type leaving struct {
	phases *phases
	by     time.Duration // when to leave without waiting for entities; zero: not leaving
	forced bool

	sums      func() map[*Region]abandonedCount // what was abandoned so far
	before    map[*Region]abandonedCount        // that, when it began to leave, or ended without
	abandoned error                             // what the end gave up; written before over is closed
	lost      error                             // states that no next instance gets; likewise
	needed    atomic.Pointer[disk.NeededError]  // disks that others need still
	disks     *parcels.Office
	why       *atomic.Pointer[shutdown.EndedError]

	log     *slog.Logger
	timeout time.Duration
	inbox   *inbox
	events  *broadcaster
	over    <-chan struct{} // closed when the node has ended
	now     func() time.Duration
	command func(any) error            // has the node carry out a wish; control goroutine
	end     func(*shutdown.EndedError) // ends the node unless it has been ended; control goroutine
	mayWait func() error               // whether the caller may wait
}

// makePhases prepares the node's shutdown with its own tasks.
func (l *leaving) makePhases(own []shutdown.Phase) error {
	order, err := orderPhases(defaultPhases(l.timeout), own)
	if err != nil {
		return err
	}
	l.phases = newPhases(order, l.log)
	for _, t := range []struct {
		phase, name string
		run         func(ctx context.Context) error
	}{
		{shutdown.PhaseShardingShutdown, "give shards back", func(ctx context.Context) error {
			l.handsOn(ctx)
			l.inbox.post(l.leave)
			return l.await(ctx, membership.Leaving, membership.Exiting, membership.Down)
		}},
		{shutdown.PhaseClusterLeave, "leave", func(ctx context.Context) error {
			l.inbox.post(l.leaveNow)
			return l.await(ctx, membership.Leaving, membership.Exiting, membership.Down)
		}},
		{shutdown.PhaseClusterExiting, "wait for exiting", func(ctx context.Context) error {
			return l.await(ctx, membership.Exiting, membership.Down)
		}},
		{shutdown.PhaseClusterExitingDone, "wait for removal", func(ctx context.Context) error { return l.await(ctx) }},
		{shutdown.PhaseClusterShutdown, "end the node", l.endAnyway},
	} {
		if err := l.phases.add(t.phase, t.name, t.run); err != nil {
			return err
		}
	}
	return nil
}

// handsOn has the disks of this node's stores hand on what they have, as far as they are to, for two thirds of the time
// that a leave has: the shards need the rest.
func (l *leaving) handsOn(ctx context.Context) {
	l.disks.Leaves()
	if e, _ := l.disks.Needed(); e == nil {
		return
	}
	l.inbox.post(func() {
		if l.by == 0 {
			l.by = l.now() + l.timeout
		}
	})
	within, stop := context.WithTimeout(ctx, l.timeout*2/3)
	defer stop()
	if e := l.disks.HandedOn(within); e != nil {
		e.Err = nil
		l.needed.Store(e)
		l.log.Warn("disks of this node are needed still: leaving anyway", "error", e)
	}
}

// await waits until this node has one of these statuses in its own view, or has ended.
func (l *leaving) await(ctx context.Context, status ...membership.Status) error {
	for ev := range l.events.stream(ctx) {
		if m, ok := ev.View.SelfMember(); ok && slices.Contains(status, m.Status) {
			return nil
		}
	}
	select {
	case <-l.over:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// endAnyway is the last of the node's own tasks: one that could not leave in time ends without having been removed.
func (l *leaving) endAnyway(ctx context.Context) error {
	l.inbox.post(func() { // a node that has ended runs nothing that is posted
		l.log.Warn("the cluster has not let this node go in time: it ends anyway", "node", l.events.view.Load().Self)
		l.end(&shutdown.EndedError{Kind: shutdown.EndClosed, At: time.Now(), Reason: "it was not removed in time"})
	})
	select {
	case <-l.over:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// leaveNow leaves without waiting for what is hosted here, unless that has been begun. Control goroutine.
func (l *leaving) leaveNow() {
	if l.forced {
		return
	}
	if m, ok := l.events.view.Load().SelfMember(); ok && m.Status.Rank() >= membership.Leaving.Rank() {
		return // it is on its way
	}
	l.mark()
	l.by = l.now()
	l.force()
}

// leave begins a graceful leave. Control goroutine.
func (l *leaving) leave() {
	l.mark()
	if l.by == 0 {
		l.by = l.now() + l.timeout
	}
	if err := l.command(node.LeaveCommand{Within: l.by - l.now()}); err != nil {
		l.failed(err)
	}
}

// mark notes what was abandoned before the end begins; the first time counts. Control goroutine.
func (l *leaving) mark() {
	if l.before == nil {
		l.before = l.sums()
	}
}

// due returns when to leave without waiting for entities any more; false when there is no such time.
func (l *leaving) due() (time.Duration, bool) { return l.by, l.by != 0 && !l.forced }

// overdue leaves when that time has come. Control goroutine.
func (l *leaving) overdue(now time.Duration) {
	if by, ok := l.due(); ok && now >= by {
		l.log.Warn("entities did not stop in time: leaving anyway", "timeout", l.timeout)
		l.force()
	}
}

// force leaves without waiting for what is hosted here.
func (l *leaving) force() {
	l.forced = true
	if err := l.command(node.LeaveCommand{Force: true}); err != nil {
		l.failed(err)
	}
}

// failed ends a node that cannot leave because it never was a member.
func (l *leaving) failed(err error) {
	if errors.Is(err, membership.ErrEnded) {
		return // its end has been reported, or is being reported
	}
	l.end(&shutdown.EndedError{Kind: membership.EndLeft, At: time.Now(),
		Reason: fmt.Sprintf("before it was admitted (%v)", err)})
}

// OnShutdown adds a task to a phase of the shutdown; see kith.Node.OnShutdown.
func (l *leaving) OnShutdown(phase, name string, run func(ctx context.Context) error) error {
	return l.phases.add(phase, name, run)
}

// Shutdown runs the coordinated shutdown from a phase on, the first one if from is empty, and waits until it is over or
// ctx ends. It runs once: the first reason stands, every later call waits for the same run and returns its result: the
// end of a node that did not leave, and what that end abandoned and lost.
func (l *leaving) Shutdown(ctx context.Context, why shutdown.Reason, from string) error {
	if err := l.shutDown(ctx, why, from); err != nil {
		return err
	}
	if e := l.why.Load(); e != nil && e.Kind == shutdown.EndClosed && from != "" {
		return l.gaveUp() // it was to skip its leave
	}
	return l.outcome()
}

// outcome returns what a leave has come to: nil for a node that has left, or not ended, and has given up nothing.
func (l *leaving) outcome() error {
	e := l.why.Load()
	if e == nil || e.Kind == membership.EndLeft || e.Kind == membership.EndRejoin {
		return l.gaveUp()
	}
	return joined(e, l.gaveUp())
}

// gaveUp returns what the end of the node has given up and lost, nil for nothing, or if it has not ended.
func (l *leaving) gaveUp() error {
	select {
	case <-l.over:
		if e := l.needed.Load(); e != nil {
			return joined(joined(l.lost, e), l.abandoned)
		}
		return joined(l.lost, l.abandoned)
	default:
		return nil
	}
}

// joined is errors.Join that returns a single error as it is.
func joined(a, b error) error {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return errors.Join(a, b)
}

func (l *leaving) shutDown(ctx context.Context, why shutdown.Reason, from string) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("kith: shutdown has not begun: %w", err)
	}
	if err := l.phases.begin(why, from); err != nil {
		return err
	}
	if err := l.mayWait(); err != nil {
		return fmt.Errorf("kith: shutdown goes on: %w", err)
	}
	select {
	case <-l.phases.finish:
		return l.phases.err
	case <-ctx.Done():
		return fmt.Errorf("kith: shutdown goes on: %w", ctx.Err())
	}
}

// ShutdownDone is closed when the coordinated shutdown has run.
func (l *leaving) ShutdownDone() <-chan struct{} { return l.phases.finish }

// ShutdownReason returns why the coordinated shutdown runs or ran, empty before it has begun.
func (l *leaving) ShutdownReason() shutdown.Reason { return l.phases.reason() }

// JoinAnother runs the coordinated shutdown of a node that is alone in its cluster, so that its successor may join
// another cluster. It waits until that is done or ctx ends; when ctx ends after the order was taken, the end goes on.
func (d *Driver) JoinAnother(ctx context.Context) error {
	err := d.call(ctx, membership.JoinAnotherCommand{})
	if err == nil {
		err = d.Shutdown(ctx, shutdown.ReasonRejoin, "")
	}
	if err != nil {
		return fmt.Errorf("kith: join another cluster: %w", err)
	}
	if e := d.err.Load(); e != nil && e.Kind != membership.EndRejoin {
		return e
	}
	return nil
}

// Issued returns the birth of this node's cluster when it may have issued fences under it, because a type was
// registered here; else zero.
func (d *Driver) Issued() uint64 {
	if len(d.regions.Load().list) == 0 {
		return 0
	}
	return d.View().Birth
}
