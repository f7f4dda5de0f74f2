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
	"slices"
	"time"

	"github.com/kith-io/kith/internal/core/session"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/shard"
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

// NoLease is a time that never comes: until then a node without sessions may handle messages.
const NoLease = time.Duration(1<<63 - 1)

// SessionEffects is what a step asks for the session of this node.
type SessionEffects struct {
	Ops    []SessionOp // each is answered with a SessionResult
	Events []SessionEvent
}

func (e SessionEffects) emptied() SessionEffects { return SessionEffects{e.Ops[:0], e.Events[:0]} }

// sessions is the part of a node.
type sessions struct {
	m      *session.Machine // nil: there are none
	view   *membership.View // of the last look for lost members
	losses []shard.Loss     // likewise
	asleep bool             // likewise
	joined bool             // this node has been a member
	lost   []peer.ID        // scratch memory
	out    session.Effects
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
	if len(s.out.Proven) == 0 {
		return
	}
	n.gatherMembers()
	n.out.keepBodies()
	_ = n.members.Do(n.now, membership.ProveCommand{IDs: s.out.Proven}) // refused by a node that is no member any more
	for _, id := range s.out.Proven {
		// Never refused. The state may have forgotten a member whose shards still wait.
		_ = n.shards.Do(n.now, shard.DeathCommand{ID: id})
	}
}

// follows gives the machine the lost members, when those may have changed, and makes the node handle nothing, or go on,
// as its session says.
func (s *sessions) follows(n *Node) {
	if s.m == nil {
		return
	}
	known, asleep := len(s.losses), n.suspension.on
	s.losses = n.shards.Losses(s.losses[:0])
	if s.view != n.fed || len(s.losses) != known || s.asleep != asleep || s.m.Seeks() {
		s.view, s.asleep = n.fed, asleep
		rank := s.seek(n)
		_ = s.m.Do(n.now, session.LostCommand{IDs: s.lost, Rank: rank}) // never refused
	}
	s.lapse(n)
	s.acts(n)
}

// seek gathers the members with sessions to be ended, and returns how many come before this one. A node that slept, or
// that its resolver has stopped, knows of nobody.
func (s *sessions) seek(n *Node) (rank int) {
	s.lost = s.lost[:0]
	v := n.fed
	if v == nil || n.suspension.on || !n.suspension.member {
		return 0
	}
	for _, l := range s.losses {
		if !l.Proven {
			s.lost = append(s.lost, l.ID)
		}
	}
	rank, larger := standing(v)
	for _, id := range v.Unreachable {
		if m, in := v.Member(id); larger && in && m.Status != membership.Down && id != v.Self {
			s.lost = append(s.lost, id)
		}
	}
	slices.SortFunc(s.lost, peer.ID.Compare)
	s.lost = slices.Compact(s.lost)
	return rank
}

// standing says how many of the members that answer come before this node in a view, and whether those that answer are
// more than half of all, or half with the first of all.
func standing(v *membership.View) (rank int, larger bool) {
	all, answer, lowest := 0, 0, false
	for i := range v.Members {
		m := &v.Members[i]
		if m.Status == membership.Down {
			continue
		}
		if all++; slices.Contains(v.Unreachable, m.ID) && m.ID != v.Self {
			continue
		}
		if answer++; all == 1 {
			lowest = true
		}
		if m.ID.Compare(v.Self) < 0 {
			rank++
		}
	}
	return rank, 2*answer > all || 2*answer == all && lowest
}

// lapse follows the session.
func (s *sessions) lapse(n *Node) {
	x := &n.suspension
	s.joined = s.joined || x.member // a node that has ended is no member, and must not go on
	lapsed := s.joined && !s.m.Held()
	if lapsed == x.lapsed {
		return
	}
	x.lapsed = lapsed
	switch {
	case lapsed:
		why := "its session lease has run out: " + s.m.Why()
		n.out.Suspend = &Suspend{On: true, Why: why}
		n.out.Events = append(n.out.Events, x.tell(n.now, why))
	case !x.on:
		goesOn("its session lease is held", n)
	}
}
