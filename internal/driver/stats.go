// Stats: what the driver counts. Hot counters are written by one goroutine each, rare ones by whoever meets the case.

package driver

import (
	"sync/atomic"
	"time"

	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/shard"
	"github.com/kith-io/kith/stats"
)

// counters are the node's rare ones.
type counters struct {
	nonsense       atomic.Uint64
	toldAt         atomic.Int64  // when nonsense was logged last; zero: never
	toldN          atomic.Uint64 // its number then
	mailLost       atomic.Uint64
	repliesLost    atomic.Uint64
	refusalsUntold atomic.Uint64
	unregistered   atomic.Uint64
}

// execCounters belong to one loop or worker.
type execCounters struct {
	handled atomic.Uint64
	since   atomic.Int64 // when the batch in hand was begun, by the coarse clock, or a little later; zero: none
	told    int64        // the since of the last stall that was reported; the ticker's
	_       [40]byte
}

// regionCounters are a type's rare ones.
type regionCounters struct {
	refusedHere  [route.Reasons]atomic.Uint64
	refusedThere atomic.Uint64
	unsent       atomic.Uint64
	parkedLost   atomic.Uint64
	panics, slow atomic.Uint64
}

func (c *regionCounters) refused(r route.Reason) {
	if int(r) < len(c.refusedHere) {
		c.refusedHere[r].Add(1)
	}
}

// TypeStats is a snapshot of one type on this node (package stats).
type TypeStats = stats.Type

// Stats is a snapshot of a node's counters since its start; the root package documents its fields.
type Stats struct {
	Uptime         time.Duration
	StepAge        time.Duration
	Handled        uint64
	AsksUnderway   int
	AsksLate       uint64
	AsksForeign    uint64
	BusyEntities   int64
	LargeUnderway  int
	LargeBytes     int64
	MailboxBytes   int64
	ControlDropped uint64
	ControlLost    uint64
	Nonsense       uint64
	RepliesLost    uint64
	RefusalsUntold uint64
	Unregistered   uint64
	Types          []stats.Type
	Transport      stats.Transport
	Courier        stats.Courier
	Members        membership.Stats
	Sharding       shard.Counters
}

// Stats gathers a snapshot.
func (d *Driver) Stats() Stats {
	s := Stats{
		Uptime: d.now(), StepAge: d.stepAge(), AsksUnderway: d.asks.underway(), AsksLate: d.asks.late.Load(),
		AsksForeign:  d.asks.foreign.Load(),
		BusyEntities: d.pool.busy.Load(), MailboxBytes: d.mail.used.Load(), ControlDropped: d.inbox.dropped.Load(),
		ControlLost: d.count.mailLost.Load(), Nonsense: d.count.nonsense.Load(),
		RepliesLost: d.count.repliesLost.Load(), RefusalsUntold: d.count.refusalsUntold.Load(),
		Unregistered: d.count.unregistered.Load(), Transport: d.wires.Stats(),
	}
	s.LargeUnderway, s.LargeBytes = d.large.count(), d.large.bytes.used.Load()
	if c := d.counts.Load(); c != nil {
		s.Courier, s.Members, s.Sharding = c.Courier, c.Members, c.Sharding
	}
	for _, w := range d.workers {
		s.Handled += w.count.handled.Load()
	}
	for _, p := range d.passes {
		s.Handled += p.count.handled.Load()
	}
	for _, r := range d.regions.Load().list {
		s.Types = append(s.Types, r.stats())
	}
	return s
}

func (r *Region) stats() TypeStats {
	t := TypeStats{
		Name: r.typ.Name, Shards: r.shards, ParkedBytes: r.parked.used.Load(), ParkedLost: r.count.parkedLost.Load(),
		Refused: map[string]uint64{}, RefusedRemote: r.count.refusedThere.Load(), Unsent: r.count.unsent.Load(),
		Panics: r.count.panics.Load(), Slow: r.count.slow.Load(),
	}
	sum := r.figures()
	sum.put(&t)
	for i := range r.slots {
		s := &r.slots[i]
		if s.route.Load() != nil {
			t.Known++
		}
		if h := r.hosts[i].Load(); h != nil {
			t.Hosted++
			if h.ending.Load() {
				t.Stopping++
			}
		}
	}
	for reason := range r.count.refusedHere {
		if n := r.count.refusedHere[reason].Load(); n > 0 {
			t.Refused[route.Reason(reason).String()] = n
		}
	}
	return t
}
