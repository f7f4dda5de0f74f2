// Gossip: the periodic round, the exchange that follows when digests differ, and the eager push of a change (GOS-4 to
// GOS-7).

package membership

import (
	"time"

	"github.com/kith-io/kith/gossip"
	"github.com/kith-io/kith/internal/members"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// farewellFanout is how many members hear of this node's end from itself.
const farewellFanout = 5

// gossipTick runs the round of an interval and plans two more at its thirds, which look again whether they are wanted.
func (m *Machine) gossipTick() {
	m.in(timerGossip, m.cfg.GossipInterval)
	m.round()
	if m.speedUp() {
		m.extra = 2
		m.in(timerExtra, m.cfg.GossipInterval/3)
	}
}

func (m *Machine) extraRound() {
	if m.extra--; m.extra > 0 {
		m.in(timerExtra, m.cfg.GossipInterval/3)
	}
	if m.speedUp() {
		m.round()
	}
}

func (m *Machine) speedUp() bool {
	return gossip.SpeedUp(m.st.Seen.Count(), len(m.st.Members), m.st.AnyDown)
}

// valid reports whether member i may be gossiped to: not this node, and not held unreachable by this node. What other
// observers say does not matter, else a broken pair would cut both off.
func (m *Machine) valid(i int) bool {
	id := m.st.Members[i].ID
	return id != m.self && !m.st.Reach.Accuses(m.self, id)
}

func (m *Machine) unseen(i int) bool { return !m.st.Seen.Has(i) }

// round sends a status to one member, by preference to one outside the seen set.
func (m *Machine) round() {
	n := len(m.st.Members)
	prefer := 0
	if !m.st.Seen.Full() {
		prefer = gossip.DifferentView(n, gossip.PerMillion(m.cfg.DifferentViewProbability), m.cfg.ReduceDifferentViewAbove)
	}
	i := gossip.Choose(m.rng, n, prefer, m.valid, m.unseen)
	if i >= 0 {
		m.sendStatus(m.st.Members[i].ID)
	}
	m.extraTargets(i)
}

func (m *Machine) sendStatus(to peer.ID) {
	s := statusBody{m.toward(to), m.st.Digest, m.st.Seen.Digest()}
	m.post(to, wire.KindStatus, func(b []byte) []byte { return appendStatus(b, s) })
}

// eagerPush sends a fresh change at once to a few members that have not seen it, once, and not more often than the
// push interval allows.
func (m *Machine) eagerPush() {
	if !m.push {
		return
	}
	if m.now < m.pushAt {
		m.timers[timerPush] = timer{m.pushAt, true}
		m.push = false // the timer sets it again
		return
	}
	m.push = false
	m.stop(timerPush)
	if m.spread(m.cfg.PushFanout, m.history.Base) > 0 {
		m.pushAt = m.now + m.cfg.PushInterval
	}
}

// spread sends the state to at most n members that have not seen it and may hold base, and returns to how many.
func (m *Machine) spread(n int, base *members.Version) int {
	if m.st.Seen.Full() {
		return 0
	}
	m.scratch = gossip.Sample(m.rng, len(m.st.Members), n, func(i int) bool { return m.valid(i) && m.unseen(i) },
		m.scratch[:0])
	for _, i := range m.scratch {
		m.sendGossip(m.st.Members[i].ID, base)
	}
	return len(m.scratch)
}

// sendState sends the seen set and the version, which is packed once however often it is sent.
func (m *Machine) sendState(to peer.ID, kind wire.Kind, tag uint64) {
	s := stateBody{to.Inc, tag, m.st.Digest, m.st.Seen, m.store.Pack(m.st.Version)}
	m.post(to, kind, func(b []byte) []byte { return appendStateBody(b, s) })
}

func (m *Machine) sendSeen(to peer.ID, reply bool) {
	s := seenBody{m.toward(to), m.st.Digest, reply, m.st.Seen}
	m.post(to, wire.KindSeen, func(b []byte) []byte { return appendSeenBody(b, s) })
}

func (m *Machine) sendVersion(to peer.ID) {
	v := versionBody{envelope: m.toward(to), digest: m.st.Digest, clock: m.st.Clock}
	m.post(to, wire.KindVersion, func(b []byte) []byte { return appendVersion(b, v) })
}

// sendWant asks for the state of one who holds another version; have is what the answer may be a delta from.
func (m *Machine) sendWant(to peer.ID, have gossip.Digest) {
	v := versionBody{envelope: m.toward(to), digest: have, want: true}
	m.post(to, wire.KindVersion, func(b []byte) []byte { return appendVersion(b, v) })
}

// addressed reports whether a message was meant for this incarnation and this cluster. Others are ignored.
func (m *Machine) addressed(e envelope) bool {
	if m.phase != member {
		return false
	}
	if e.to != m.self.Inc || e.cluster != m.st.Cluster {
		m.stats.Misaddressed++
		return false
	}
	return true
}

// hears reports whether gossip of from is worth reading: for this node, fresh enough (GOS-7), not of one whom this
// node holds unreachable, and not of a removed incarnation, which is told so. A sender that is no member yet is heard:
// tombstones decide who is none any more, so its state can only add what this node did not know, its own join first.
// holds is the version that the sender has. Who gossips to unreachable members also hears their answers.
func (m *Machine) hears(arrived time.Duration, from peer.ID, e envelope, holds gossip.Digest) bool {
	switch {
	case !m.addressed(e):
		if e.to == m.self.Inc {
			m.otherCluster(from.Addr, e.cluster, 0, false)
		}
		return false
	case m.now-arrived > m.cfg.GossipTimeToLive:
		m.stats.Expired++
		return false
	case m.tellRemoved(from):
		return false
	case m.st.Reach.Accuses(m.self, from) && !m.cfg.GossipToUnreachable:
		m.stats.FromUnreachable++
		return false
	}
	m.heardOf(from, holds)
	return true
}

func (m *Machine) onStatus(arrived time.Duration, from peer.ID, body []byte) error {
	s, err := readStatus(body)
	if err != nil || !m.hears(arrived, from, s.envelope, s.digest) {
		return err
	}
	switch gossip.JudgeStatus(m.st.Digest, s.digest, m.st.Seen.Digest(), s.seen) {
	case gossip.SendVersion:
		m.sendVersion(from)
	case gossip.SendSeen:
		m.sendSeen(from, true)
	}
	return nil
}

func (m *Machine) onVersion(arrived time.Duration, from peer.ID, body []byte) error {
	v, err := readVersion(body)
	if err != nil || !m.hears(arrived, from, v.envelope, v.digest) || v.digest == m.st.Digest {
		return err
	}
	if v.want {
		m.sendGossip(from, m.held(v.digest))
		return nil
	}
	switch gossip.JudgeVersion(m.st.Clock, v.clock) {
	case gossip.AskState:
		m.sendWant(from, m.st.Digest)
	case gossip.SendState, gossip.Exchange: // a state that is not newer is answered with the receiver's
		m.sendGossip(from, m.held(v.digest))
	}
	return nil
}

func (m *Machine) onSeen(arrived time.Duration, from peer.ID, body []byte) error {
	s, err := readSeenBody(body)
	if err != nil || !m.hears(arrived, from, s.envelope, s.digest) || s.digest != m.st.Digest {
		return err
	}
	if s.seen.Len() != m.st.Seen.Len() {
		return &wire.Error{Kind: wire.KindSeen, Offset: len(body), Err: wire.ErrBadValue}
	}
	if m.st.Seen.Union(s.seen) {
		m.sawMore()
	}
	if s.reply && !s.seen.Covers(m.st.Seen) {
		m.sendSeen(from, false)
	}
	return nil
}

func (m *Machine) onGossip(arrived time.Duration, from peer.ID, body []byte) error {
	b, err := readStateBody(wire.KindGossip, body)
	if err != nil || !m.hears(arrived, from, envelope{b.to, b.tag}, b.digest) {
		return err
	}
	remote, err := m.readState(wire.KindGossip, &b)
	if err != nil {
		return err
	}
	if remote.Cluster != m.st.Cluster || remote.Birth != m.st.Birth {
		return &wire.Error{Kind: wire.KindGossip, Offset: 0, Err: wire.ErrBadValue}
	}
	if t, dead := remote.Tomb(m.self); dead {
		m.removedBy(from, t, remote.UpCount(), remote.LowestUp(), 0)
		return nil
	}
	if err := m.followable(wire.KindGossip, remote.Version); err != nil {
		return err
	}
	m.take(from, remote)
	return nil
}

// take brings a received state together with the local one and answers: an older sender gets ours, after a merge the
// sender gets the result, and one who did not know that we have seen its version is told.
func (m *Machine) take(from peer.ID, remote *members.State) {
	if remote.Digest != m.st.Digest && m.returned(from, remote) {
		return
	}
	known := remote.HasSeen(m.self)
	next, how := m.store.NewerOrMerged(m.st, remote, m.held)
	switch how {
	case members.Same:
		m.stats.Same++
		if m.st.Seen.Union(remote.Seen) {
			m.sawMore()
		}
		if !known || !remote.Seen.Covers(m.st.Seen) {
			m.sendSeen(from, false)
		}
	case members.Older:
		m.stats.Older++
		m.sendGossip(from, remote.Version)
	case members.Newer:
		m.stats.Newer++
		next.Seen.Add(next.Index(m.self))
		m.install(next, true)
		if !known {
			m.sendSeen(from, false)
		}
		// The leader waits for everybody: tell it directly instead of leaving that to the epidemic.
		if l := next.Leader(m.self); l != m.self && l != from && !l.IsZero() && !next.Reach.Accuses(m.self, l) {
			m.sendSeen(l, false)
		}
	case members.Merged, members.Bumped:
		m.stats.Merged++
		if how == members.Bumped {
			next = next.Draft().Commit(m.self)
		} else {
			next.Seen.Add(next.Index(m.self))
		}
		m.install(next, how == members.Bumped)
		m.sendGossip(from, remote.Version)
	}
}

// followable is plausible as the error that a peer's frame is answered with.
func (m *Machine) followable(kind wire.Kind, o *members.Version) error {
	if o == m.st.Version || m.st.Plausible(o) {
		return nil
	}
	return &wire.Error{Kind: kind, Offset: 0, Err: wire.ErrBadValue}
}
