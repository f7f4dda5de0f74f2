// Inbound: what the transport's loops read goes to package exec, which asks here for what is the node's: the way back
// to a sender, the table of asks, large messages, who is told of what was refused.

package driver

import (
	"errors"
	"fmt"
	"time"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/exec"
	"github.com/kith-io/kith/internal/loop"
	"github.com/kith-io/kith/internal/plane"
	"github.com/kith-io/kith/internal/transport"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

// execution is how handlers are run on this node. The transport has made its loops.
func (d *Driver) execution() {
	cfg := exec.Config{
		Workers: d.cfg.Workers, Loops: d.wires.Loops(), MaxPayload: d.cfg.MaxPayload, LocalBuffer: d.cfg.localBuffer(),
		Backlog: d.cfg.backlog, Mailboxes: &d.mail, Origin: &d.origin, LatencyEvery: d.cfg.LatencyEvery,
		Incident: d.cfg.Incident, Logger: d.log,
	}
	if tell := d.cfg.Latency; tell != nil {
		cfg.Latency = func(typ string, took time.Duration) { tell(HandlerTime, typ, took) }
	}
	d.exec.Init(cfg, exec.Needs{
		Source: func(c *transport.InConn) *exec.Source {
			return &d.neighbour(c.From()).conns[c.Link().Number()].source
		},
		Reply: d.reply, Nonsense: d.nonsense.note, Refused: d.refused, Large: d.takeLarge,
		Stopped: func(h *exec.Host) { d.inbox.post(func() { d.hostStopped(h) }) },
		Dropped: func(t *exec.Type, i entity.Incident) {
			d.failed.add(d.regionOf(t), i.Shard, cause{peer: d.self, reason: route.Crashed}, uint64(i.Dropped), bytesOf(i.ID))
		},
	})
}

// regionOf returns the region of a type, nil for none.
func (d *Driver) regionOf(t *exec.Type) *Region {
	if t == nil {
		return nil
	}
	return d.regions.Load().byID[t.ID()]
}

// refused tells the sender of an envelope that it was not taken: an ask is answered, a tell is reported. t is nil when
// the type is not registered here.
func (d *Driver) refused(t *exec.Type, source *exec.Source, env *wire.Envelope, reason route.Reason) {
	r, from := d.regionOf(t), remoteOf(source)
	switch hearer := plane.HearerOf(env.Flags); {
	case hearer == plane.HearsTransfer:
		d.refuseLarge(r, from, env, reason)
	case hearer == plane.HearsAnswer && from == nil:
		d.asks.settleQuietly(env.Corr, reason)
	case hearer == plane.HearsAnswer:
		var text [64]byte
		if err := from.answer(env.Corr, reason, d.bounds.appendLimit(text[:0], r, reason)); err != nil {
			d.log.Debug("refusal not answered", "peer", from.id, "reason", reason, "error", err)
		}
	case from == nil:
		d.failed.add(r, route.ShardID(env.Shard), cause{d.self, reason, d.bounds.limitOf(r, reason)}, 1, env.ID)
	default:
		from.refuse(plane.KeyOf(env, reason), env.ID)
	}
}

// reply takes an answer to an ask of this node.
func (d *Driver) reply(from peer.ID, f []byte) {
	status, corr, payload, err := wire.ParseReply(f)
	if err == nil && !route.Reason(status).Known() {
		err = fmt.Errorf("%w: status %d", wire.ErrBadValue, status)
	}
	if err != nil {
		d.nonsense.note(from, wire.KindReply, err)
		return
	}
	d.asks.answered(corr, from, route.Reason(status), payload)
}

// Data takes the whole frames of one read. It is an upcall of the transport, on the connection's loop.
func (d *Driver) Data(c *transport.InConn, frames []byte) { d.exec.Data(c, frames) }

// PassDone ends a read pass. It is an upcall of the transport, on the loop.
func (d *Driver) PassDone(l *loop.Loop) { d.exec.PassDone(l) }

// Control takes one control frame. It is an upcall of the transport, on the control loop.
func (d *Driver) Control(from peer.ID, kind wire.Kind, body []byte, arrived time.Duration) {
	who := from
	if _, known := d.View().Member(from); !known {
		who = peer.ID{}
	}
	d.inbox.frame(who, from, kind, arrived, body)
}

// Undelivered fails what a link held and will never send: asks are answered, tells are reported. An upcall of the
// transport, from a goroutine that may take its time.
func (d *Driver) Undelivered(id peer.ID, frames []byte, err error) {
	reason := plane.WhyUnsent(errors.Is(err, route.ErrStopped))
	regions := d.regions.Load()
	var env wire.Envelope
	for len(frames) > 0 {
		n := wire.SizeOf(frames)
		f := frames[:n:n]
		frames = frames[n:]
		what := plane.GiveUp(f, &env)
		if what == plane.UnsentReply {
			d.count.repliesLost.Add(1)
		}
		if what < plane.UnsentLarge {
			continue
		}
		r := regions.byID[route.TypeID(env.Type)]
		if r == nil {
			continue // cannot be: a region has sent it
		}
		r.count.unsent.Add(1)
		switch what {
		case plane.UnsentLarge:
			d.unsentLarge(&env, reason, err)
		case plane.UnsentAsk:
			d.asks.settleQuietly(env.Corr, reason)
		default:
			d.failed.add(r, route.ShardID(env.Shard), cause{peer: id, reason: reason}, 1, env.ID)
		}
	}
	d.log.Debug("link dropped what it held", "peer", id, "error", err)
}

// LinkRoom goes on with drains and callers that met a full link.
func (d *Driver) LinkRoom(l *transport.Link) {
	d.room.ring(l)
	if d.drains.Load() { // a link that is never idle for long tells of room thousands of times a second
		d.inbox.post(func() { d.control.agenda.Roomy() })
	}
}
