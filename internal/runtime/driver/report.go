// Reports: undelivered messages and incidents of handlers, to the embedder's hooks and the log.

package driver

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kith-io/kith/internal/base/callback"
	"github.com/kith-io/kith/internal/base/logs"
	"github.com/kith-io/kith/internal/core/hello"
	"github.com/kith-io/kith/internal/core/node"
	"github.com/kith-io/kith/internal/core/plane"
	"github.com/kith-io/kith/internal/runtime/exec"
	"github.com/kith-io/kith/internal/runtime/transport"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/shard"
	"github.com/kith-io/kith/shutdown"
	"github.com/kith-io/kith/wire"
)

// reports are what a node tells its embedder: by records, which nobody waits for, and by hooks.
type reports struct {
	logged     *logs.Queue
	hooks      chan struct{} // capacity 1: they are to be called
	tickerStop chan struct{}
}

// maxUndelivered bounds the kinds of report kept by shard between two tellings, and then those kept by type.
const maxUndelivered = 4096

// undeliveredTable gathers reports for Config.Undelivered. It loses no count: what finds no entry of its own is counted
// without its shard, and beyond maxUndelivered of these without its peer and limit, of which there are no more than
// types and reasons.
type undeliveredTable struct {
	log  *slog.Logger
	hook func(Undelivered) // nil for none

	callbacks *callback.Guard

	mu      sync.Mutex
	entries map[undeliveredKey]*Undelivered
	losses  map[lossKey]*loss
}

// lossEvery is how often losses of one type, reason and node are logged.
const lossEvery = time.Second

// lossKey is what losses are summed by for the log.
type lossKey struct {
	typ string
	why cause
}

// loss is what there is to log of it.
type loss struct {
	Undelivered               // Count zero: nothing
	due         time.Duration // from when on it may be logged
}

type undeliveredKey struct {
	r     *Region // nil: not known
	shard route.ShardID
	why   cause
}

// cause is why messages were not delivered: at which peer, zero if they have not left this node, and over which
// bound.
type cause struct {
	peer   peer.ID
	reason route.Reason
	limit  int
}

func (t *undeliveredTable) add(r *Region, shard route.ShardID, why cause, n uint64, id []byte) {
	t.addAll(r, shard, why, n, []string{string(id)})
}

func (t *undeliveredTable) addAll(r *Region, shard route.ShardID, why cause, n uint64, ids []string) {
	if n == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.entry(undeliveredKey{r, shard, why})
	e.Count += n
	for _, id := range ids {
		if len(e.Samples) < plane.MaxRefusedSamples {
			e.Samples = append(e.Samples, id)
		}
	}
}

// entry returns the entry that counts for k: its own while there is room. The lock is held.
func (t *undeliveredTable) entry(k undeliveredKey) *Undelivered {
	for _, key := range [...]undeliveredKey{k, {k.r, route.NoShard, k.why},
		{k.r, route.NoShard, cause{reason: k.why.reason}}} {
		if e := t.entries[key]; e != nil {
			return e
		}
		k = key
		if most := maxUndelivered; len(t.entries) < most || key.shard == route.NoShard && len(t.entries) < 2*most {
			break
		}
	}
	if t.entries == nil {
		t.entries = map[undeliveredKey]*Undelivered{}
	}
	e := &Undelivered{Shard: k.shard, Reason: k.why.reason, Peer: k.why.peer, Limit: k.why.limit}
	if k.r != nil {
		e.Type = k.r.typ.Name
	}
	t.entries[k] = e
	return e
}

func (t *undeliveredTable) take() []*Undelivered {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := make([]*Undelivered, 0, len(t.entries))
	for _, e := range t.entries {
		list = append(list, e)
	}
	t.entries = nil
	sortUndelivered(list)
	return list
}

// sortUndelivered puts reports into the order in which they are reported.
func sortUndelivered(list []*Undelivered) {
	slices.SortFunc(list, func(a, b *Undelivered) int {
		if c := strings.Compare(a.Type, b.Type); c != 0 {
			return c
		}
		return cmp.Or(cmp.Compare(a.Shard, b.Shard), cmp.Compare(a.Reason, b.Reason), a.Peer.Compare(b.Peer),
			cmp.Compare(a.Limit, b.Limit))
	})
}

// tell calls the hook, and logs what is due; in the end it logs all. The goroutine of the hooks, and the node's end.
func (t *undeliveredTable) tell(now time.Duration, end bool) {
	list := t.take()
	for _, u := range t.sum(list, now, end) {
		shard := any(u.Shard)
		if u.Shard == route.NoShard {
			shard = "several"
		}
		t.log.Warn("messages not delivered", "type", u.Type, "shard", shard, "reason", u.Reason.String(),
			"error", u.Err(), "count", u.Count, "samples", u.Samples)
	}
	for _, u := range list {
		if t.hook != nil {
			_ = t.callbacks.Call("Undelivered", func() { t.hook(*u) })
		}
	}
}

// sum adds reports to the sums by type, reason and node, and returns those that are due, or all in the end. The first
// one is due at once, what follows it within lossEvery when that is over: no count is lost.
func (t *undeliveredTable) sum(list []*Undelivered, now time.Duration, end bool) (tell []*Undelivered) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, u := range list {
		l := t.lossOf(u, now)
		if l.Count == 0 {
			l.Shard = u.Shard
		} else if l.Shard != u.Shard {
			l.Shard = route.NoShard
		}
		l.Count += u.Count
		l.Samples = append(l.Samples, u.Samples[:min(len(u.Samples), plane.MaxRefusedSamples-len(l.Samples))]...)
	}
	for key, l := range t.losses { // in whatever order: sorted below
		switch {
		case l.Count > 0 && (end || now >= l.due):
			u := l.Undelivered
			tell = append(tell, &u)
			l.Count, l.Samples, l.due = 0, nil, now+lossEvery
		case l.Count == 0 && now >= l.due:
			delete(t.losses, key)
		}
	}
	sortUndelivered(tell)
	return tell
}

// lossOf returns the sum that a report belongs to: its own while there is room. The lock is held.
func (t *undeliveredTable) lossOf(u *Undelivered, now time.Duration) *loss {
	key := lossKey{u.Type, cause{u.Peer, u.Reason, u.Limit}}
	if t.losses[key] == nil && len(t.losses) >= maxUndelivered {
		key.why = cause{reason: u.Reason}
	}
	l := t.losses[key]
	if l == nil {
		l = &loss{Undelivered{Type: u.Type, Reason: u.Reason, Peer: key.why.peer, Limit: key.why.limit}, now}
		if t.losses == nil {
			t.losses = map[lossKey]*loss{}
		}
		t.losses[key] = l
	}
	return l
}

// some reports whether there is something to tell.
func (t *undeliveredTable) some(now time.Duration) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, l := range t.losses {
		if now >= l.due {
			return true
		}
	}
	return len(t.entries) > 0
}

// crowdFrom is the number of entities of a type on one node from which they are reported, where nothing ends idle ones.
const (
	crowdFrom  = 100_000
	crowdEvery = time.Minute
)

// tellCrowds logs types that have from entities here, or more, and no bound that ends any: at each doubling. Ticker.
func tellCrowds(d *Driver, from uint64) {
	for _, r := range d.regions.Load().list {
		if t := &r.typ; t.IdleAfter > 0 || t.MaxActive > 0 || t.Remembered != nil || r.keep != nil {
			continue
		}
		n := uint64(0)
		for h := range exec.Hosts(r.hosts) {
			n += exec.Entities(h)
		}
		if n < max(from, 2*r.crowd.Load()) {
			continue
		}
		r.crowd.Store(n)
		d.log.Warn("entities of a type only grow in number: nothing ends those that are idle", "type", r.typ.Name,
			"entities", n)
	}
}

// invalidEvery is how often frames that make no sense are logged.
const invalidEvery = time.Second

// invalidFrames counts frames that made no sense. Safe for concurrent use.
type invalidFrames struct {
	log    *slog.Logger
	clock  *exec.Clock
	count  atomic.Uint64
	toldAt atomic.Int64  // when one was logged last; zero: never
	toldN  atomic.Uint64 // its number
}

// note counts a frame that a peer sent, and logs it unless one was logged a moment ago: the record says how many were
// not.
func (c *invalidFrames) note(from peer.ID, kind wire.Kind, err error) {
	n := c.count.Add(1)
	now, last := int64(c.clock.Now()), c.toldAt.Load()
	if last != 0 && now-last < int64(invalidEvery) || !c.toldAt.CompareAndSwap(last, now) {
		return
	}
	skipped := max(0, int64(n-1-c.toldN.Swap(n)))
	c.log.Warn("frame refused", "peer", from, "kind", kind, "error", err, "not_logged", skipped)
}

// logEvent turns a change of membership into a record.
func logEvent(log *slog.Logger, e *membership.Event, v *membership.View) {
	switch e.Kind {
	case membership.LeaderChanged:
		log.Info("leader changed", "leader", leaderName(e.Leader), "view", v.Seq)
	case membership.MetadataChanged:
		log.Debug("metadata changed", "keys", len(v.Metadata), "view", v.Seq)
	case membership.PartitionsChanged:
		log.Debug("partitions changed", "partitions", len(v.Partitions), "view", v.Seq)
	case membership.RoleLeaderChanged:
		log.Debug("role leader changed", "role", e.Role, "leader", e.Leader, "view", v.Seq)
	case membership.UnreachableMember:
		log.Warn("member unreachable", "member", e.Member.ID, "status", e.Member.Status, "by", accusers(v, e.Member.ID),
			"view", v.Seq)
	case membership.MemberQuarantined:
		log.Warn("member quarantined", "member", e.Member.ID, "status", e.Member.Status, "reason", e.Reason(), "view", v.Seq)
	case membership.SelfSuspected:
		log.Error("this node gave up on most members and takes the fault for its own", "reason", e.Reason())
	case membership.MemberDowned:
		level := slog.LevelWarn
		if node.Started(e.Member.Cause) {
			level = slog.LevelInfo // its next process is here: nobody decided anything
		}
		log.Log(context.Background(), level, "member downed", "member", e.Member.ID, "was", e.Previous, "why", e.Reason(),
			"view", v.Seq)
	case membership.MemberRemoved:
		log.Info("member removed", "member", e.Member.ID, "was", e.Previous, "why", e.Reason(), "view", v.Seq)
	case membership.DuplicateCluster:
		log.Error("another cluster of this name lives: end the nodes of one of them", "at", e.Duplicate.Via, "cluster",
			clusterName(e.Duplicate.ClusterID), "birth", e.Duplicate.Birth, "ours", clusterName(v.ClusterID),
			"our_birth", v.Birth, "why", e.Detail)
	case membership.SplitCluster:
		log.Error("two sides of this cluster live, which have removed each other: restart the nodes of one of them",
			"met", e.By, "cluster", clusterName(e.Duplicate.ClusterID), "birth", e.Duplicate.Birth, "why", e.Detail)
	case membership.FormingHeld:
		log.Warn("no cluster is found, and this node forms none", "why", e.Detail)
	case membership.NodeSuspended:
		log.Warn("suspended: no message is handled until others confirm this node", "node", v.Self, "why", e.Detail)
	case membership.NodeResumed:
		log.Info("handling messages again", "node", v.Self, "why", e.Detail, "suspended", e.For)
	case membership.NotUpYet:
		log.Warn("this node is not up yet", "waits_for", e.Waiting.For, "why", e.Detail)
	case membership.ClusterFormed:
		log.Info("cluster formed", "cluster", clusterName(v.ClusterID), "birth", v.Birth, "because", e.Detail)
	case membership.JoinPutOff:
		log.Warn("a newcomer is put off: the link between it and a member is dead", "joiner", e.By, "why", e.Detail)
	case membership.SettingsDiffer:
		log.Warn("a join was let through with other settings", "difference", e.Detail)
	case membership.ConvergenceBlocked:
		log.Warn("no convergence: the leader cannot act", "for", e.Convergence.For, "members", e.Convergence.Blocking,
			"blockers", fmt.Sprint(e.Convergence.Blockers), "view", v.Seq)
	case membership.ConvergenceRestored:
		log.Info("convergence is back", "after", e.Convergence.For, "view", v.Seq)
	default:
		about := []any{"event", e.Kind, "member", e.Member.ID, "status", e.Member.Status, "view", v.Seq}
		if e.Previous != membership.Removed { // it was no member before
			about = append(about, "was", e.Previous)
		}
		log.Info("member changed", about...)
	}
}

func leaderName(id peer.ID) string {
	if id.IsZero() {
		return "none"
	}
	return id.String()
}

// accusers returns the members that hold a member unreachable.
func accusers(v *membership.View, subject peer.ID) (by []string) {
	for _, a := range v.Accusations {
		if a.Subject == subject {
			by = append(by, a.Observer.String())
		}
	}
	return by
}

// clusterName writes the id of a cluster as all records and events do.
func clusterName(id uint64) string { return fmt.Sprintf("%016x", id) }

// logRefusal tells that a peer refuses this node. Another incarnation at the address of a member is what a restart
// looks like from here; all else wants an operator.
func logRefusal(log *slog.Logger, err *hello.RefusedError) {
	switch id, birth, ok := err.Cluster(); {
	case err.Reason == hello.RefusedIncarnation:
		log.Info("another process answers at the address of a member", "member", err.Peer, "theirs", err.Theirs)
	case ok:
		ours, _ := strconv.ParseUint(err.Ours, 16, 64)
		log.Error("peer refused this node", "peer", err.Peer, "reason", err.Reason, "differs", err.Key,
			"ours", clusterName(ours), "theirs", clusterName(id), "their_birth", birth)
	default:
		log.Error("peer refused this node", "peer", err.Peer, "reason", err.Reason, "differs", err.Key, "ours", err.Ours,
			"theirs", err.Theirs)
	}
}

var shardEventNames = map[shard.EventKind]string{
	shard.CoordinatorStarted: "coordinator started", shard.CoordinatorReady: "coordinator ready",
	shard.CoordinatorStopped: "coordinator stopped", shard.ShardAllocated: "shard allocated",
	shard.ShardReleased: "shard released", shard.StaleRefused: "stale order refused",
	shard.MoveBegan: "move began", shard.MoveMarked: "move marked", shard.MoveHandedOver: "move handed over",
	shard.MoveDone: "move done", shard.MoveAborted: "move aborted", shard.MoveReturned: "move returned",
}

// tellShards logs what has happened in sharding, and passes it to readers.
func tellShards(d *Driver, events []shard.Event) {
	types := d.regions.Load()
	for i := range events {
		logShard(d.log, d.start, types, &events[i])
	}
	d.events.publishShards(d.start.Add(d.now()), func(id route.TypeID) string {
		if r := types.byID.At(id); r != nil {
			return r.typ.Name
		}
		return ""
	}, events)
}

// logShard turns a fact about sharding into a record: few are about coordinators and waits, many about single shards.
// start is when the clock of the events began.
func logShard(log *slog.Logger, start time.Time, types *regionTable, e *shard.Event) {
	name := shardEventNames[e.Kind]
	if name == "" {
		name = "sharding event"
	}
	typ := any(uint32(e.Type))
	if r := types.byID.At(e.Type); r != nil {
		typ = r.typ.Name
	}
	switch e.Kind {
	case shard.CoordinatorStarted, shard.CoordinatorReady, shard.CoordinatorStopped:
		log.Info(name, "type", typ, "term", e.Term)
	case shard.ShardsWait:
		shards, why := any(e.Shards), "it may still serve them where nobody hears it: they live nowhere until then"
		if e.Shards == 0 {
			shards, why = "unknown", "nobody knows yet what it owned: no shard without a home gets one until then"
		}
		log.Warn("shards of a lost member wait", "type", typ, "member", e.Home, "shards", shards,
			"until", start.Add(e.Until), "why", why)
	case shard.MoveBegan, shard.MoveMarked, shard.MoveHandedOver, shard.MoveDone, shard.MoveAborted, shard.MoveReturned:
		log.Debug(name, "type", typ, "shard", e.Shard, "term", e.Number.Term, "move", e.Number.Seq, "home", e.Home,
			"to", e.To, "fence", e.Fence)
	case shard.MoveUntaken:
		log.Warn("a shard that was to move stays: what is left of it is not taken", "type", typ, "shard", e.Shard, "move",
			fmt.Sprintf("%d.%d", e.Number.Term, e.Number.Seq), "to", e.To, "error", e.Err)
	case shard.StrategyFault:
		log.Warn("the strategy of a type is wrong: the default gives its shards homes, and nothing moves for balance",
			"type", typ, "times", e.Shards, "error", e.Err)
	default:
		log.Debug(name, "type", typ, "shard", e.Shard, "term", e.Term, "home", e.Home, "fence", e.Fence)
	}
}

// endedError is what a node leaves behind when its membership has ended.
func endedError(d *Driver, end *membership.Ended) *shutdown.EndedError {
	why := &shutdown.EndedError{Kind: end.Kind, By: end.By, At: d.start.Add(end.At), Reason: end.Reason, Cause: end.Cause}
	if why.By == d.self {
		why.By = peer.ID{}
	}
	if end.Kind == membership.EndDuplicate && end.Record != nil {
		for _, a := range end.Record.Others {
			why.Seeds = append(why.Seeds, a.String())
		}
	}
	return why
}

// warnAlone warns of a cluster that was formed by a node that has no seed but itself, and keeps no record: nothing can
// keep it from forming another one when it is started again.
func (t *peerTable) warnAlone(e *membership.Event) {
	if e.Kind != membership.ClusterFormed || t.cfg.Directory != "" || len(t.cfg.Seeds) == 0 {
		return
	}
	for _, s := range t.cfg.Seeds {
		if a, err := peer.ParseAddr(s); err != nil || a != t.view().Self.Addr && !transport.Own(t.wires, a) {
			return
		}
	}
	t.log.Warn("this node is its own only seed and keeps no record: started again it forms a second cluster", "seeds",
		fmt.Sprint(t.cfg.Seeds))
}
