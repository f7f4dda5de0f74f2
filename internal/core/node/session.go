// Session: the session lease of this node, and the sessions of lost members, which are ended as proof (SHD-13, MEM-10).
//
// The node is a member that handles nothing while it has none. Unlike one that slept it needs nobody's word to go on:
// a member that takes its shards has ended its session before, and then it never has one again. So with sessions no
// time ever frees a lost owner's shards: proof alone does.
//
// The members on the larger side, as far as they see, try to end the session of a member that does not answer, one
// after the other. Every member tries to end that of one that is Down or removed.

package node

import (
	"time"

	"github.com/kith-io/kith/internal/core/session"
	"github.com/kith-io/kith/membership"
)

// What runtimes need to know of sessions.
type (
	// SessionConfig is how long sessions and their ends last; zero: there are none.
	SessionConfig = session.Config
	// SessionOp is one call of the store of sessions.
	SessionOp = session.Op
	// SessionResult answers a SessionOp.
	SessionResult = session.Result
	// SessionEvent is what is reported of sessions.
	SessionEvent = session.Event
	// SessionEventKind is the kind of one.
	SessionEventKind = session.EventKind
	// SessionStatus is where the session of a node stands.
	SessionStatus = session.Status
)

// What a SessionEvent tells; see package session.
const (
	SessionBegan   = session.Began
	SessionRanOut  = session.RanOut
	SessionBack    = session.Back
	SessionEnded   = session.Ended
	SessionGaveUp  = session.GaveUp
	SessionFailing = session.Failing
	SessionSwapped = session.Swapped
	SessionNotYet  = session.NotYet
)

// SessionEffects is what a step asks for the session of this node, and reports of it or of its tenure.
type SessionEffects struct {
	Ops    []SessionOp // each is answered with a SessionResult
	Events []SessionEvent
	Tenure []TenureEvent
}

func (e SessionEffects) emptied() SessionEffects {
	return SessionEffects{e.Ops[:0], e.Events[:0], e.Tenure[:0]}
}

// sessions is the part of a node.
type sessions struct {
	m *session.Machine // nil: there are none
	lapse
	lost unproven
	out  session.Effects
}

// Session returns where the session of this node stands, as of its last step, and from when on this node may handle
// nothing, for its session counts for nothing more: NoLease when there are no sessions, or it was no member yet, so
// that nothing lives here.
func Session(n *Node) (s SessionStatus, until time.Duration) {
	if n.sessions.m == nil {
		return s, NoLease
	}
	if until = NoLease; n.sessions.joined {
		until = n.sessions.m.Until()
	}
	return n.sessions.m.Status(), until
}

// lacking reports whether this node has no session though it should: it knows of none that counts at now. Others may
// have ended the last one.
func (s *sessions) lacking(now time.Duration) bool {
	return s.m != nil && s.joined && now >= s.m.Until()
}

// acts carries out what the machine of sessions wants: calls for the runtime, the end of this node, proof of others'.
func (s *sessions) acts(n *Node) {
	if s.m == nil {
		return
	}
	s.m.Drain(&s.out)
	out := &n.out.Session
	out.Ops, out.Events = append(out.Ops, s.out.Ops...), append(out.Events, s.out.Events...)
	if s.out.Over != "" {
		// Refused by one that has ended otherwise.
		_ = n.members.Do(n.now, membership.IsolatedCommand{Why: s.out.Over})
	}
	proves(s.out.Proven, n)
}

// follows gives the machine the lost members, when those may have changed, and makes the node handle nothing, or go on,
// as its session says.
func (s *sessions) follows(n *Node) {
	if s.m == nil {
		return
	}
	if s.lost.look(n) || s.m.Seeks() {
		ids, rank := s.lost.gather(n)
		_ = s.m.Do(n.now, session.LostCommand{IDs: ids, Rank: rank}) // never refused
	}
	s.lapse.follow(s.m, n)
	s.acts(n)
}
