// The control goroutine: steps the node, carries out its effects in their order, and is the only one to change routes.

package driver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/kith-io/kith/internal/core/flight"
	"github.com/kith-io/kith/internal/core/node"
	"github.com/kith-io/kith/internal/core/plane"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/shard"
	"github.com/kith-io/kith/shutdown"
	"github.com/kith-io/kith/wire"
)

const (
	controlRest = 500 * time.Millisecond // longest sleep, so that the age of the last step tells a stuck node
)

// control is what only the control goroutine touches.
type control struct {
	node    *flight.Node
	effects node.Effects
	frames  []frame
	jobs    []func()

	cluster               bool          // the transport knows id and birth
	largeAt               time.Duration // when to look for large asks that were given up
	suspendedAt, reportAt time.Duration // when the node suspended itself; when running handlers are to be reported
	removed               plane.Removed
	ended                 *shutdown.EndedError
	yielded               *membership.Record // what is remembered from now on, after EndDuplicate; else nil
	counts                node.Counts
	registered            int             // types, so far
	notices               []node.Received // that have not been heeded
	drains                drainWaits
	leases                leaseTable
	session               sessions
	tenure                tenures
	flying                chan struct{} // closed when the last flight record is written; nil: none was
}

// run is the control goroutine.
func (d *Driver) run() {
	c := &d.control
	defer d.inbox.runs()()
	ended := false
	defer panicking(d, &ended)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for c.ended == nil {
		rest := d.rest()
		due := d.now() + rest
		timer.Reset(rest)
		select {
		case <-d.inbox.wake:
		case <-timer.C:
		}
		d.sleeps.stalls.ends(d.log, due, d.now())
		d.turn()
	}
	d.shutdown()
	ended = true
}

// rest is how long there is nothing to do.
func (d *Driver) rest() time.Duration {
	c := &d.control
	next := d.now() + min(controlRest, d.exec.Gate.Limit()/8)
	if deadline, ok := c.node.Next(); ok {
		next = min(next, deadline)
	}
	next = c.leases.next(d.dispatch.next(next))
	if at, ok := c.removed.Next(); ok {
		next = min(next, at)
	}
	if c.reportAt != 0 {
		next = min(next, c.reportAt)
	}
	if by, ok := d.leaving.due(); ok {
		next = min(next, by)
	}
	return max(0, next-d.now())
}

// turn handles everything that has come and everything that is due.
func (d *Driver) turn() {
	c := &d.control
	d.lookForSleep()
	c.frames, c.jobs = d.inbox.take(c.frames[:0], c.jobs[:0])
	for i := range c.frames {
		d.handle(&c.frames[i])
		c.frames[i].body = nil
		if c.ended != nil {
			return
		}
	}
	for i, job := range c.jobs {
		c.jobs[i] = nil
		if job(); c.ended != nil {
			// The callers of later jobs learn of the end from done.
			return
		}
	}
	now := d.step()
	if deadline, ok := c.node.Next(); ok && deadline <= now || d.exec.Gate.Noticed() {
		c.node.Tick(now)
		d.perform()
	}
	d.heed()
	d.askHomes()
	d.housekeeping(now)
}

// heed takes notices of other nodes, behind the step in which they came: they may call for another.
func (d *Driver) heed() {
	c := &d.control
	for len(c.notices) > 0 {
		list := c.notices
		c.notices = nil
		for i := range list {
			d.heedOne(list[i].From, list[i].Kind, list[i].Body)
		}
	}
}

// step notes that the control goroutine is alive and returns the time.
func (d *Driver) step() time.Duration {
	now := d.now()
	d.exec.Gate.Notice(now)
	d.tellSlept(now)
	d.control.leases.due()
	d.exec.Gate.Step(now)
	return now
}

func (d *Driver) handle(f *frame) {
	now := d.step()
	switch f.kind {
	case wire.KindRefused, wire.KindRefusals, wire.KindTaken:
		d.heedOne(f.from, f.kind, f.body)
		return
	}
	err := d.control.node.Handle(now, min(f.arrived, now), f.from, f.kind, f.body)
	if err != nil {
		d.nonsense.note(f.from, f.kind, err)
	}
	d.perform()
}

// refusals takes what a node says that it refused.
func (d *Driver) refusals(from peer.ID, kind wire.Kind, body []byte) {
	if d.sentTo(from) {
		d.refusedThere(from, kind, body)
	} else {
		d.nonsense.note(from, kind, errStranger)
	}
}

// sentTo reports whether messages may have gone to a node: to a member, or to one that was removed a moment ago: its
// last refusals are still on their way.
func (d *Driver) sentTo(id peer.ID) bool {
	_, member := d.View().Member(id)
	return member || d.control.removed.Has(id)
}

// command carries out a wish of this node.
func (d *Driver) command(cmd any) error {
	err := d.control.node.Do(d.step(), cmd)
	d.perform()
	return err
}

// perform carries out the effects of the last verb, in the order that node.Effects states.
func (d *Driver) perform() {
	c := &d.control
	e := &c.effects
	c.node.Drain(e)
	d.resolved(e)
	if v := e.View; v != nil || len(e.Events) > 0 {
		if v == nil {
			v = d.View()
		}
		d.publish(v, e.Events)
		d.regions.Load().muster(func(*Region) bool { return e.View != nil })
		d.takeover.outgrow(v)
		d.takeover.follow(c.node.Takeover())
		d.takeover.note(d.now(), c.node, v, d.peerTable.homesAt)
	}
	gated(e, d)
	stoppedFlight(d, e.Suspend)
	for i := range e.Hosts {
		d.hostOrder(&e.Hosts[i])
	}
	d.routesChanged(e.Routes, e.Marks)
	carryWatches(d, e)
	untaken(d, e.Untaken)
	for i := range e.Mail {
		d.sendMail(e.Mail[i])
	}
	for _, n := range e.Notices {
		n.Body = slices.Clone(n.Body)
		c.notices = append(c.notices, n)
	}
	for i := range e.Untold {
		d.noticeLost(&e.Untold[i])
	}
	for _, full := range e.Full {
		d.log.Warn("control messages to a peer find no room", "peer", full.Peer, "kind", full.Kind,
			"messages", full.Messages, "bytes", full.Bytes, "bound", full.Bound)
	}
	balanced(d, e)
	for _, t := range e.TypeRefused {
		d.typeRefused(t)
	}
	tellShards(d, e.ShardEvents)
	if end := e.Ended; end != nil {
		why := endedError(d, end)
		if d.end(why); d.control.ended == why {
			d.control.yielded = end.Record
		}
	}
	// It has seen the gap, if there was one. This comes when shards that are not ours any more have been abandoned.
	d.exec.Gate.Judge(c.node.Suspended(), d.sleeps.steps.Load() != 0)
	d.failDropped()
	d.noteCounts()
	d.control.drains.note(d.control.node.Node)
	d.health.note(d.now(), c.node.Node)
	for i := range e.Events {
		if ofGate(e.Events[i]) {
			d.events.publish(d.View(), e.Events[i:i+1])
		}
	}
}

// ofGate reports whether an event says that the gate was closed or opened.
func ofGate(e membership.Event) bool {
	return e.Kind == membership.NodeSuspended || e.Kind == membership.NodeResumed
}

// publish makes a view current and has the transport follow it.
func (d *Driver) publish(v *membership.View, events []membership.Event) {
	c := &d.control
	if v.ClusterID != 0 && !c.cluster {
		c.cluster = true
		d.wires.SetCluster(v.ClusterID, v.Birth)
	}
	d.wires.SetStanding(stands(v))
	for i := range events {
		e := &events[i]
		logEvent(d.log, e, v)
		d.peerTable.warnAlone(e)
		switch e.Kind {
		case membership.MemberExited, membership.MemberDowned, membership.MemberRemoved:
			d.wires.Leaving(e.Member.ID)
		}
		if e.Kind == membership.MemberRemoved && e.Member.ID != d.self {
			d.peerTable.gone(e)
			c.removed.Add(d.now(), e.Member.ID, e.Last == membership.Down)
		}
	}
	if len(events) > 0 {
		ids := make([]peer.ID, len(v.Members))
		for i := range v.Members {
			ids[i] = v.Members[i].ID
		}
		d.wires.Expect(ids)
	}
	d.recorder.note(v)
	d.replicas.Follow(v)
	d.events.publish(v, slices.DeleteFunc(slices.Clone(events), ofGate)) // those of the gate come when it is as they say
}

// stands is how many working members a view has, and the address of the lowest: what removed nodes get to hear.
func stands(v *membership.View) (up uint32, lowest peer.Addr) {
	for i := range v.Members {
		if v.Members[i].Status.Working() {
			if up++; up == 1 {
				lowest = v.Members[i].ID.Addr
			}
		}
	}
	return up, lowest
}

// housekeeping does what is due beside the node: drains, time limits of parked messages, forgetting, leaving by force.
func (d *Driver) housekeeping(now time.Duration) {
	c := &d.control
	if c.reportAt != 0 && now >= c.reportAt {
		d.reportRunning()
	}
	d.dispatch.due(now)
	if now >= c.largeAt {
		c.largeAt = now + controlRest
		d.large.sweep()
	}
	for id, ok := c.removed.Due(now); ok; id, ok = c.removed.Due(now) {
		d.forget(id)
	}
	d.leaving.overdue(now)
	d.failDropped()
}

// forget drops everything about a removed incarnation.
func (d *Driver) forget(id peer.ID) {
	d.wires.Forget(id)
	if r := d.peerTable.drop(id); r != nil {
		d.asks.lose(r, route.PeerLost)
		r.lost()
	}
}

// end notes why the node ends; the control goroutine then shuts it down.
func (d *Driver) end(why *shutdown.EndedError) {
	if d.control.ended != nil {
		return
	}
	d.control.ended = why
	if reason, ok := endReasons[why.Kind]; ok {
		// The first phase exists. A shutdown that runs already goes on: this is what it waits for, or its end.
		_ = d.phases.begin(reason, "")
	}
}

// ErrDrainCancelled is what a caller gets that waits for a drain that was taken back.
var ErrDrainCancelled = errors.New("kith: the drain was taken back")

// drainWaits are the callers that wait until nothing lives here any more. It belongs to the control goroutine.
type drainWaits []chan error

// note answers the callers when their wait is over. Those of a node that ends hear of its end.
func (w *drainWaits) note(n *node.Node) {
	if len(*w) == 0 || node.Over(n) {
		return
	}
	var err error
	switch on, shards := node.Draining(n); {
	case n.State() == membership.StateLeaving:
		err = shard.ErrLeaving // what cannot move is stopped
	case shards == 0:
	case !on:
		err = ErrDrainCancelled
	default:
		return
	}
	for _, done := range *w {
		done <- err
	}
	*w = nil
}

// Drain moves everything away from a node, and waits until nothing lives there any more, or ctx ends; see
// kith.Node.Drain.
func Drain(ctx context.Context, d *Driver) error {
	if err := drain(ctx, d); err != nil {
		return fmt.Errorf("kith: drain: %w", err)
	}
	return nil
}

func drain(ctx context.Context, d *Driver) error {
	if err := cmp.Or(ctx.Err(), d.inbox.mayWait()); err != nil {
		return err
	}
	done := make(chan error, 1)
	d.inbox.post(func() {
		c := &d.control
		if err := d.command(shard.DrainCommand{On: true}); err != nil {
			done <- err
			return
		}
		d.parcels.HandOn(true)
		c.drains = append(c.drains, done)
		c.drains.note(c.node.Node)
	})
	select {
	case err := <-done:
		if err == nil {
			err = handedOn(ctx, d)
		}
		return err
	case <-d.done:
		return d.ended()
	case <-ctx.Done():
	}
	look, cancel := context.WithTimeout(context.Background(), notReadyPatience)
	defer cancel()
	shards, err := asked(look, d, func(n *node.Node) int { _, shards := node.Draining(n); return shards })
	if err != nil {
		return err
	}
	select {
	case err := <-done: // it was refused, or over, before the shards were counted
		return err
	default:
	}
	return &shard.DrainError{Shards: shards, Err: ctx.Err()}
}

// handedOn waits until no disk of this node is needed any more, which drains.
func handedOn(ctx context.Context, d *Driver) error {
	e := d.parcels.HandedOn(ctx)
	switch {
	case e == nil:
		return nil
	case d.Err() != nil:
		return d.Err()
	}
	return e
}

// Undrain takes a drain back; see kith.Node.Undrain.
func Undrain(ctx context.Context, d *Driver) error {
	if err := d.call(ctx, shard.DrainCommand{}); err != nil {
		return fmt.Errorf("kith: undrain: %w", err)
	}
	d.parcels.HandOn(false)
	return nil
}
