// Tenure: this node handles messages while a quorum of the seats vouches for it, and may hold a seat itself (MEM-10).
//
// As with sessions no time ever frees a lost owner's shards, proof alone does. A node that has lost its tenure needs
// nobody's word to go on but that of the seats.
//
// Rules of the model that are held elsewhere: everybody-reports and joiners-report by sharding: a coordinator waits for
// every member of its view and all losses; no-lower-terms by its terms; converged-joins by forming, which lets
// nobody in weakly; numbers-remember by up-numbers and tombstones, which outlast every promise by far.

package node

import (
	"slices"
	"time"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/internal/core/courier"
	"github.com/kith-io/kith/internal/core/tenure"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/sbr"
	"github.com/kith-io/kith/wire"
)

// What runtimes need to know of tenures.
type (
	// TenureConfig is the electorate and how long its grants count; zero: no node has a tenure.
	TenureConfig = tenure.Config
	// TenureEvent is what is reported of tenures.
	TenureEvent = tenure.Event
	// TenureEventKind is the kind of one.
	TenureEventKind = tenure.EventKind
	// RefoundCommand is an operator's word that all that are Down or were removed have ended, and none lives that this
	// node does not list: an electorate that has lost a quorum of its seats is founded anew. Any member takes it; see
	// membership.RefoundCommand.
	RefoundCommand = membership.RefoundCommand
	// TenureStatus is where the tenure of a node stands, and its seat.
	TenureStatus = tenure.Status
)

// What a TenureEvent tells; see package tenure.
const (
	TenureBegan   = tenure.Began
	TenureRanOut  = tenure.RanOut
	TenureBack    = tenure.Back
	TenureRevoked = tenure.Revoked
	TenureProven  = tenure.Proven
	TenureGotSeat = tenure.GotSeat
	TenureNoSeat  = tenure.NoSeat
	TenureAssumed = tenure.Assumed
)

// tenures is the part of a node.
type tenures struct {
	m *tenure.Machine // nil: there are none
	lapse
	lost  unproven
	shown *membership.View // to the machine
	in    []peer.ID        // scratch memory
	gone  []peer.ID        // likewise
	out   tenure.Effects

	ends    ends
	found   founding
	founded bool // all members are known to have a list of seats: each later one was written when all had the first
}

// maxEnds is how many proofs a node remembers that orders carry: older ones have come everywhere long ago.
const maxEnds = 256

// ends are the proofs in this node's own state, in the order in which it learnt them, and how many of them each member
// has been sent. An order carries those that it may rest on: they may be nowhere else, and would be lost with this node
// (orders-carry).
type ends struct {
	list   []peer.ID
	before int             // proofs that came before the list
	sent   map[peer.ID]int // looked up, never gone through but to forget
}

// learns takes proofs that are new.
func (e *ends) learns(ids []peer.ID) {
	for _, id := range ids {
		if !slices.Contains(e.list, id) {
			e.list = append(e.list, id)
		}
	}
	if over := len(e.list) - maxEnds; over > 0 {
		e.list, e.before = slices.Clone(e.list[over:]), e.before+over
	}
}

// carries sends the proofs that a member has not been sent yet, in the stream of the order behind them. It is false
// when there is no room for them: then the order has to wait, and its machine says it again.
func (e *ends) carries(n *Node, to peer.ID) bool {
	for at := max(e.sent[to], e.before); at < e.before+len(e.list); at++ {
		mail := peer.Mail{To: to, Kind: wire.KindTenure, Body: tenure.Ended(e.list[at-e.before])}
		if n.courier.Do(n.now, courier.PostCommand{Mail: mail}) != nil {
			return false
		}
		if e.sent == nil {
			e.sent = map[peer.ID]int{}
		}
		e.sent[to] = at + 1
	}
	return true
}

// forgets drops what is known of those that are no members any more.
func (e *ends) forgets(v *membership.View) {
	for id := range e.sent { // each is looked at alone: no order
		if _, in := v.Member(id); !in {
			delete(e.sent, id)
		}
	}
}

// founding is an electorate that waits for the end of lost members. When that is assumed a leader does so a takeover
// time after the last of them was seen Down.
type founding struct {
	assumes bool
	waits   []peer.ID // for the end of these
	since   time.Duration
}

// looks takes a state of this node that is new.
func (f *founding) looks(n *Node) {
	_, now := membership.SeatsLost(n.members, nil)
	if slices.ContainsFunc(now, func(id peer.ID) bool { return !slices.Contains(f.waits, id) }) {
		f.since = n.now
	}
	f.waits = now
}

// next is when the end of those is assumed here: only by the leader, and only if the settings say so.
func (f *founding) next(n *Node) (at time.Duration, ok bool) {
	s := &n.suspension
	leads := n.fed != nil && n.fed.Leader == n.fed.Self && s.member && !s.outdated()
	return f.since + n.Takeover(), f.assumes && leads && len(f.waits) > 0
}

// follow assumes that they have ended when that is due.
func (f *founding) follow(n *Node) {
	if at, ok := f.next(n); ok && n.now >= at {
		n.gatherMembers()
		n.out.keepBodies()
		_ = f.says(n) // refused where a quorum is held again
		f.since = n.now
	}
}

// says takes it that all have ended that are Down or were removed in the state of this node.
func (f *founding) says(n *Node) error {
	_, all := membership.SeatsLost(n.members, nil)
	err := n.members.Do(n.now, membership.RefoundCommand{})
	if err == nil && len(all) > 0 {
		n.out.Session.Tenure = append(n.out.Session.Tenure, TenureEvent{Kind: TenureAssumed, All: all})
	}
	return err
}

// Refounding returns the members with an end that has to be proven before an electorate which has lost a quorum of its
// seats is given others, and from when on that is assumed by the leader; ok is false where nobody assumes it. None: it
// waits for nobody.
func Refounding(n *Node) (waits []peer.ID, at time.Duration, ok bool) {
	if n.tenures.m == nil {
		return nil, 0, false
	}
	f := &n.tenures.found
	return f.waits, f.since + n.Takeover(), f.assumes && len(f.waits) > 0
}

// Tenure returns where the tenure of this node stands, as of its last step, and from when on this node may handle
// nothing: NoLease when there are no tenures, or it was no member yet, so that nothing lives here.
func Tenure(n *Node) (s TenureStatus, until time.Duration) {
	if n.tenures.m == nil {
		return s, NoLease
	}
	if until = NoLease; n.tenures.joined {
		until = n.tenures.m.Until()
	}
	return n.tenures.m.Status(), until
}

// Electorate returns the list of seats that this node goes by, the zero value without tenures. It is not to be changed.
func Electorate(n *Node) membership.Seats {
	if n.tenures.m == nil {
		return membership.Seats{}
	}
	return membership.Seats(n.tenures.m.Seats())
}

// Vouched appends until when each seat of the Electorate vouches for a node, on its clock; nothing without tenures.
func Vouched(to []time.Duration, n *Node) []time.Duration {
	if n.tenures.m == nil {
		return to
	}
	return n.tenures.m.Vouched(to)
}

// acts carries out what the machine wants: members that are Down first, then proofs, and then its mail.
func (t *tenures) acts(n *Node) {
	if t.m == nil {
		return
	}
	t.m.Drain(&t.out)
	if len(t.out.Down) > 0 {
		n.gatherMembers()
		n.out.keepBodies()
		down := membership.DownAllCommand{IDs: t.out.Down, Cause: cluster.CauseLease}
		_ = n.members.Do(n.now, down) // refused as proofs are
	}
	proves(t.out.Proven, n)
	for i := range t.out.Mail {
		m := &t.out.Mail[i]
		n.out.Mail = append(n.out.Mail, peer.Mail{To: m.To, Kind: wire.KindTenure, Body: m.Body})
	}
	n.out.Session.Tenure = append(n.out.Session.Tenure, t.out.Events...)
}

// follows shows the machine the state of this node and the lost members, when those may have changed, and makes the
// node handle nothing, or go on, as its tenure says.
func (t *tenures) follows(n *Node) {
	if t.m == nil {
		return
	}
	t.acts(n)
	n.feed()
	t.shows(n)
	if t.lost.look(n) || t.m.Seeks() {
		ids, rank := t.lost.gather(n)
		_ = t.m.Do(n.now, tenure.SeekCommand{IDs: ids, Rank: rank}) // none is ever refused
		_ = t.m.Do(n.now, tenure.MissCommand{IDs: t.missing(n)})
	}
	_ = t.m.Do(n.now, tenure.NeedCommand{On: n.suspension.member})
	t.lapse.follow(t.m, n)
	t.found.follow(n)
	t.acts(n)
	n.feed()
	t.shows(n)
}

// shows feeds the machine a state that is new.
func (t *tenures) shows(n *Node) {
	if n.fed == nil || n.fed == t.shown {
		return
	}
	t.shown = n.fed
	var seats membership.Seats
	seats, t.in, t.gone = n.members.Seats(t.in[:0], t.gone[:0])
	_ = t.m.Do(n.now, tenure.ViewCommand{Seats: tenure.Seats(seats), Members: t.in, Lost: t.gone})
	t.founded = t.founded || seats.Number > 1 || seats.Number == 1 && n.fed.Converged
	t.found.looks(n)
	t.ends.forgets(n.fed)
	t.acts(n)
}

// removed returns the members that were removed without proof of their end: a joiner may never have had them in a view
// (words-of-the-down). None is forgotten before that proof.
func (t *tenures) removed(n *Node) []peer.ID {
	if t.m == nil {
		return nil
	}
	t.gone = membership.Unproven(t.gone[:0], n.members)
	return t.gone
}

// counted returns the seats by which the resolver decides, whatever its strategy says of members: a side without a
// quorum of them handles nothing (MEM-10).
func (t *tenures) counted(n *Node) sbr.SeatsCommand {
	seats, _, _ := n.members.Seats(t.in[:0], t.gone[:0])
	ended := membership.EndedOf(n.members, seats.Holders)
	return sbr.SeatsCommand{Number: seats.Number, Holders: seats.Holders, Ended: ended}
}

// seated reports whether the members that answer hold a quorum of the seats: they alone can prove an end, be they fewer
// than the others. Where those may have no list yet it is false: they may found an electorate of their own.
func (t *tenures) seated(v *membership.View) bool {
	if t.m == nil || !t.founded {
		return false
	}
	holders, held := t.m.Seats().Holders, 0
	for _, h := range holders {
		if m, in := v.Member(h); in && m.Status != membership.Down && (h == v.Self || !slices.Contains(v.Unreachable, h)) {
			held++
		}
	}
	return 2*held > len(holders)
}

// missing returns the members that do not answer; none where this node may be the one that is cut off or slept.
func (t *tenures) missing(n *Node) []peer.ID {
	t.in = t.in[:0]
	if v := n.fed; v != nil && !n.suspension.on {
		for _, id := range v.Unreachable {
			if m, in := v.Member(id); in && m.Status != membership.Down && id != v.Self {
				t.in = append(t.in, id)
			}
		}
	}
	return t.in
}
