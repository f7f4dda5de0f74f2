// Stats: what the driver counts. Hot counters are written by one goroutine each, rare ones by whoever meets the case.

package driver

import (
	"sync/atomic"
	"time"

	"github.com/kith-io/kith/internal/node"
	"github.com/kith-io/kith/internal/transport"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/shard"
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

// What the transport tells of each peer, in Stats.Transport.Links.
type (
	// PeerStats concerns one peer: its links and its round trip.
	PeerStats = transport.PeerStats
	// LinkStats concerns one data connection to a peer.
	LinkStats = transport.LinkStats
	// CourierStats concerns control messages; see docs/control-messages.md.
	CourierStats = node.CourierStats
	// MemberStats counts what membership made of what it received.
	MemberStats = membership.Stats
	// ShardingStats counts letters of sharding that were not followed.
	ShardingStats = shard.Counters
)

// Stats is a snapshot of a node's counters since its start.
type Stats struct {
	Uptime         time.Duration
	StepAge        time.Duration // how long ago the control goroutine last stepped
	Handled        uint64        // messages that loops and workers gave to their hosts
	AsksUnderway   int
	AsksLate       uint64 // answers that came when nobody waited any more
	AsksForeign    uint64 // answers of nodes that were not asked: the asks go on waiting
	BusyEntities   int64  // Blocking entities that have a goroutine
	LargeUnderway  int    // large messages of this node that are not over
	LargeBytes     int64  // copies of them, of Config.BulkBudget
	MailboxBytes   int64  // that wait for Blocking entities, of Config.MailboxBudget
	ControlDropped uint64 // control frames that found the inbox full
	ControlLost    uint64 // control frames that could not be queued for their peer
	Nonsense       uint64 // frames that peers sent and that made no sense
	RepliesLost    uint64 // answers that found no room on the way to the asker
	RefusalsUntold uint64 // refusals whose sender could not be told
	Unregistered   uint64 // messages refused because their type is not registered here
	Types          []TypeStats
	Transport      transport.Stats
	Courier        CourierStats
	Members        MemberStats
	Sharding       ShardingStats
}

// TypeStats is a snapshot of one type on this node. Counts are those since the node's start; what handlers did is up to
// 0.1 s old, that of a Blocking entity up to the end of its run.
type TypeStats struct {
	Name          string
	Shards        uint32
	Hosted        int // shards that live here
	Stopping      int // of them, being stopped
	Known         int // shards whose home is known here
	ParkedBytes   int64
	ParkedLost    uint64            // parked messages that failed: no home in time, or the node ended
	Refused       map[string]uint64 // messages to entities here that were refused, by reason
	RefusedRemote uint64            // tells of this node that their receivers refused
	Unsent        uint64            // messages that waited for a node when it was removed or refused us, or this one ended

	Entities     uint64 // that live here, idle ones included
	MailboxBytes uint64 // that wait for them, with entity.RecordOverhead for each message
	Handled      uint64 // messages given to handlers
	Failed       uint64 // of them, Receive returned an error
	NoReply      uint64 // asks that were left without a reply
	AnswersLost  uint64 // answers that the asker's side did not take
	Abandoned    uint64 // accepted messages dropped because the shard was lost
	Made         uint64 // instances that New made
	Passivated   uint64 // instances that were let go because they were idle or asked for it
	Stopped      uint64 // instances that were stopped, for whatever reason
	Evicted      uint64 // idle entities that were let go because of Type.MaxActive
	Crashes      uint64 // instances that a panic ended, or that New failed to make: restarts, when messages follow
	Crashed      uint64 // entities that panicked within Type.RestartWindow, if the type counts panics
	GivenUp      uint64 // entities given up after a panic, as Type.Restart and MaxRestarts say
	Dropped      uint64 // accepted messages dropped with them

	Timers                     uint64 // running
	TimersFired, TimersDropped uint64 // dropped ones went with their instance or their shard

	Panics, Slow uint64 // calls into handlers that panicked, that took too long
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
