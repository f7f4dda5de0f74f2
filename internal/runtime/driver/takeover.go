// Takeover: how long the shards of a lost owner wait, which bounds how long messages wait for them.

package driver

import (
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/kith-io/kith/internal/core/flight"
	"github.com/kith-io/kith/internal/core/node"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/stats"
)

// takeover follows the takeover time as the cluster grows. What is not atomic belongs to the control goroutine.
type takeover struct {
	cfg *Config
	log *slog.Logger

	park     atomic.Int64 // how long a message may wait for a home, when that is derived
	outages  atomic.Pointer[node.Outages]
	open     []node.Outage // of the last step, until each is over
	noted    time.Duration // when outages were brought up to date last
	short    bool          // reported: ParkTime is below the takeover time
	outgrown bool          // reported: TakeoverTime is too short for so many members
}

func (t *takeover) init(cfg *Config, log *slog.Logger) {
	t.cfg, t.log = cfg, log
	t.park.Store(int64(node.ParkTimeFor(cfg.node().Takeover(1))))
	t.outages.Store(&node.Outages{})
}

// parkTime is how long a message may wait for a home. Any goroutine.
func (t *takeover) parkTime() time.Duration { return time.Duration(t.park.Load()) }

// follow keeps the time that messages may wait for a home above the takeover time, or warns once that a fixed
// one is below it. Control goroutine.
func (t *takeover) follow(takeover time.Duration) {
	need := node.ParkTimeFor(takeover)
	t.park.Store(int64(need))
	if t.short || t.cfg.Sharding.ParkTime == 0 || t.cfg.Sharding.ParkTime >= takeover {
		return
	}
	t.short = true
	t.log.Warn("ParkTime is below the takeover time: messages for a lost entity fail before it can live elsewhere",
		"park_time", t.cfg.Sharding.ParkTime, "takeover_time", takeover, "needed", need)
}

// outgrow warns once when the cluster has become too large for a takeover time that was fixed. Control goroutine.
func (t *takeover) outgrow(v *membership.View) {
	if t.outgrown || t.cfg.Sharding.TakeoverTime == 0 || t.cfg.Resolver.Strategy == node.ResolverOff {
		return
	}
	up := v.CountUp()
	if need := t.cfg.node().DerivedTakeover(up); need > t.cfg.Sharding.TakeoverTime {
		t.outgrown = true
		t.log.Warn("TakeoverTime is too short for this cluster: a cut-off node may go on while its shards live elsewhere",
			"takeover_time", t.cfg.Sharding.TakeoverTime, "needed", need, "members", up)
	}
}

// note brings outages up to date with a view. Control goroutine.
func (t *takeover) note(now time.Duration, n *flight.Node, v *membership.View, homes func(peer.ID) int) {
	next := *t.outages.Load()
	t.noted = now
	next.Follow(now, n.Node, t.cfg.node(), v, homes)
	t.outages.Store(&next)
}

// looksAgain is how often outages that only proof ends are brought up to date while no view says anything new: a leave
// notice is proof too.
const looksAgain = 500 * time.Millisecond

// stale reports whether that is due. Control goroutine.
func (t *takeover) stale(now time.Duration) bool {
	return len(t.open) > 0 && now-t.noted >= looksAgain &&
		slices.ContainsFunc(t.open, func(o node.Outage) bool { return o.Proof && o.Decided })
}

// over logs each outage that is over since the last step, and returns an event for it; nil mostly. Control goroutine.
func (t *takeover) over(now time.Duration, v *membership.View) (events []membership.Event) {
	if len(t.open) == 0 && node.NoOutage(t.outages.Load()) { // mostly
		return nil
	}
	list := t.outages.Load().At(now)
	for _, o := range t.open {
		if slices.ContainsFunc(list, func(x node.Outage) bool { return x.Member == o.Member }) {
			continue
		}
		m, in := v.Member(o.Member)
		e := membership.Event{Kind: membership.OutageOver, For: now - o.Since, Detail: "it is gone, and nothing waits for it"}
		switch {
		case in && m.Status != membership.Down && v.Reachable(o.Member):
			e.Detail = "it answers again"
		case o.Decided && (o.Proof || now >= o.Until):
			e.Detail = fmt.Sprintf("what lived there may be served elsewhere, %d shards", o.Shards)
		}
		if e.Member.ID = o.Member; in {
			e.Member = m
		}
		t.log.Info("outage is over", "member", e.Member.ID, "took", e.For, "why", e.Detail, "view", v.Seq)
		events = append(events, e)
	}
	t.open = list
	return events
}

// told returns the outages by the wall clock; the node's clock began at start. Any goroutine.
func (t *takeover) told(start time.Time, now time.Duration) (list []stats.Outage) {
	for _, o := range t.outages.Load().At(now) {
		x := stats.Outage{Member: o.Member, Since: start.Add(o.Since), Decided: o.Decided, Shards: o.Shards,
			Late: o.Late(now), NoQuorum: o.NoQuorum}
		if o.Until != 0 {
			x.ServedBy = start.Add(o.Until)
		}
		list = append(list, x)
	}
	return list
}

// homesAt returns how many shards of all types live at another node, as far as this one knows. They are counted as
// routes change: of a type with a million shards the control goroutine could not look at each.
func (t *peerTable) homesAt(id peer.ID) int {
	if n := t.get(id); n != nil {
		return int(n.homes.Load())
	}
	return 0
}
