// Node: steps the machines in a fixed order and routes control frames by kind.

package node

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/internal/core/courier"
	"github.com/kith-io/kith/internal/core/session"
	"github.com/kith-io/kith/internal/core/tenure"
	"github.com/kith-io/kith/internal/core/watch"
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
	// Patience is the preset by which a margin goes; what it sets besides, Paced has put into Membership and Resolver.
	Patience cluster.Patience
	// ProcessDeathIsProof takes a link that was reset and then refused, or a new process at the address, as the confirmed
	// end of a process: its shards are given to others at once. It must be off where anything stands in between that
	// could answer so for a process that lives.
	ProcessDeathIsProof bool
	// Session is how long session leases last; zero: no node has one.
	Session SessionConfig
	// Tenure is the electorate of tenures; zero: no node has one. A cluster has sessions or tenures, not both.
	Tenure TenureConfig
}

// LeaveCommand leaves gracefully: what is hosted here moves to other members first, then the member leaves. Force, for
// when the time of the first part is over, stops what is left and leaves at once.
type LeaveCommand struct {
	Force bool
	// Within is when Force will come. What lives here is tried to be moved until shortly before, and then stopped.
	Within time.Duration
}

// stopTime is the part of a leave's time that stop calls have to themselves.
func stopTime(within time.Duration) time.Duration { return min(within/6, shard.DefaultDrainPatience) }

// Suspend is an order to stop or go on handling user messages on this node. While it is on, no handler is called,
// nothing is consumed, no timer fires into a handler, and local sends fail with route.ErrSuspended; membership goes on.
type Suspend struct {
	On       bool
	Resolver bool   // by the resolver, which may order it while the node is suspended already
	Why      string // in words, for people: the evidence
}

// Node is one cluster node as a value. It is not safe for concurrent use.
type Node struct {
	members *membership.Machine
	shards  *shard.Machine
	now     time.Duration
	leaving bool
	left    bool
	proof   bool

	resolver *sbr.Machine
	seen     []peer.ID
	quiet    []peer.ID // likewise

	suspension suspension
	sessions   sessions
	tenures    tenures
	health     health

	courier  *courier.Machine
	watches  *watch.Machine
	patience func(members int) time.Duration

	fed   *membership.View // the view that courier and sharding know
	out   Effects
	parts parts
}

// New returns a node that has not joined anything yet.
func New(cfg Config) *Node {
	n := &Node{
		proof:      cfg.ProcessDeathIsProof,
		members:    membership.New(cfg.Self, cfg.forming(), rand.New(rand.NewPCG(cfg.Seed, 1))),
		resolver:   sbr.New(cfg.Self, cfg.resolver()),
		suspension: suspension{limit: cfg.GapLimit(), nap: cfg.nap(), hold: cfg.Resolver.WithDefaults().LeaseHold},
		courier:    courier.New(cfg.Self, cfg.Courier, rand.New(rand.NewPCG(cfg.Seed, 3))),
		patience:   cfg.GiveUpAfter,
	}
	n.sessions.what, n.tenures.what = "session lease", "tenure"
	if cfg.Session.On() {
		n.sessions.m = session.New(cfg.Self, cfg.Session)
	}
	if cfg.Tenure.On() {
		n.tenures.m = tenure.New(cfg.Self, cfg.Tenure)
		n.tenures.found.assumes = cfg.Tenure.Refound == cluster.RefoundByTakeover
	}
	sharding := cfg.sharding()
	sharding.UnderWay = n.courier.UnderWay
	sharding.Late = n.late
	n.shards = shard.New(cfg.Self, sharding, rand.New(rand.NewPCG(cfg.Seed, 2)))
	n.watches = watch.New(cfg.Self, watching(n))
	return n
}

// Laws demands of the states of three nodes what membership.Laws does. It reads them only.
func Laws(a, b, c *Node) error { return membership.Laws(a.members, b.members, c.members) }

// Tick handles every deadline that has passed. Those of sharding come last: what this node just made of the members, it
// must know before it takes up a coordination or gives a shard to one of them.
func (n *Node) Tick(now time.Duration) {
	n.step(now)
	n.courier.Tick(now)
	n.giveUp(n.courier.Peek().GaveUp)
	n.members.Tick(now)
	n.settle(true)
}

// Handle takes one control frame. An error means that the peer sent nonsense; nothing has changed, but that a segment
// has been delivered, also if its content was nonsense.
func (n *Node) Handle(now, arrived time.Duration, from peer.ID, kind wire.Kind, body []byte) error {
	n.step(now)
	err := n.handle(now, arrived, from, kind, body)
	n.settle(false)
	return err
}

func (n *Node) handle(now, arrived time.Duration, from peer.ID, kind wire.Kind, body []byte) error {
	switch kind.Owner() {
	case wire.OwnerMembership:
		if (n.suspension.on || n.resolver.Stray(n.now)) &&
			(kind == wire.KindJoinProbe || kind == wire.KindJoin || kind == wire.KindFormAsk) {
			return nil // a node that does not know whether it is still a member, or of what, speaks for no cluster
		}
		return n.members.Handle(now, arrived, from, kind, body)
	case wire.OwnerShard:
		if courier.Carries(kind) {
			if err := n.courier.Bare(from, kind); err != nil {
				return err
			}
		}
		return n.shards.Handle(now, arrived, from, kind, body)
	case wire.OwnerCourier:
		return n.receive(now, arrived, from, kind, body)
	case wire.OwnerWatch:
		if courier.Carries(kind) {
			return fmt.Errorf("%w: %s of %s came without a segment", courier.ErrNonsense, kind, from)
		}
		return n.watches.Handle(now, arrived, from, kind, body)
	case wire.OwnerTenure:
		if n.tenures.m != nil {
			return n.tenures.m.Handle(now, from, body)
		}
	}
	if kind == wire.KindHeartbeat || kind == wire.KindHeartbeatAck {
		return n.members.Handle(now, arrived, from, kind, body)
	}
	return fmt.Errorf("%w: %s", ErrNotMine, kind)
}

// Do carries out a local wish: a membership.Command, a shard.Command, a watch.Command, a LeaseResult, a SessionResult,
// a LeaveCommand, a SleptCommand, a PlainCommand or a NoticeCommand.
func (n *Node) Do(now time.Duration, cmd any) error {
	n.step(now)
	err := n.do(now, cmd)
	n.settle(false)
	return err
}

func (n *Node) do(now time.Duration, cmd any) error {
	switch c := cmd.(type) {
	case LeaveCommand:
		return n.leave(c)
	case SleptCommand:
		n.slept(c.For)
		return nil
	case PlainCommand:
		return n.courier.Do(now, courier.PlainCommand{ID: c.ID})
	case NoticeCommand:
		return n.courier.Do(now, courier.PostCommand{Mail: c.Mail, CanWait: true})
	case SessionResult:
		if n.sessions.m == nil {
			return fmt.Errorf("%w: %T, without sessions", ErrBadCommand, cmd)
		}
		return n.sessions.m.Do(now, c)
	case membership.JoinCommand:
		if n.sessions.m != nil {
			_ = n.sessions.m.Do(now, session.BeginCommand{}) // never refused
		}
		return n.members.Do(now, c)
	case membership.DownCommand:
		n.suspension.decides()
		return n.members.Do(now, c)
	case membership.RefoundCommand:
		return n.tenures.found.says(n)
	case membership.Command:
		if l, ok := c.(membership.LinkLostCommand); ok && n.proof {
			// Never refused.
			_ = n.shards.Do(now, shard.DeathCommand{ID: l.ID})
		}
		return n.members.Do(now, c)
	case shard.Command:
		if _, registers := c.(shard.RegisterCommand); registers {
			n.health.refusals = true
		}
		if d, drains := c.(shard.DrainCommand); drains {
			return drain(d, n)
		}
		return n.shards.Do(now, c)
	case LeaseResult:
		c.Stale = c.OK && n.suspension.outslept(now)
		return n.resolver.Do(now, c)
	case sbr.Command:
		return n.resolver.Do(now, c)
	case watch.Command:
		return n.watches.Do(now, c)
	}
	return fmt.Errorf("%w: %T", ErrBadCommand, cmd)
}

// drain has shards move away from this node, or not any more, and says so to the leader that places instances.
func drain(c shard.DrainCommand, n *Node) error {
	err := n.shards.Do(n.now, c)
	if err == nil {
		_ = n.members.Do(n.now, membership.DrainsCommand(c)) // refused once the membership is over: then nobody asks
	}
	return err
}

func (n *Node) leave(c LeaveCommand) error {
	switch {
	case c.Force && !n.left:
		n.left, n.leaving = true, true
		return errors.Join(n.shards.Do(n.now, shard.LeaveCommand{Now: true}),
			n.members.Do(n.now, membership.LeaveCommand{}))
	case n.leaving:
		return nil
	}
	n.leaving = true
	return n.shards.Do(n.now, shard.LeaveCommand{Within: c.Within - stopTime(c.Within)})
}

// Convergence explains the convergence of this node as of its last step.
func (n *Node) Convergence() membership.Convergence { return n.members.Convergence() }

// Suspicions says how a node judges the silence of each peer that it watches, as of its last step.
func Suspicions(n *Node) []membership.Suspicion { return n.members.Suspicions(nil) }

// Waiting says what this node waits for before it is Up, as of its last step.
func (n *Node) Waiting() membership.Waiting { return n.members.Waiting() }

// Draining reports whether a node drains, and how many shards live on it, as of its last step.
func Draining(n *Node) (on bool, shards int) { return shard.Draining(n.shards) }

// Over reports whether the node is no longer a member, as of its last step: it has given its shards up, or does so at
// once.
func Over(n *Node) bool { return n.health.ended != nil || shard.Over(n.shards) }

// Versions says which version each member is known to have, in address order; the slice belongs to the caller.
func (n *Node) Versions() []membership.KnownVersion { return n.members.Overview(nil) }

// Next returns the earliest deadline at which Tick has something to do.
func (n *Node) Next() (deadline time.Duration, ok bool) {
	deadline, ok = n.members.Next()
	if d, some := n.resolver.Next(); some && !n.sessions.lacking(n.now) && (!ok || d < deadline) {
		deadline, ok = d, true
	}
	if d, some := n.shards.Next(); some && (!ok || d < deadline) {
		deadline, ok = d, true
	}
	if d, some := n.suspension.next(); some && (!ok || d < deadline) {
		deadline, ok = d, true
	}
	if n.sessions.m != nil {
		if d, some := n.sessions.m.Next(); some && (!ok || d < deadline) {
			deadline, ok = d, true
		}
		if d, some := n.sessions.next(n.sessions.m); some && (!ok || d < deadline) {
			deadline, ok = d, true
		}
	}
	if n.tenures.m != nil {
		if d, some := n.tenures.m.Next(); some && (!ok || d < deadline) {
			deadline, ok = d, true
		}
		if d, some := n.tenures.next(n.tenures.m); some && (!ok || d < deadline) {
			deadline, ok = d, true
		}
		if d, some := n.tenures.found.next(n); some && (!ok || d < deadline) {
			deadline, ok = d, true
		}
	}
	if d, some := n.courier.Next(); some && (!ok || d < deadline) {
		deadline, ok = d, true
	}
	if d, some := n.watches.Next(); some && (!ok || d < deadline) {
		deadline, ok = d, true
	}
	return deadline, ok
}

// Drain hands over what the last verb wants done. It is valid until the next verb.
func (n *Node) Drain(out *Effects) {
	*out, n.out = n.out, out.emptied()
}
