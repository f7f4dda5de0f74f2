// Node: steps the machines in a fixed order, routes control frames by kind, gathers their effects.

package node

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/kith-io/kith/internal/courier"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/sbr"
	"github.com/kith-io/kith/shard"
	"github.com/kith-io/kith/wire"
)

// ErrNotMine is returned by Handle for a kind that no machine of the node owns.
var ErrNotMine = errors.New("node: frame kind of no machine")

// ErrBadCommand is returned by Do for a command of no machine.
var ErrBadCommand = errors.New("node: unknown command")

// Config is the configuration of a node's machines.
type Config struct {
	Self       peer.ID
	Seed       uint64 // of all randomness of this node
	Membership membership.Config
	Shard      shard.Config // a TakeoverTime of zero follows the resolver, see Takeover
	Resolver   Resolver     // the zero value is keep-majority, on
	Courier    CourierConfig
	// ProcessDeathIsProof takes a link that was reset and then refused, or a new process at the address, as the confirmed
	// end of a process: its shards are given to others at once. It must be off where anything stands in between that
	// could answer so for a process that lives.
	ProcessDeathIsProof bool
}

// LeaveCommand leaves gracefully: what is hosted here is stopped and given back first, then the member leaves. Force
// skips the first part, for when its time is over.
type LeaveCommand struct{ Force bool }

// Suspend is an order to stop or go on handling user messages on this node. While it is on, no handler is called,
// nothing is consumed, no timer fires into a handler, and local sends fail with route.ErrSuspended; membership goes on.
type Suspend struct {
	On       bool
	Resolver bool   // by the resolver, which may order it while the node is suspended already
	Why      string // in words, for people: the evidence
}

// Effects is what one step asks the rider to do, in this order: publish View, carry out Suspend, deliver Events, carry
// out Hosts, then Routes, then send Mail. Everything is valid until the next verb.
type Effects struct {
	View        *membership.View
	Suspend     *Suspend // nil: as before
	Events      []membership.Event
	Hosts       []shard.HostOrder
	Routes      []shard.RouteChange
	Mail        []peer.Mail
	TypeRefused []shard.TypeRefused
	ShardEvents []shard.Event
	Ended       *membership.Ended

	Decisions      []Decision      // of the resolver, explained
	ResolverEvents []ResolverEvent // what else it has to tell
	Lease          []LeaseOp       // of the resolver; each is answered with a LeaseResult
	Received       []Received      // control messages that came in parcels, for whoever watches; nothing is to be done
	Full           []*CourierFull  // control messages without room: the first to each peer, until there is room again
}

// Node is one cluster node as a value. It is not safe for concurrent use.
type Node struct {
	members *membership.Machine
	shards  *shard.Machine
	now     time.Duration
	leaving bool
	left    bool
	ticked  bool // sharding's deadlines are to be looked at in the next Drain
	proof   bool
	me      membership.Effects
	se      shard.Effects

	resolver *sbr.Machine
	re       sbr.Effects
	seen     []peer.ID

	more shard.Effects // of going on after a suspension

	suspension suspension

	courier  *courier.Machine
	ce       courier.Effects
	received []Received
	patience func(members int) time.Duration
}

// New returns a node that has not joined anything yet.
func New(cfg Config) *Node {
	n := &Node{
		proof:      cfg.ProcessDeathIsProof,
		members:    membership.New(cfg.Self, cfg.forming(), rand.New(rand.NewPCG(cfg.Seed, 1))),
		resolver:   sbr.New(cfg.Self, cfg.resolver()),
		suspension: suspension{limit: cfg.GapLimit(), nap: cfg.nap()},
		courier:    courier.New(cfg.Self, cfg.Courier, rand.New(rand.NewPCG(cfg.Seed, 3))),
		patience:   cfg.GiveUpAfter,
	}
	sharding := cfg.sharding()
	sharding.UnderWay = n.courier.UnderWay
	sharding.Late = n.late
	n.shards = shard.New(cfg.Self, sharding, rand.New(rand.NewPCG(cfg.Seed, 2)))
	return n
}

// Laws demands of the states of three nodes what membership.Laws does. It reads them only.
func Laws(a, b, c *Node) error { return membership.Laws(a.members, b.members, c.members) }

// Tick handles every deadline that has passed. Those of sharding wait for the Drain of the same step: what this node
// just made of the members, it must know before it takes up a coordination or gives a shard to one of them.
func (n *Node) Tick(now time.Duration) {
	n.step(now)
	n.giveUp(n.courier.Tick(now))
	n.members.Tick(now)
	n.ticked = true
}

// Handle takes one control frame. An error means that the peer sent nonsense; nothing has changed, but that a parcel
// whose content was nonsense has been delivered.
func (n *Node) Handle(now, arrived time.Duration, from peer.ID, kind wire.Kind, body []byte) error {
	n.step(now)
	switch kind.Room() {
	case "membership":
		if n.suspension.on && (kind == wire.KindJoinProbe || kind == wire.KindJoin || kind == wire.KindFormAsk) {
			return nil // who does not know whether it is a member still speaks for no cluster
		}
		return n.members.Handle(now, arrived, from, kind, body)
	case "shard":
		if courier.Carries(kind) {
			if err := n.courier.Bare(from, kind); err != nil {
				return err
			}
		}
		return n.shards.Handle(now, arrived, from, kind, body)
	case "courier":
		return n.receive(now, arrived, from, kind, body)
	}
	if kind == wire.KindHeartbeat || kind == wire.KindHeartbeatAck {
		return n.members.Handle(now, arrived, from, kind, body)
	}
	return fmt.Errorf("%w: %s", ErrNotMine, kind)
}

// Do carries out a local wish: a membership.Command, a shard.Command, a LeaseResult, a LeaveCommand, a SleptCommand or
// a PlainCommand.
func (n *Node) Do(now time.Duration, cmd any) error {
	n.step(now)
	switch c := cmd.(type) {
	case LeaveCommand:
		return n.leave(c)
	case SleptCommand:
		n.slept(c.For)
		return nil
	case PlainCommand:
		n.courier.Plain(now, c.ID)
		return nil
	case membership.Command:
		if l, ok := c.(membership.LinkLostCommand); ok && n.proof {
			// Never refused.
			_ = n.shards.Do(now, shard.DeathCommand{ID: l.ID})
		}
		return n.members.Do(now, c)
	case shard.Command:
		return n.shards.Do(now, c)
	case sbr.Command:
		return n.resolver.Do(now, c)
	}
	return fmt.Errorf("%w: %T", ErrBadCommand, cmd)
}

func (n *Node) leave(c LeaveCommand) error {
	if c.Force && !n.left {
		n.left = true
		return n.members.Do(n.now, membership.LeaveCommand{})
	}
	if n.leaving {
		return nil
	}
	n.leaving = true
	return n.shards.Do(n.now, shard.LeaveCommand{})
}

// Convergence explains the convergence of this node as of its last step.
func (n *Node) Convergence() membership.Convergence { return n.members.Convergence() }

// Versions says which version each member is known to have, in address order; the slice belongs to the caller.
func (n *Node) Versions() []membership.KnownVersion { return n.members.Overview(nil) }

// Next returns the earliest deadline at which Tick has something to do.
func (n *Node) Next() (deadline time.Duration, ok bool) {
	deadline, ok = n.members.Next()
	if d, some := n.resolver.Next(); some && (!ok || d < deadline) {
		deadline, ok = d, true
	}
	if d, some := n.shards.Next(); some && (!ok || d < deadline) {
		deadline, ok = d, true
	}
	if d, some := n.suspension.next(); some && (!ok || d < deadline) {
		deadline, ok = d, true
	}
	if d, some := n.courier.Next(); some && (!ok || d < deadline) {
		deadline, ok = d, true
	}
	return deadline, ok
}

// Drain gathers the effects of the last verb. It runs the composition: a new view goes to the resolver and then to
// sharding here, whose deadlines are handled afterwards; whom the resolver downs is downed in the same step, and a
// region that has given everything back lets the member leave, whose own effects come out in the same Drain.
func (n *Node) Drain(out *Effects) {
	n.members.Drain(&n.me)
	n.decide()
	if s := n.re.Suspend; s != nil {
		n.resolve(s.On, s.Why)
	}
	n.feed()
	if n.ticked {
		n.ticked = false
		n.shards.Tick(n.now)
	}
	n.drainShards()
	if n.se.Drained && !n.left {
		n.left = true
		n.merge(out, true)
		keepBodies(out.Mail)
		// A member that cannot leave (not admitted yet, or over) has ended or will: its own effects say so.
		_ = n.members.Do(n.now, membership.LeaveCommand{})
		n.members.Drain(&n.me)
		n.feed()
		n.drainShards()
		n.merge(out, false)
	} else {
		n.merge(out, true)
	}
	out.Suspend, n.suspension.order = n.suspension.order, nil
	n.courier.Drain(&n.ce)
	out.Mail, out.Full = append(out.Mail, n.ce.Mail...), n.ce.Full
	out.Received, n.received = append(out.Received, n.received...), n.received[:0]
}

// drainShards gathers what sharding wants done.
func (n *Node) drainShards() {
	n.shards.Drain(&n.se)
	if !n.se.Confirmed {
		return
	}
	keepBodies(n.se.Mail)
	n.confirmed()
	n.shards.Drain(&n.more)
	n.se.Hosts = append(n.se.Hosts, n.more.Hosts...)
	n.se.Routes = append(n.se.Routes, n.more.Routes...)
	n.se.Mail = append(n.se.Mail, n.more.Mail...)
	n.se.Refused = append(n.se.Refused, n.more.Refused...)
	n.se.Events = append(n.se.Events, n.more.Events...)
	n.se.Drained = n.se.Drained || n.more.Drained
}

func (n *Node) feed() {
	if n.me.View != nil {
		n.courier.Follow(n.now, n.roster(n.me.View))
		// A view is never refused.
		_ = n.shards.Do(n.now, shard.ViewCommand{View: n.me.View})
		n.watch(n.me.View)
	}
}

// keepBodies copies mail bodies out of the machines' arenas, which the next verb reuses. Only a leave and the end of a
// suspension take this way.
func keepBodies(mail []peer.Mail) {
	for i := range mail {
		mail[i].Body = slices.Clone(mail[i].Body)
	}
}

func (n *Node) merge(out *Effects, fresh bool) {
	if fresh {
		*out = Effects{Events: out.Events[:0], Hosts: out.Hosts[:0], Routes: out.Routes[:0], Mail: out.Mail[:0],
			Received: out.Received[:0], TypeRefused: out.TypeRefused[:0], ShardEvents: out.ShardEvents[:0],
			Decisions:      n.re.Decisions,
			ResolverEvents: n.re.Events, Lease: n.re.Lease}
	}
	if n.me.View != nil {
		out.View = n.me.View
	}
	if n.me.Ended != nil {
		out.Ended = n.me.Ended
	}
	out.Events = append(out.Events, n.me.Events...)
	out.Mail = append(out.Mail, n.me.Mail...)
	out.Hosts = append(out.Hosts, n.se.Hosts...)
	out.Routes = append(out.Routes, n.se.Routes...)
	for i := range n.se.Mail {
		n.post(out, &n.se.Mail[i])
	}
	out.TypeRefused = append(out.TypeRefused, n.se.Refused...)
	out.ShardEvents = append(out.ShardEvents, n.se.Events...)
}
