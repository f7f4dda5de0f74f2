// Calls: which calls into the handlers of a hosted shard are under way, and what those handlers see of their node.

package exec

import (
	"context"
	"sync"
	"time"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/core/lifetime"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
)

// Report passes on what operators want to know. It is part of entity.Runtime.
func (h *Host) Report(i entity.Incident) { h.x.report(h.t, i) }

// Unhandled passes on what ends without a handler. It is part of entity.Runtime.
func (h *Host) Unhandled(e *entity.Entity, why route.Reason, ask bool, _ []byte) {
	h.x.needs.Unhandled(h.t, h.shard, e.ID(), why, ask)
}

// Suspended reports whether the node has suspended itself. It is part of entity.Runtime.
func (h *Host) Suspended() bool { return h.x.Gate.Closed() }

// Context returns what a handler is given as its context. It is part of entity.Runtime.
func (h *Host) Context(limit time.Duration, from entity.Origin, corr uint64) context.Context {
	now := h.x.Clock.Now()
	parent := func() context.Context { return h.life.Context(now, limit, h.x.Gate.Closed, inTime) }
	ask := lifetime.Asked{Number: corr}
	if from != nil {
		ask.From = h.x.needs.Asker(from)
	}
	if ask.From == (peer.ID{}) { // one that is gone cancels nothing, and others that are gone have asked under its numbers
		return parent()
	}
	return h.x.cancels.Context(ask, now, limit, &h.t.cancelled, parent)
}

// Cancel ends the context of the handler of an ask of that node here; the asker has given up.
func Cancel(from peer.ID, corr uint64, x *Exec) {
	x.cancels.Cancel(lifetime.Asked{From: from, Number: corr})
}

// Answered forgets the context of an ask of that node; its handler on h has returned.
func Answered(from peer.ID, corr uint64, h *Host) {
	h.x.cancels.Answered(lifetime.Asked{From: from, Number: corr})
}

// inTime is a lifetime.Limiter.
func inTime(parent context.Context, d time.Duration, cause error) context.Context {
	ctx, end := context.WithTimeoutCause(parent, d, cause)
	_ = end // its time, or its parent's end, frees what it holds
	return ctx
}

// Now is the node's exact time. It is part of entity.Runtime.
func (h *Host) Now() time.Duration { return h.x.Clock.Now() }

// Slewed is the clock by which calls are timed. It is part of entity.Runtime.
func (h *Host) Slewed() time.Duration { return h.x.Clock.Slewed() }

// Wall is the time of day. It is part of entity.Runtime.
func (h *Host) Wall() time.Time { return time.Now() }

// Shards returns how many shards of the type live here, at least one. It is part of entity.Runtime.
func (h *Host) Shards() int { return max(1, int(h.t.living.Load())) }

// Calling notes a call of Stop, HandOver or Keep.Run, or a step of a type that gives SlowAfter. It is part of
// entity.Runtime.
func (h *Host) Calling(e *entity.Entity, what entity.Call) {
	switch what {
	case entity.StepCall:
		h.calls.begin(e, h.Slewed())
	case entity.RunCall:
		beginRun(h, e)
	default:
		beginStop(h, e, what)
	}
}

// Returned forgets it. It is part of entity.Runtime.
func (h *Host) Returned(e *entity.Entity, what entity.Call) {
	switch what {
	case entity.StepCall:
		h.calls.end(e)
	case entity.RunCall:
		endRun(h, e)
	default:
		endStop(h, e)
	}
}

// calls are those under way into one shard's handlers: steps of a type that gives SlowAfter, and stop calls of every
// type. Each writes here twice, under a lock that calls of this shard alone share.
type calls struct {
	mu    sync.Mutex
	list  map[*entity.Entity]underway
	stops map[*entity.Entity]stopCall // not nil: the host is in Exec.parting
	run   *entity.Entity              // the daemon that is called; nil: none
}

// stopCall is a call of Stop or HandOver that is under way, or one of a daemon or of Type.Hosted that was asked to end.
// That of Type.Hosted has no entity.
type stopCall struct {
	what  entity.Call
	at    time.Duration // when it began, or was asked to end
	since time.Duration // the same by the slewed clock, which a stall of the process does not move
	told  bool
}

// beginStop notes a stop call. No message passes here, and nothing that all shards share is written but for the first
// call of a shard since the ticker looked.
func beginStop(h *Host, e *entity.Entity, what entity.Call) {
	h.calls.mu.Lock()
	defer h.calls.mu.Unlock()
	noteStop(h, e, what)
}

// noteStop notes one. The lock of the calls is held.
func noteStop(h *Host, e *entity.Entity, what entity.Call) {
	c := &h.calls
	if c.stops == nil {
		c.stops = map[*entity.Entity]stopCall{}
		h.x.parting.add(h)
	}
	c.stops[e] = stopCall{what: what, at: h.Now(), since: h.Slewed()}
}

// beginRun notes a call of a daemon. It counts as a stop call once it is asked to end.
func beginRun(h *Host, e *entity.Entity) {
	h.calls.mu.Lock()
	defer h.calls.mu.Unlock()
	if h.calls.run = e; h.Ending() {
		noteStop(h, e, entity.RunCall)
	}
}

// endRun forgets it.
func endRun(h *Host, e *entity.Entity) {
	h.calls.mu.Lock()
	defer h.calls.mu.Unlock()
	h.calls.run = nil
	delete(h.calls.stops, e)
}

// toldToEnd notes that a daemon, or a Type.Hosted, that is being called was asked to end. It comes after Ending.
func toldToEnd(h *Host) {
	c := &h.calls
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, noted := c.stops[nil]; h.end.attended.Load() && !noted {
		noteStop(h, nil, entity.HostedCall)
	}
	if _, noted := c.stops[c.run]; c.run != nil && !noted {
		noteStop(h, c.run, entity.RunCall)
	}
}

// endStop forgets it.
func endStop(h *Host, e *entity.Entity) {
	h.calls.mu.Lock()
	defer h.calls.mu.Unlock()
	delete(h.calls.stops, e)
}

type underway struct {
	since time.Duration // by the slewed clock
	named bool
}

func (c *calls) begin(e *entity.Entity, now time.Duration) {
	c.mu.Lock()
	if c.list == nil {
		c.list = map[*entity.Entity]underway{}
	}
	c.list[e] = underway{since: now}
	c.mu.Unlock()
}

func (c *calls) end(e *entity.Entity) {
	c.mu.Lock()
	delete(c.list, e)
	c.mu.Unlock()
}

// late adds the incidents of calls that have taken longer than limit and were not named yet.
func (h *Host) late(now, limit time.Duration, found []entity.Incident) []entity.Incident {
	h.calls.mu.Lock()
	defer h.calls.mu.Unlock()
	for e, c := range h.calls.list {
		if took := now - c.since; took > limit && !c.named {
			c.named = true
			h.calls.list[e] = c
			found = append(found, entity.Incident{Type: h.t.typ.Name, ID: e.ID(), Shard: h.shard, Mode: h.t.typ.Mode,
				Kind: entity.Slow, Took: took, Running: true})
		}
	}
	return found
}

// watchCalls names calls that still run after their type's limit. Ticker.
func (x *Exec) watchCalls() {
	now := x.Clock.Slewed()
	for _, t := range x.types.Load().watched {
		if t.living.Load() == 0 {
			continue
		}
		var found []entity.Incident
		for _, at := range t.hosts.All {
			if h := at.Load(); h != nil {
				found = h.late(now, t.typ.SlowAfter, found)
			}
		}
		for _, i := range found {
			x.report(t, i)
		}
	}
}
