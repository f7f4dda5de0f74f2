// Gossip: the periodic round, its extra targets, the exchange that follows when digests differ, and the eager push of a
// change (GOS-4 to GOS-7, GOS-9).

package membership

import (
	"slices"
	"time"

	"github.com/kith-io/kith/gossip"
	"github.com/kith-io/kith/internal/core/members"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// leaveNoticeFanout is how many members hear of this node's end from itself.
const leaveNoticeFanout = 5

// exchange is the gossip of a machine: the rounds, and what follows when two states differ.
type exchange struct {
	*core
	beliefs *beliefs
	others  *others

	pushAt  time.Duration  // earliest next eager push
	extra   int            // extra rounds left in this interval
	heard   []heardVersion // sorted; by Config.Overview
	scratch []int
}

// gossipTick runs the round of an interval and plans two more at its thirds, which look again whether they are wanted.
func (x *exchange) gossipTick() {
	x.in(timerGossip, x.cfg.GossipInterval)
	x.round()
	if x.speedUp() {
		x.extra = 2
		x.in(timerExtra, x.cfg.GossipInterval/3)
	}
}

func (x *exchange) extraRound() {
	if x.extra--; x.extra > 0 {
		x.in(timerExtra, x.cfg.GossipInterval/3)
	}
	if x.speedUp() {
		x.round()
	}
}

func (x *exchange) speedUp() bool {
	return gossip.SpeedUp(x.st.Seen.Count(), len(x.st.Members), x.st.AnyDown)
}

// valid reports whether member i may be gossiped to: not this node, and not held unreachable by this node. What other
// observers say does not matter, else a broken pair would cut both off.
func (x *exchange) valid(i int) bool {
	id := x.st.Members[i].ID
	return id != x.self && !x.st.Reach.Accuses(x.self, id)
}

func (x *exchange) unseen(i int) bool { return !x.st.Seen.Has(i) }

// round sends a status to one member, by preference to one outside the seen set.
func (x *exchange) round() {
	n := len(x.st.Members)
	prefer := 0
	if !x.st.Seen.Full() {
		prefer = gossip.DifferentView(n, gossip.PerMillion(x.cfg.DifferentViewProbability), x.cfg.ReduceDifferentViewAbove)
	}
	i := gossip.Choose(x.rng, n, prefer, x.valid, x.unseen)
	if i >= 0 {
		x.sendStatus(x.st.Members[i].ID)
	}
	x.extraTargets(i)
}

func (x *exchange) sendStatus(to peer.ID) {
	s := statusBody{x.toward(to), x.st.Digest, x.st.Seen.Digest()}
	x.post(to, wire.KindStatus, func(b []byte) []byte { return appendStatus(b, s) })
}

// eagerPush sends a fresh change at once to a few members that have not seen it, once, and not more often than the
// push interval allows.
func (x *exchange) eagerPush() {
	if !x.push {
		return
	}
	if x.now < x.pushAt {
		x.timers[timerPush] = timer{x.pushAt, true}
		x.push = false // the timer sets it again
		return
	}
	x.push = false
	x.stop(timerPush)
	if x.spread(x.cfg.PushFanout, x.history.Base) > 0 {
		x.pushAt = x.now + x.cfg.PushInterval
	}
}

// spread sends the state to at most n members that have not seen it and may hold base, and returns to how many.
func (x *exchange) spread(n int, base *members.Version) int {
	if x.st.Seen.Full() {
		return 0
	}
	x.scratch = gossip.Sample(x.rng, len(x.st.Members), n, func(i int) bool { return x.valid(i) && x.unseen(i) },
		x.scratch[:0])
	for _, i := range x.scratch {
		x.sendGossip(x.st.Members[i].ID, base)
	}
	return len(x.scratch)
}

// sendState sends the seen set and the version, which is packed once however often it is sent.
func (c *core) sendState(to peer.ID, kind wire.Kind, tag uint64) {
	s := stateBody{to.Inc, tag, c.st.Digest, c.st.Seen, c.store.Pack(c.st.Version)}
	c.post(to, kind, func(b []byte) []byte { return appendStateBody(b, s) })
}

func (c *core) sendSeen(to peer.ID, reply bool) {
	s := seenBody{c.toward(to), c.st.Digest, reply, c.st.Seen}
	c.post(to, wire.KindSeen, func(b []byte) []byte { return appendSeenBody(b, s) })
}

func (x *exchange) sendVersion(to peer.ID) {
	v := versionBody{envelope: x.toward(to), digest: x.st.Digest, clock: x.st.Clock}
	x.post(to, wire.KindVersion, func(b []byte) []byte { return appendVersion(b, v) })
}

// sendWant asks a node that holds another version for its state; have is what the answer may be a delta from.
func (x *exchange) sendWant(to peer.ID, have gossip.Digest) {
	v := versionBody{envelope: x.toward(to), digest: have, want: true}
	x.post(to, wire.KindVersion, func(b []byte) []byte { return appendVersion(b, v) })
}

// hears reports whether gossip of from is worth reading: for this node, fresh enough (GOS-7), not of a node that this
// one holds unreachable, and not of a removed incarnation, which is notified. A sender that is no member yet is heard:
// tombstones decide which are none any more, so its state can only add what this node did not know, its own join first.
// holds is the version that the sender has. A node that gossips to unreachable members also hears their answers.
func (x *exchange) hears(arrived time.Duration, from peer.ID, e envelope, holds gossip.Digest) bool {
	switch {
	case !x.addressed(e):
		if e.to == x.self.Inc {
			x.others.otherCluster(from.Addr, e.cluster, 0, false)
		}
		return false
	case x.now-arrived > x.cfg.GossipTimeToLive:
		x.stats.Expired++
		return false
	case x.beliefs.tellRemoved(from):
		return false
	case x.st.Reach.Accuses(x.self, from) && !x.cfg.GossipToUnreachable:
		x.stats.FromUnreachable++
		return false
	}
	x.heardOf(from, holds)
	return true
}

func (x *exchange) onStatus(arrived time.Duration, from peer.ID, body []byte) error {
	s, err := readStatus(body)
	if err != nil || !x.hears(arrived, from, s.envelope, s.digest) {
		return err
	}
	switch gossip.JudgeStatus(x.st.Digest, s.digest, x.st.Seen.Digest(), s.seen) {
	case gossip.SendVersion:
		x.sendVersion(from)
	case gossip.SendSeen:
		x.sendSeen(from, true)
	}
	return nil
}

func (x *exchange) onVersion(arrived time.Duration, from peer.ID, body []byte) error {
	v, err := readVersion(body)
	if err != nil || !x.hears(arrived, from, v.envelope, v.digest) || v.digest == x.st.Digest {
		return err
	}
	if v.want {
		x.sendGossip(from, x.held(v.digest))
		return nil
	}
	switch gossip.JudgeVersion(x.st.Clock, v.clock) {
	case gossip.AskState:
		x.sendWant(from, x.st.Digest)
	case gossip.SendState, gossip.Exchange: // a state that is not newer is answered with the receiver's
		x.sendGossip(from, x.held(v.digest))
	}
	return nil
}

func (x *exchange) onSeen(arrived time.Duration, from peer.ID, body []byte) error {
	s, err := readSeenBody(body)
	if err != nil || !x.hears(arrived, from, s.envelope, s.digest) || s.digest != x.st.Digest {
		return err
	}
	if s.seen.Len() != x.st.Seen.Len() {
		return &wire.Error{Kind: wire.KindSeen, Offset: len(body), Err: wire.ErrBadValue}
	}
	if x.st.Seen.Union(s.seen) {
		x.sawMore()
	}
	if s.reply && !s.seen.Covers(x.st.Seen) {
		x.sendSeen(from, false)
	}
	return nil
}

func (x *exchange) onGossip(arrived time.Duration, from peer.ID, body []byte) error {
	b, err := readStateBody(wire.KindGossip, body)
	if err != nil || !x.hears(arrived, from, envelope{b.to, b.tag}, b.digest) {
		return err
	}
	remote, err := x.readState(wire.KindGossip, &b)
	if err != nil {
		return err
	}
	if remote.Cluster != x.st.Cluster || remote.Birth != x.st.Birth {
		return &wire.Error{Kind: wire.KindGossip, Offset: 0, Err: wire.ErrBadValue}
	}
	if t, dead := remote.Tomb(x.self); dead {
		x.beliefs.removedBy(from, t, remote.UpCount(), remote.LowestUp(), 0)
		return nil
	}
	if err := x.followable(wire.KindGossip, remote.Version); err != nil {
		return err
	}
	x.take(from, remote)
	return nil
}

// take brings a received state together with the local one and answers: an older sender gets ours, after a merge the
// sender gets the result, and one that did not know that we have seen its version is notified.
func (x *exchange) take(from peer.ID, remote *members.State) {
	if remote.Digest != x.st.Digest && x.beliefs.returned(from, remote) {
		return
	}
	known := remote.HasSeen(x.self)
	next, how := x.store.NewerOrMerged(x.st, remote, x.held)
	switch how {
	case members.Same:
		x.stats.Same++
		if x.st.Seen.Union(remote.Seen) {
			x.sawMore()
		}
		if !known || !remote.Seen.Covers(x.st.Seen) {
			x.sendSeen(from, false)
		}
	case members.Older:
		x.stats.Older++
		x.sendGossip(from, remote.Version)
	case members.Newer:
		x.stats.Newer++
		next.Seen.Add(next.Index(x.self))
		x.install(next, true)
		if !known {
			x.sendSeen(from, false)
		}
		// The leader waits for everybody: tell it directly instead of leaving that to the epidemic.
		if l := next.Leader(x.self); l != x.self && l != from && !l.IsZero() && !next.Reach.Accuses(x.self, l) {
			x.sendSeen(l, false)
		}
	case members.Merged, members.Bumped:
		x.stats.Merged++
		if how == members.Bumped {
			next = next.Draft().Commit(x.self)
		} else {
			next.Seen.Add(next.Index(x.self))
		}
		x.install(next, how == members.Bumped)
		x.sendGossip(from, remote.Version)
	}
}

// followable is plausible as the error that a peer's frame is answered with.
func (c *core) followable(kind wire.Kind, o *members.Version) error {
	if o == c.st.Version || c.st.Plausible(o) {
		return nil
	}
	return &wire.Error{Kind: kind, Offset: 0, Err: wire.ErrBadValue}
}

// extraTargets sends what a round sends to an unreachable member and to a deputy as well, each by chance. reached is
// the position of the round's own target, -1 when there was none.
func (x *exchange) extraTargets(reached int) {
	if x.cfg.Deputies <= 0 && !x.cfg.GossipToUnreachable {
		return
	}
	self := x.st.Index(x.self)
	unreachable := len(x.st.Unreachable)
	if x.st.Unreachable.Has(x.self) {
		unreachable--
	}
	live := len(x.st.Members) - 1 - unreachable
	if x.cfg.GossipToUnreachable && gossip.Chance(x.rng, gossip.ToUnreachable(unreachable, live)) {
		k := gossip.Choose(x.rng, len(x.st.Unreachable), 0, func(k int) bool { return x.st.Unreachable[k] != x.self }, nil)
		if k >= 0 {
			x.sendStatus(x.st.Unreachable[k])
		}
	}
	x.scratch = x.st.Deputies(x.st.Leader(x.self), x.cfg.Deputies, x.scratch[:0])
	p := gossip.ToDeputy(len(x.scratch), live, unreachable, slices.Contains(x.scratch, reached))
	x.scratch = slices.DeleteFunc(x.scratch, func(i int) bool { return i == self || i == reached })
	if len(x.scratch) > 0 && gossip.Chance(x.rng, p) {
		x.sendStatus(x.st.Members[x.scratch[x.rng.IntN(len(x.scratch))]].ID)
	}
}
