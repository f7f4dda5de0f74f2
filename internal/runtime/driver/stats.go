// Stats: what the driver counts. Hot counters are written by one goroutine each, rare ones where the case is met.

package driver

import (
	"sync/atomic"
	"time"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/base/callback"
	"github.com/kith-io/kith/internal/runtime/exec"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/shard"
	"github.com/kith-io/kith/stats"
)

// counters are the node's rare ones.
type counters struct {
	mailLost       atomic.Uint64
	repliesLost    atomic.Uint64
	callbacks      callback.Guard
	refusalsUntold atomic.Uint64
}

// regionCounters are a type's rare ones.
type regionCounters struct {
	refusedThere atomic.Uint64
	unsent       atomic.Uint64
	parkedLost   atomic.Uint64
	waits        atomic.Uint64 // calls of TellWait that found no room
	waiting      atomic.Int64  // of them, those that wait now
	told, untold atomic.Uint64 // asks that were given up, with the receiver notified, or not

	abandonedTells, abandonedAsks atomic.Uint64
}

// TypeStats is a snapshot of one type on this node (package stats).
type TypeStats = stats.Type

// Stats is a snapshot of a node's counters since its start; the root package documents its fields.
type Stats struct {
	Uptime             time.Duration
	Suspension         stats.Suspension
	StepAge            time.Duration
	LongestStall       time.Duration
	Envelopes          uint64
	AsksUnderway       int
	AsksLate           uint64
	AsksForeign        uint64
	BusyEntities       int64
	LargeUnderway      int
	LargeBytes         int64
	MailboxBytes       int64
	ControlDropped     uint64
	ControlLost        uint64
	InvalidFrames      uint64
	RepliesLost        uint64
	CallbackPanics     uint64
	UnreportedRefusals uint64
	Unregistered       uint64
	LogDropped         uint64
	LogStalled         time.Duration
	Types              []stats.Type
	Transport          stats.Transport
	Courier            stats.Courier
	Members            membership.Stats
	Sharding           shard.Counters
	Replicated         stats.Replicated
	Watches            stats.Watches
	Values             []stats.Values
}

// Stats gathers a snapshot.
func (d *Driver) Stats() Stats {
	s := Stats{
		Uptime: d.now(), StepAge: d.stepAge(), LongestStall: d.sleeps.stalls.longest(),
		AsksUnderway: d.asks.underway(), AsksLate: d.asks.late.Load(),
		AsksForeign:  d.asks.foreign.Load(),
		BusyEntities: d.exec.Busy(), MailboxBytes: d.mail.waits(), ControlDropped: d.inbox.dropped.Load(),
		ControlLost: d.count.mailLost.Load(), InvalidFrames: d.nonsense.count.Load(),
		RepliesLost: d.count.repliesLost.Load(), UnreportedRefusals: d.count.refusalsUntold.Load(),
		Unregistered: d.exec.Unregistered(), Envelopes: d.exec.Handled(), Transport: d.wires.Stats(),
		CallbackPanics: d.count.callbacks.Count(), LogDropped: d.logged.Dropped(), LogStalled: d.logged.Stalled(),
	}
	s.Replicated, s.Watches, s.Values = d.replicas.Stats(), exec.Watches(&d.exec), d.parcels.Values()
	s.LargeUnderway, s.LargeBytes = d.large.count(), d.large.bytes.used.Load()
	if c := d.counts.Load(); c != nil {
		s.Courier, s.Members, s.Sharding = c.Courier, c.Members, c.Sharding
		s.Suspension = d.health.suspension(c.Suspensions)
		s.Watches.Told = c.Watches.ByCause()
	}
	s.Suspension.Session = d.control.session.stats(d.start, d.now())
	s.Suspension.Tenure = d.control.tenure.stats(d.start, d.now())
	for _, r := range d.regions.Load().list {
		s.Types = append(s.Types, r.stats())
	}
	return s
}

func (r *Region) stats() TypeStats {
	t := TypeStats{
		Name: r.typ.Name, Kind: kindOf(r.crew != nil, r.keep), Shards: r.shards, ParkedBytes: r.parked.used.Load(),
		ParkedLost: r.count.parkedLost.Load(),
		Refused:    map[string]uint64{}, RefusedRemote: r.count.refusedThere.Load(), Unsent: r.count.unsent.Load(),
	}
	put(&t, r.hosts.Stats())
	t.Lease = r.leaseStats()
	t.Pressure.Waits, t.Pressure.Waiting = r.count.waits.Load(), int(r.count.waiting.Load())
	t.Expired += r.hosts.Refused(route.Expired)
	t.Abandoned = r.count.abandonedTells.Load() + r.count.abandonedAsks.Load()
	t.Hosted, t.Stopping = r.hosts.Hosted()
	t.Panics, t.Slow = r.hosts.Incidents()
	t.StopsHung = exec.StopsHung(r.hosts)
	t.Cancels = stats.Cancels{Told: r.count.told.Load(), Untold: r.count.untold.Load(), Ended: exec.Cancelled(r.hosts)}
	t.States.Lost = exec.StatesLost(r.hosts)
	t.Recalls.Waiting, t.Recalls.Read, t.Recalls.Failed = exec.Recalls(r.hosts)
	for _, c := range r.cells.All {
		if c.route.Load() != nil {
			t.Known++
		}
	}
	for reason := range route.Reason(route.Reasons) {
		if n := r.hosts.Refused(reason); n > 0 {
			t.Refused[reason.String()] = n
		}
	}
	return t
}

// put fills in what the type's shards have counted.
func put(t *TypeStats, st entity.Stats) {
	t.Handled = st.Delivered - min(st.Delivered, st.TimersHandled) // one may be newer than the other
	t.Failed, t.NoReply, t.AnswersLost = st.Failed, st.NoReply, st.AnswersLost
	t.NotMade = st.NotMade
	t.Made, t.Passivated, t.Stopped = st.Made, st.Passivated, st.Stopped
	t.TimersFired, t.TimersDropped, t.Timers = st.TimersFired, st.TimersDropped, uint64(st.Timers)
	t.TimersLateP50, t.TimersLateP99 = st.Late.Quantile(0.5), st.Late.Quantile(0.99)
	t.TimersLateMax = st.Late.Max
	t.Crashes, t.GivenUp, t.Dropped, t.Evicted = st.Crashes, st.GivenUp, st.Dropped, st.Evicted
	t.Expired = st.Expired
	t.States.HandedOver, t.States.TakenUp = st.HandedOver, st.TakenUp
	t.Crashed = uint64(st.Crashed)
	t.Pressure.Filled, t.Pressure.Full = st.Filled, st.Full
	t.Entities, t.MailboxBytes = uint64(st.Live), uint64(st.QueuedBytes)
}

// kindOf says what a type was registered as, as stats.Type.Kind does: of workers, or kept alive so.
func kindOf(crewed bool, k *Keep) string {
	switch {
	case crewed:
		return "pool"
	case k == nil:
		return "entities"
	case k.Run != nil:
		return "daemons"
	}
	return "singleton"
}
