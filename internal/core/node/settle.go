// Settling: what ends every verb of a node. What one machine made goes on to the next, in a fixed order, and then each
// appends its part to the one Effects.

package node

import (
	"slices"

	"github.com/kith-io/kith/internal/core/courier"
	"github.com/kith-io/kith/internal/core/watch"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/sbr"
	"github.com/kith-io/kith/shard"
	"github.com/kith-io/kith/wire"
)

// Effects is what one step asks the runtime to do, in this order: publish View, carry out Suspend, deliver Events,
// carry out Hosts, then Routes, then Marks, then send Mail. Everything is valid until the next verb. Each machine's
// part is appended in the order membership, resolver, sharding, courier.
type Effects struct {
	View        *membership.View
	Suspend     *Suspend // nil: as before
	Events      []membership.Event
	Hosts       []shard.HostOrder
	Routes      []shard.RouteChange
	Marks       []shard.Mark
	Untaken     []shard.Untaken // of moves: to be refused, for nobody handles it any more
	Mail        []peer.Mail
	TypeRefused []shard.TypeRefused
	Answers     []shard.MoveAnswer // to shard.AskMoveCommands
	Measure     []route.TypeID     // each is answered with a shard.LoadsCommand
	ShardEvents []shard.Event
	Ended       *membership.Ended

	Decisions      []Decision      // of the resolver, explained
	ResolverEvents []ResolverEvent // what else it has to tell
	Lease          []LeaseOp       // of the resolver; each is answered with a LeaseResult
	Session        SessionEffects
	Received       []Received     // control messages that came in segments, for observers only
	Full           []*CourierFull // control messages without room: the first to each peer, until there is room again
	Notices        []Received     // what other runtimes tell this one, in their order
	Untold         []peer.Mail    // notices to others that may not have come there, and will not be sent again

	// Of watches, after Routes: what hosts are to look at, then nodes that watch nothing here any more, then ends for
	// entities here.
	Looks []watch.Look
	Gone  []peer.ID
	Told  []watch.Told
}

// emptied returns effects without content that use the memory of e.
func (e *Effects) emptied() Effects {
	return Effects{Events: e.Events[:0], Hosts: e.Hosts[:0], Routes: e.Routes[:0], Marks: e.Marks[:0],
		Untaken: e.Untaken[:0], Mail: e.Mail[:0],
		TypeRefused: e.TypeRefused[:0], Answers: e.Answers[:0], Measure: e.Measure[:0],
		ShardEvents: e.ShardEvents[:0], Decisions: e.Decisions[:0],
		ResolverEvents: e.ResolverEvents[:0], Lease: e.Lease[:0], Session: e.Session.emptied(),
		Received: e.Received[:0], Full: e.Full[:0],
		Notices: e.Notices[:0], Untold: e.Untold[:0], Looks: e.Looks[:0], Gone: e.Gone[:0], Told: e.Told[:0]}
}

// keepBodies copies bodies out of the machines' arenas, which their next verb reuses. Only a decision to down somebody,
// a leave, and a runtime that calls two verbs before one Drain take this way.
func (e *Effects) keepBodies() {
	for i := range e.Mail {
		e.Mail[i].Body = slices.Clone(e.Mail[i].Body)
	}
	for i := range e.Received {
		e.Received[i].Body = slices.Clone(e.Received[i].Body)
	}
	for i := range e.Notices {
		e.Notices[i].Body = slices.Clone(e.Notices[i].Body)
	}
}

// parts is room for what a machine hands over.
type parts struct {
	members  membership.Effects
	resolver sbr.Effects
	shards   shard.Effects
	courier  courier.Effects
	watches  watch.Effects
}

// settle ends a verb. A new view goes to the resolver and then to sharding; sharding's deadlines are handled afterwards
// when the verb was a Tick. A member that the resolver downs is downed in the same step, and once sharding has given
// everything back the member leaves.
func (n *Node) settle(ticked bool) {
	n.sessions.acts(n)
	n.tenures.acts(n)
	n.decide()
	if s := n.resolver.Peek().Suspend; s != nil {
		n.resolve(s.On, s.Why)
	}
	n.feed()
	if ticked {
		n.shards.Tick(n.now)
		n.watches.Tick(n.now)
	}
	n.sessions.follows(n)
	n.tenures.follows(n)
	n.confirmed()
	if n.shards.Peek().Drained && !n.left {
		n.left = true
		n.gather()
		n.out.keepBodies()
		// A member that cannot leave (not admitted yet, or over) has ended or will: its own effects say so.
		_ = n.members.Do(n.now, membership.LeaveCommand{})
		n.feed()
		n.confirmed()
	}
	n.gather()
	n.courier.Drain(&n.parts.courier)
	n.out.Mail, n.out.Full = append(n.out.Mail, n.parts.courier.Mail...), append(n.out.Full, n.parts.courier.Full...)
	n.out.Untold = append(n.out.Untold, n.parts.courier.Closed...)
	n.standing()
}

// fresh returns the newest view that has not been handed over, nil when there is none.
func (n *Node) fresh() *membership.View {
	if v := n.members.Peek().View; v != nil {
		return v
	}
	return n.out.View
}

// feed shows a new view to the courier and to sharding, and with it the processes that are proven dead. The view alone
// would not do: a member may be downed and removed in one step.
func (n *Node) feed() {
	v, died := n.fresh(), n.members.Peek().Died
	if v == nil || v == n.fed {
		return
	}
	n.fed = v
	if n.tenures.m != nil {
		n.tenures.ends.learns(died)
	}
	// A view is never refused.
	_ = n.courier.Do(n.now, courier.FollowCommand{Roster: n.roster(v)})
	_ = n.shards.Do(n.now, shard.ViewCommand{View: v, Dead: died, Lost: n.tenures.removed(n)})
	_ = n.watches.Do(n.now, watch.FollowCommand{View: v})
	n.watch(v)
}

// gather appends what the machines want done; the courier, which takes the control messages of sharding, follows.
func (n *Node) gather() {
	n.gatherMembers()
	p, out := &n.parts, &n.out
	n.resolver.Drain(&p.resolver)
	out.Decisions = append(out.Decisions, p.resolver.Decisions...)
	out.ResolverEvents = append(out.ResolverEvents, p.resolver.Events...)
	out.Lease = append(out.Lease, p.resolver.Lease...)
	n.routed()
	n.shards.Drain(&p.shards)
	out.Hosts = append(out.Hosts, p.shards.Hosts...)
	out.Routes = append(out.Routes, p.shards.Routes...)
	out.Marks = append(out.Marks, p.shards.Marks...)
	out.Untaken = append(out.Untaken, p.shards.Untaken...)
	for i := range p.shards.Mail {
		m := &p.shards.Mail[i]
		if k := m.Kind; n.tenures.m != nil && (k == wire.KindHostShards || k == wire.KindHostKept) &&
			!n.tenures.ends.carries(n, m.To) {
			continue
		}
		n.post(m)
	}
	out.TypeRefused = append(out.TypeRefused, p.shards.Refused...)
	n.health.refusals = n.health.refusals || len(p.shards.Refused) > 0
	out.Answers = append(out.Answers, p.shards.Answers...)
	out.Measure = append(out.Measure, p.shards.Measure...)
	out.ShardEvents = append(out.ShardEvents, p.shards.Events...)
	n.watches.Drain(&p.watches)
	out.Looks, out.Gone = append(out.Looks, p.watches.Looks...), append(out.Gone, p.watches.Gone...)
	out.Told, out.Mail = append(out.Told, p.watches.Told...), append(out.Mail, p.watches.Mail...)
}

// gatherMembers appends what membership wants done.
func (n *Node) gatherMembers() {
	p, out := &n.parts.members, &n.out
	n.members.Drain(p)
	if p.View != nil {
		out.View = p.View
	}
	if p.Ended != nil {
		out.Ended, n.health.ended = p.Ended, p.Ended
	}
	out.Events = append(out.Events, p.Events...)
	out.Mail = append(out.Mail, p.Mail...)
}
