// Lapse: what sessions and tenures share: a node handles nothing without one, and there are members to be proven ended.

package node

import (
	"slices"
	"time"

	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/shard"
)

// NoLease is a time that never comes: until then a node with neither session nor tenure may handle messages.
const NoLease = time.Duration(1<<63 - 1)

// licence is what a node must hold to handle messages: session.Machine or tenure.Machine.
type licence interface {
	Held() bool
	Why() string
	First() (until time.Duration, ok bool)
}

// lapse is whether a node lacks it.
type lapse struct {
	what   string // in words
	joined bool   // this node has been a member
	quiet  bool   // it has none yet, and that is nothing to report: the first may come in time
}

// follow makes the node handle nothing, or go on.
func (l *lapse) follow(m licence, n *Node) {
	x := &n.suspension
	l.joined = l.joined || x.member // a node that has ended is no member, and must not go on
	lapsed, was := l.joined && !m.Held(), x.lapsed
	if x.lapsed = lapsed; lapsed != was {
		_ = n.shards.Do(n.now, shard.LapseCommand{On: lapsed}) // never refused
	}
	_, early := m.First()
	switch why := "its " + l.what + " has run out: " + m.Why(); {
	case lapsed && !was:
		n.out.Suspend = &Suspend{On: true, Why: why}
		if l.quiet = early; !early {
			n.out.Events = append(n.out.Events, x.tell(n.now, why))
		}
	case lapsed && l.quiet && !early:
		l.quiet = false
		n.out.Events = append(n.out.Events, x.tell(n.now, "it has no "+l.what+" yet: "+m.Why()))
	case !lapsed && was && l.quiet:
		if l.quiet = false; !x.on {
			n.out.Suspend = &Suspend{Why: "its " + l.what + " is held"}
		}
	case !lapsed && was && !x.on:
		goesOn("its "+l.what+" is held", n)
	}
}

// next is when to report that there is none yet.
func (l *lapse) next(m licence) (deadline time.Duration, ok bool) {
	if !l.quiet {
		return 0, false
	}
	return m.First()
}

// unproven are the lost members with an end that is to be proven.
type unproven struct {
	view   *membership.View // of the last look
	losses []shard.Loss     // likewise
	asleep bool             // likewise
	ids    []peer.ID        // scratch memory
}

// look reports whether they may have changed since the last time.
func (u *unproven) look(n *Node) bool {
	known, view, asleep := len(u.losses), u.view, u.asleep
	u.losses = n.shards.Losses(u.losses[:0])
	u.view, u.asleep = n.fed, n.suspension.on
	return u.view != view || len(u.losses) != known || u.asleep != asleep
}

// gather returns them, and how many members come before this one. A node that slept, or that its resolver has stopped,
// knows of nobody. The members on the larger side, as far as they see, look after those that do not answer, and with
// tenures those with a quorum of the seats, however few they are; every member after those that are Down or removed.
func (u *unproven) gather(n *Node) (ids []peer.ID, rank int) {
	u.ids = u.ids[:0]
	v := n.fed
	if v == nil || n.suspension.on || !n.suspension.member {
		return nil, 0
	}
	for _, l := range u.losses {
		if !l.Proven {
			u.ids = append(u.ids, l.ID)
		}
	}
	rank, larger := standing(v)
	larger = larger || n.tenures.seated(v)
	for _, id := range v.Unreachable {
		if m, in := v.Member(id); larger && in && m.Status != membership.Down && id != v.Self {
			u.ids = append(u.ids, id)
		}
	}
	slices.SortFunc(u.ids, peer.ID.Compare)
	u.ids = slices.Compact(u.ids)
	return u.ids, rank
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

// proves writes into the state that the processes of members handle nothing any more, and frees their shards.
func proves(ids []peer.ID, n *Node) {
	if len(ids) == 0 {
		return
	}
	n.gatherMembers()
	n.out.keepBodies()
	_ = n.members.Do(n.now, membership.ProveCommand{IDs: ids}) // refused by a node that is no member any more
	n.tenures.ends.learns(ids)
	for _, id := range ids {
		// Never refused. The state may have forgotten a member whose shards still wait.
		_ = n.shards.Do(n.now, shard.DeathCommand{ID: id})
	}
}
