// Upcalls: frames that the transport has read, and what a link never sent.

package driver

import (
	"errors"
	"time"

	"github.com/kith-io/kith/internal/core/plane"
	"github.com/kith-io/kith/internal/runtime/loop"
	"github.com/kith-io/kith/internal/runtime/transport"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

// Data takes the whole frames of one read. It is an upcall of the transport, on the connection's loop.
func (t *peerTable) Data(c *transport.InConn, frames []byte) { t.exec.Data(c, frames) }

// PassDone ends a read pass. It is an upcall of the transport, on the loop.
func (t *peerTable) PassDone(l *loop.Loop) { t.exec.PassDone(l) }

// Control takes one control frame. It is an upcall of the transport, on the control loop.
func (t *peerTable) Control(from peer.ID, kind wire.Kind, body []byte, arrived time.Duration) {
	if kind == wire.KindSurvey || kind == wire.KindSurveyAnswer { // not the control goroutine's business
		t.surveyed(from, kind, body)
		return
	}
	if kind.Owner() == wire.OwnerReplica {
		t.replicated(from, kind, arrived, body)
		return
	}
	if t.ending.Load() {
		switch kind {
		case wire.KindSegment, wire.KindTaken, wire.KindRefusals, wire.KindRefused:
			t.last.keep(from, kind, arrived, body)
		}
		return
	}
	who := from
	if _, known := t.view().Member(from); !known {
		who = peer.ID{}
	}
	t.inbox.frame(who, from, kind, arrived, body)
}

// surveyed takes a question or an answer of a member. From the control loop.
func (t *peerTable) surveyed(from peer.ID, kind wire.Kind, body []byte) {
	if m, in := t.view().Member(from); !in || m.Status == membership.Down {
		t.strange(from, kind, errStranger)
	} else if !t.surveys.Take(from, kind, body) {
		t.inbox.dropped.Add(1)
	}
}

// replicated takes what a member says of replicated values. From the control loop.
func (t *peerTable) replicated(from peer.ID, kind wire.Kind, arrived time.Duration, body []byte) {
	if m, in := t.view().Member(from); !in || m.Status == membership.Down {
		t.strange(from, kind, errStranger)
		return
	}
	t.replicas.Take(from, kind, arrived, body)
}

// Undelivered fails what a link held and will never send: asks are answered, tells are reported. An upcall of the
// transport, from a goroutine that may take its time.
func (t *peerTable) Undelivered(id peer.ID, frames []byte, err error) {
	reason := plane.WhyUnsent(errors.Is(err, route.ErrStopped))
	regions := t.regions.Load()
	var env wire.Envelope
	for len(frames) > 0 {
		n := wire.SizeOf(frames)
		f := frames[:n:n]
		frames = frames[n:]
		what := plane.ClassifyUnsent(f, &env)
		if what == plane.UnsentReply {
			t.counts.repliesLost.Add(1)
		}
		if what < plane.UnsentLarge {
			continue
		}
		r := regions.byID.At(route.TypeID(env.Type))
		if r == nil {
			continue // cannot be: a region has sent it
		}
		if reason == route.Abandoned && what != plane.UnsentLarge {
			t.routes.abandon(r, route.ShardID(env.Shard), id, env.ID, what == plane.UnsentAsk)
		} else {
			r.count.unsent.Add(1)
		}
		switch what {
		case plane.UnsentLarge:
			t.large.unsent(id, &env, reason, err)
		case plane.UnsentAsk:
			// It was not sent: what a link hands out does not come back.
			t.asks.failWith(env.Corr, reason, route.NotRun(&PeerError{Peer: id, Type: r.typ.Name, Reason: reason}))
		case plane.UnsentTell:
			if reason != route.Abandoned {
				t.failed.add(r, route.ShardID(env.Shard), cause{peer: id, reason: reason}, 1, env.ID)
			}
		}
	}
	t.log.Debug("link dropped what it held", "peer", id, "error", err)
}

// LinkRoom goes on with drains and callers that met a full link.
func (t *peerTable) LinkRoom(l *transport.Link) {
	t.room.ring(lineKey{link: l})
	t.routes.roomAgain()
}

// MailboxRoom goes on with callers that wait for room at an entity or a node. It is an upcall of the transport.
func (t *peerTable) MailboxRoom(l *transport.Link, f wire.Full) {
	if f == (wire.Full{}) {
		t.room.ringBehind(l)
		return
	}
	t.room.ring(lineKey{l, f})
}
