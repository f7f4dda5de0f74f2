// Suspension: when a node must stop handling user messages, and what lets it go on.
//
// Three things suspend a node: a session lease that has run out (session.go), its resolver, which decided that this
// side loses, and its own sleep. A node with a last
// step older than half the takeover time (a stopped process, a paused machine, a control loop that hung) cannot know
// whether others have removed it meanwhile and given its shards away. Neither a fresh step nor a fresh look at its own
// view lifts the suspension; only the word of others does, asked for afterwards (shard/confirm.go). When no member is
// left that could give it, because all others are Down or gone, it depends on which node decided that. If this one did,
// by its resolver or its operator, it has looked for them after its sleep and goes on. If others have, and it slept for
// the takeover time, it ends: these may have ended while it slept, started again, and formed the next cluster, which
// takes the owners of this one for stopped by then. What lay in its sockets tells it of their end only.

package node

import (
	"fmt"
	"time"

	"github.com/kith-io/kith/internal/core/session"
	"github.com/kith-io/kith/internal/core/tenure"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/sbr"
	"github.com/kith-io/kith/shard"
)

// suspension is whether and why user messages are not handled.
type suspension struct {
	limit    time.Duration // a step that is older makes the node suspend itself
	nap      time.Duration // a step that is older makes what is known of others old news
	bindAt   time.Duration // when to look again for members that have not answered for too long
	last     time.Duration // the last step
	member   bool          // this node is a member and not Down in its own view
	alone    bool          // and nobody else is
	on       bool          // by its resolver or its sleep, until others have confirmed it
	lapsed   bool          // it has no session lease, or no tenure
	resolver bool          // the resolver has not taken its order back
	slept    time.Duration // the longest such gap since it is on
	from     time.Duration // when the first of them began
	hold     time.Duration // for how long a side that won by the lease of the resolver keeps it
	word     bool          // this node has downed somebody since then
	known    bool          // members have said since then that it is one of them
	told     Suspensions
}

// GapLimit returns how old a node's last step may be before it suspends itself: half of the shortest takeover time that
// may be in use, which is that of a small cluster. A data plane compares the age of the control loop's last step with
// it, for it may run before the control loop does.
func (c Config) GapLimit() time.Duration { return c.Takeover(1) / 2 }

// step begins every verb: it notices that this node has slept before anything else is done.
func (n *Node) step(now time.Duration) {
	n.out.keepBodies()
	s := &n.suspension
	gap := now - s.last
	n.now, s.last = now, max(s.last, now)
	if n.sessions.m != nil {
		n.sessions.m.Tick(now)
	}
	if n.tenures.m != nil {
		n.tenures.m.Tick(now)
	}
	s.woke(n, gap, "the control loop did not step")
}

// woke judges a gap that has just ended.
func (s *suspension) woke(n *Node, gap time.Duration, why string) {
	if !s.member || s.alone {
		return
	}
	if gap > s.limit {
		if s.slept == 0 {
			s.from = n.now - gap
		}
		s.slept = max(s.slept, gap)
		n.suspend(fmt.Sprintf("%s for %v, at most %v may pass", why, gap.Round(time.Millisecond), s.limit))
		_ = n.resolver.Do(n.now, sbr.UnconfirmedCommand{On: true}) // never refused
	}
	if gap > s.nap { // last: that it waits for others may be what there is to decide
		n.napped()
	}
}

// outslept reports whether the lease says nothing to this node: it slept, and since its sleep began others may have got
// the lease, lived on and given it back.
func (s *suspension) outslept(now time.Duration) bool { return s.slept > 0 && now-s.from >= s.hold }

// SleptCommand says that time has passed which this node's clock does not show: the wall clock has stepped. It is
// judged as a gap between two steps of that length is.
type SleptCommand struct{ For time.Duration }

// slept takes a SleptCommand.
func (n *Node) slept(d time.Duration) {
	if n.sessions.m != nil {
		_ = n.sessions.m.Do(n.now, session.SleptCommand{For: d}) // never refused
	}
	if n.tenures.m != nil {
		_ = n.tenures.m.Do(n.now, tenure.SleptCommand{For: d}) // likewise
	}
	n.suspension.woke(n, d, "the wall clock says that the control loop did not step")
}

// napped asks others to confirm anew what they confirmed before this node slept, when a decision may come to rest on
// it.
func (n *Node) napped() {
	if !n.resolver.Open() {
		return
	}
	// Neither is refused: a resolver has something to decide at a member only.
	_ = n.resolver.Do(n.now, sbr.SleptCommand{})
	_ = n.members.Do(n.now, membership.ReconfirmCommand{})
}

// Suspended reports whether user messages are not to be handled now.
func (n *Node) Suspended() bool { return n.suspension.on || n.suspension.lapsed }

// suspend stops the handling of user messages, or, when it has stopped already, asks for the confirmation anew.
func (n *Node) suspend(why string) {
	s := &n.suspension
	if !s.on {
		s.on = true
		n.out.Suspend = &Suspend{On: true, Why: why}
		n.out.Events = append(n.out.Events, s.tell(n.now, why))
	}
	s.known = false
	// Never refused.
	_ = n.shards.Do(n.now, shard.SuspendCommand{On: true})
}

// outdated reports whether this node may know less than the others: it has slept, or its resolver has stopped it, and
// no member has said since then that it is one of them. What lives here may still have to be confirmed by a
// coordinator, which may wait itself for what this node knows.
func (s *suspension) outdated() bool { return s.on && (s.resolver || !s.known) }

// resolve takes the resolver's order to suspend, or that its reason is gone: the node then asks others before it goes
// on.
func (n *Node) resolve(on bool, why string) {
	s := &n.suspension
	if on == s.resolver {
		return
	}
	if on {
		why = "stopped by the resolver: " + why
	} else {
		why = "the resolver has taken its order back, and others have not confirmed this node yet: " + why
	}
	s.resolver = on
	was := s.on
	if on || s.on {
		n.suspend(why)
	}
	if was {
		s.told.Why = why
	}
	if on {
		if was {
			n.out.Events = append(n.out.Events, s.tell(n.now, why))
		}
		n.out.Suspend = &Suspend{On: true, Resolver: true, Why: why}
	}
}

const confirmedWhy = "others have confirmed this incarnation"

// confirmed goes on when others have said that this node still owns what lives here.
func (n *Node) confirmed() {
	s := &n.suspension
	word := n.shards.Peek()
	s.known = s.known || word.Member && s.on
	if !word.Confirmed || !s.on || s.resolver {
		return
	}
	if least := 2 * s.limit; word.Vacuous && s.slept >= least && !s.word {
		// Never refused: it is a member, or has ended.
		_ = n.members.Do(n.now, membership.IsolatedCommand{Why: fmt.Sprintf("it slept for %v, the takeover time is %v, "+
			"and nobody is left who could say that its cluster was not formed anew", s.slept.Round(time.Millisecond), least)})
		n.feed()
		return
	}
	s.on, s.slept, s.word, s.known = false, 0, false, false
	if !s.lapsed {
		goesOn(confirmedWhy, n)
	}
	// Neither is refused.
	_ = n.shards.Do(n.now, shard.SuspendCommand{})
	_ = n.resolver.Do(n.now, sbr.UnconfirmedCommand{})
}

// goesOn ends the suspension: no reason of it stands.
func goesOn(why string, n *Node) {
	n.out.Suspend = &Suspend{Why: why}
	n.out.Events = append(n.out.Events, n.suspension.over(n.now, why))
}

// decides notes that this node downs somebody, by its resolver or an operator's word.
func (s *suspension) decides() { s.word = s.word || s.on }

// watch follows the view: only a member can own anything, and one that is alone cannot lose it.
func (n *Node) watch(v *membership.View) {
	self, ok := v.SelfMember()
	n.suspension.member = ok && self.Status != membership.Down
	n.suspension.alone = len(v.Members) == 1
	n.health.self, n.health.known = self.Status, ok
}

// late reports whether a peer that this node watches is late with a sign of life, as of this step.
func (n *Node) late() bool {
	n.seen = n.members.Late(n.now, n.seen[:0])
	return len(n.seen) > 0
}

// next is when a member must step at the latest, so that the age of its last step means something.
func (s *suspension) next() (deadline time.Duration, ok bool) {
	return s.last + s.limit/4, s.member
}
