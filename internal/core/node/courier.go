// Courier: which mail goes out numbered, which nodes count as peers, and what becomes of one that acknowledges nothing
// (FD-4).

package node

import (
	"errors"
	"time"

	"github.com/kith-io/kith/internal/core/courier"
	"github.com/kith-io/kith/internal/core/watch"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/shard"
	"github.com/kith-io/kith/stats"
	"github.com/kith-io/kith/wire"
)

// What runtimes need to know of the courier: its bounds, its counters, and mail that found no room.
type (
	// CourierConfig is the pace and the bounds of the courier.
	CourierConfig = courier.Config
	// CourierStats are the counters of the courier.
	CourierStats = stats.Courier
	// CourierFull says that a control message was not taken because too many to its peer are outstanding.
	CourierFull = courier.FullError
)

// PlainCommand says that a peer does not know segments, as one of wire version 1: it gets its messages bare from now
// on.
type PlainCommand struct{ ID peer.ID }

// Received is one control message that came in a segment and was given to its machine in this step.
type Received struct {
	From peer.ID
	Kind wire.Kind
	Body []byte
}

// NoticeCommand sends a notice to a member: what one runtime tells another, which must arrive once, in the order of its
// sender. Its body is copied. Do returns ErrNoRoom when it has to be tried again, ErrNoPeer when it never will be sent.
type NoticeCommand struct{ Mail peer.Mail }

// Errors of a NoticeCommand; match them with errors.Is.
var (
	ErrNoRoom = courier.ErrFull
	ErrNoPeer = courier.ErrNoPeer
)

// NoticeAgain reports whether a notice that Do did not take is to be posted again: it found no room, or is for one that
// is no member yet but has its messages taken here (known).
func NoticeAgain(err error, member, known bool) bool {
	return errors.Is(err, ErrNoRoom) || err != nil && !member && known
}

// NoticeSince is the wire version since which notices travel in segments.
const NoticeSince = courier.NoticeSince

// leastPatience is how long a peer may be silent in any case: a network that is cut again and again, each time for less
// than a detector bears, and repetitions that miss the times in between, have to be over.
const leastPatience = 30 * time.Second

// GiveUpAfter returns for how long a reachable peer may acknowledge nothing in a cluster with that many members: one
// and a half times the takeover time, so that a peer that is given up has been lost to us for longer than an owner may
// be, and at least half a minute.
func (c Config) GiveUpAfter(members int) time.Duration {
	return max(leastPatience, c.Takeover(members)/2*3)
}

// Courier returns the counters of control messages as of the last step.
func (n *Node) Courier() CourierStats { return n.courier.Stats() }

// Counts are totals of the node's machines, as of the last step.
type Counts struct {
	Watches     watch.Stats
	Courier     CourierStats
	Members     membership.Stats
	Sharding    shard.Counters
	Suspensions Suspensions
}

// Counts returns the counters of the node's machines.
func (n *Node) Counts() Counts {
	return Counts{n.watches.Stats(), n.courier.Stats(), n.members.Stats(), n.shards.Counters(), n.suspension.told}
}

// receive takes a segment or an acknowledgement. What it delivers goes to sharding in the same step; a message that is
// nonsense is refused there and counts as delivered, for it would not get better.
func (n *Node) receive(now, arrived time.Duration, from peer.ID, kind wire.Kind, body []byte) error {
	err := n.courier.Handle(now, arrived, from, kind, body)
	for _, d := range n.courier.Peek().Delivered {
		n.out.Received = append(n.out.Received, Received{from, d.Kind, d.Body})
		if courier.Notice(d.Kind) {
			n.out.Notices = append(n.out.Notices, Received{from, d.Kind, d.Body})
			continue
		}
		if d.Kind.Owner() == wire.OwnerTenure {
			if n.tenures.m != nil {
				err = errors.Join(err, n.tenures.m.Handle(now, from, d.Body))
				n.tenures.acts(n) // into the state before the order behind it is followed
			}
			continue
		}
		if d.Kind.Owner() == wire.OwnerWatch {
			err = errors.Join(err, n.watches.Handle(now, arrived, from, d.Kind, d.Body))
			continue
		}
		if e := n.shards.Handle(now, arrived, from, d.Kind, d.Body); e != nil {
			err = errors.Join(err, e)
		}
	}
	return err
}

// post sends mail, in a segment if it is of a kind that travels so.
func (n *Node) post(mail *peer.Mail) {
	if !courier.Carries(mail.Kind) {
		n.out.Mail = append(n.out.Mail, *mail)
		return
	}
	// What finds no room is reported once and counted, and its machine says it again; to a node that is gone there is no
	// way.
	_ = n.courier.Do(n.now, courier.PostCommand{Mail: *mail})
}

// giveUp turns silence into a quarantine. Whether it is recorded, or this node takes the fault for its own, membership
// decides; one that is no member any more needs none.
func (n *Node) giveUp(list []courier.GaveUp) {
	for _, g := range list {
		before := n.members.Stats().SelfSuspected
		_ = n.members.Do(n.now, membership.QuarantineCommand{ID: g.ID, Reason: g.Reason, Alike: g.Alike})
		if n.members.Stats().SelfSuspected != before {
			_ = n.courier.Do(n.now, courier.ForgiveCommand{}) // never refused
			return
		}
	}
}

// roster says of a view what the courier has to know.
func (n *Node) roster(v *membership.View) courier.Roster {
	s := Standings{view: v}
	for _, a := range v.Accusations {
		if a.Observer == v.Self && a.Quarantined {
			s.condemned.Add(a.Subject)
		}
	}
	return courier.Roster{GiveUpAfter: n.patience(len(v.Members)), Of: s}
}

// Standings is what a view says of peers.
type Standings struct {
	view      *membership.View
	condemned peer.Set
}

// Of returns the standing of a peer.
func (s Standings) Of(id peer.ID) courier.Standing {
	m, ok := s.view.Member(id)
	switch {
	case !ok:
		return courier.Absent
	case m.Status == membership.Down:
		return courier.Lost
	case s.condemned.Has(id):
		return courier.Condemned
	case m.UpNumber == 0 || !s.view.Reachable(id):
		return courier.Doubted
	}
	return courier.Present
}
