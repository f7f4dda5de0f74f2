// Resolver: how the split brain resolver is fed and obeyed within a step (MEM-10).

package node

import (
	"time"

	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/sbr"
)

// What runtimes need to know of the resolver: its settings, what it decides and tells, and what it wants of its lease.
type (
	// Resolver is the configuration of the split brain resolver.
	Resolver = sbr.Config
	// Strategy is the rule by which a side is chosen to live.
	Strategy = sbr.Strategy
	// Decision is one explained decision of the resolver.
	Decision = sbr.Decision
	// ResolverEvent is what the resolver has to tell besides its decisions.
	ResolverEvent = sbr.Event
	// LeaseOp is one thing to do with the resolver's lease.
	LeaseOp = sbr.LeaseOp
	// LeaseResult answers a LeaseOp.
	LeaseResult = sbr.LeaseResult
	// OlderCommand names a member with a build that counts leaving members otherwise.
	OlderCommand = sbr.OlderCommand
)

// The strategies of a Resolver; see sbr.
const (
	ResolverKeepMajority   = sbr.KeepMajority
	ResolverStaticQuorum   = sbr.StaticQuorum
	ResolverKeepOldest     = sbr.KeepOldest
	ResolverDownAll        = sbr.DownAll
	ResolverLeaseMajority  = sbr.LeaseMajority
	ResolverUnsafeAutoDown = sbr.UnsafeAutoDown
	ResolverOff            = sbr.Off
)

// resolver is the configuration of the resolver: how long a silence may be, and which node watches which, is for the
// detectors to say.
func (c Config) resolver() Resolver {
	r := c.Resolver
	r.Silence, r.WatchedBy = c.Membership.SilenceBound(), c.Membership.WithDefaults().MonitoredBy
	return r
}

// nap is for how long a node may not step before it has slept: it steps at every heartbeat.
func (c Config) nap() time.Duration { return c.Membership.WithDefaults().HeartbeatInterval * 3 / 2 }

// Decisions returns the newest decisions of the resolver, oldest first; the caller owns the slice.
func (n *Node) Decisions() []Decision { return n.resolver.Decisions() }

// decide shows the resolver what is new, lets it decide what is due, and downs within this step the members that it
// names: the effects of that join those of the verb. A node without a session decides nothing until it has one again:
// it handles nothing, and others may have ended it (storm 12600001009).
func (n *Node) decide() {
	n.show()
	n.bind()
	if at, ok := n.resolver.Next(); ok && at <= n.now && !n.sessions.lacking(n.now) {
		n.seen = n.members.Unmet(n.members.Late(n.now, n.seen[:0])) // a list may name one twice
		n.quiet = n.members.Unheard(n.now, n.suspension.nap, n.quiet[:0])
		_ = n.resolver.Do(n.now, sbr.LateCommand{IDs: n.seen, Quiet: n.quiet})
		n.resolver.Tick(n.now)
	}
	down := n.resolver.Peek().Down
	if len(down) == 0 {
		return
	}
	n.gatherMembers()
	n.out.keepBodies()
	n.suspension.decides()
	all := membership.DownAllCommand{Cause: down[0].Cause}
	for _, c := range down {
		all.IDs = append(all.IDs, c.ID)
	}
	// One change for one decision. A node that is no longer a member needs no down.
	_ = n.members.Do(n.now, all)
	n.show()
}

// bind tells the resolver, a few times in each heartbeat interval, which members have not answered for too long. A node
// that was suspended for a sleep waits for the word of others, and has heard no member when it comes.
func (n *Node) bind() {
	s := &n.suspension
	switch {
	case s.on && !s.resolver:
		s.bindAt = n.now + 2*s.nap
	case n.now >= s.bindAt && s.member:
		s.bindAt = n.now + s.nap/4
		n.seen = n.members.Unheard(n.now, n.resolver.Bound(), n.seen[:0])
		_ = n.resolver.Do(n.now, sbr.UnheardCommand{IDs: n.seen}) // never refused
	}
}

// show gives the resolver the newest view, and which of the members it watches have seen the state of it. This node
// itself has to hear a member that is in contact while others do not hear it.
func (n *Node) show() {
	if v := n.fresh(); v != nil {
		// Neither is ever refused.
		if n.tenures.m != nil {
			_ = n.resolver.Do(n.now, n.tenures.counted(n))
		}
		_ = n.resolver.Do(n.now, sbr.ViewCommand{View: v})
	}
	if watched := n.resolver.Watched(); len(watched) > 0 {
		n.seen = n.members.Seen(watched, n.seen[:0])
		_ = n.resolver.Do(n.now, sbr.SeenCommand{IDs: n.seen})
	}
	n.members.Listen(n.now, n.resolver.Contact())
}
