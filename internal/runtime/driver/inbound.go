// Inbound: what the transport's loops read goes to package exec, which asks here for what is the node's: the way back
// to a sender, the table of asks, large messages, the senders of what was refused.

package driver

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/core/node"
	"github.com/kith-io/kith/internal/core/partition"
	"github.com/kith-io/kith/internal/core/plane"
	"github.com/kith-io/kith/internal/core/replica"
	"github.com/kith-io/kith/internal/core/survey"
	"github.com/kith-io/kith/internal/runtime/exec"
	"github.com/kith-io/kith/internal/runtime/parcels"
	"github.com/kith-io/kith/internal/runtime/replicas"
	"github.com/kith-io/kith/internal/runtime/transport"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

// execution is how handlers are run on this node; their incidents go to log. The transport has made its loops.
func (d *Driver) execution(log *slog.Logger) {
	cfg := exec.Config{
		Workers: d.cfg.Workers, Loops: d.wires.Loops(), MaxPayload: d.cfg.MaxPayload, LocalBuffer: d.cfg.localBuffer(),
		Backlog: d.cfg.backlog, Mailboxes: &d.mail, MailboxBudget: d.cfg.MailboxBudget,
		MailboxUsed: func() int { return int(d.mail.used.Load()) }, Origin: &d.origin, LatencyEvery: d.cfg.LatencyEvery,
		Incident: d.cfg.Incident, Callbacks: &d.count.callbacks, Logger: log,
		Alone: d.cfg.Unheard != nil,
	}
	if tell := d.cfg.Latency; tell != nil {
		cfg.Latency = func(typ string, took time.Duration) { tell(HandlerTime, typ, took) }
	}
	d.exec.Init(cfg, exec.Needs{
		Source: func(c *transport.InConn) *exec.Source {
			n := d.peerNode(c.From())
			n.notices.Store(c.Version() >= node.NoticeSince)
			return &n.conns[c.Link().Number()].source
		},
		Marked: func(from peer.ID, m wire.Marker) { d.inbox.post(func() { d.dispatch.marked(from, m) }) },
		Reply:  d.reply, Parcel: d.parcel, InvalidFrames: d.nonsense.note, Refused: d.refused, Large: d.large.take,
		Asker:     asker,
		Room:      d.room.ringHere,
		Stopped:   func(h *exec.Host) { d.inbox.post(func() { d.hostStopped(h) }) },
		Overdue:   d.asks.letGo,
		Unhandled: d.unhandled,
		Watches:   func() { d.inbox.post(func() { watchTurn(d) }) },
	})
}

// asker is the node to which that way back leads, none for one that is gone.
func asker(from entity.Origin) peer.ID {
	switch o := from.(type) {
	case *peerConn:
		return o.id
	case *selfOrigin:
		return o.d.self
	}
	return peer.ID{}
}

// unhandled counts and reports what has ended at a shard here before a handler got it; an asker has its answer.
func (d *Driver) unhandled(t *exec.Type, shard route.ShardID, id string, why route.Reason, ask bool) {
	switch r := d.regionOf(t); {
	case why == route.Abandoned:
		d.abandon(r, shard, d.self, bytesOf(id), ask)
	case !ask:
		d.failed.add(r, shard, cause{peer: d.self, reason: why}, 1, bytesOf(id))
	}
}

// regionOf returns the region of a type, nil for none.
func (d *Driver) regionOf(t *exec.Type) *Region {
	if t == nil {
		return nil
	}
	return d.regions.Load().byID.At(t.ID())
}

// refused tells the sender of an envelope that it was not taken: an ask is answered, a tell is reported. t is nil when
// the type is not registered here.
func (d *Driver) refused(t *exec.Type, source *exec.Source, env *wire.Envelope, reason route.Reason) {
	r, from := d.regionOf(t), remoteOf(source)
	switch hearer := plane.NotifyTargetOf(env.Flags); {
	case hearer == plane.NotifyTransfer:
		d.large.refuse(r, from, env, reason)
	case hearer == plane.NotifyAsker && from == nil:
		if reason == route.Abandoned {
			d.abandon(r, route.ShardID(env.Shard), d.self, env.ID, true)
		}
		d.asks.failIfWaiting(env.Corr, reason)
	case hearer == plane.NotifyAsker:
		var text [64]byte
		if err := from.answer(env.Corr, reason, d.bounds.appendLimit(text[:0], r, reason)); err != nil {
			d.log.Debug("refusal not answered", "peer", from.id, "reason", reason, "error", err)
		}
	case from == nil && reason == route.Abandoned:
		d.abandon(r, route.ShardID(env.Shard), d.self, env.ID, false)
	case from == nil:
		d.failed.add(r, route.ShardID(env.Shard), cause{d.self, reason, d.bounds.limitOf(r, reason)}, 1, env.ID)
	default:
		from.refuse(plane.KeyOf(env, reason), env.ID)
	}
}

// reply takes an answer to an ask of this node.
func (d *Driver) reply(source *exec.Source, f []byte) {
	status, corr, payload, err := wire.ParseReply(f)
	if err == nil && !route.Reason(status).Known() {
		err = fmt.Errorf("%w: status %d", wire.ErrBadValue, status)
	}
	if err != nil {
		d.nonsense.note(source.ID, wire.KindReply, err)
		return
	}
	d.asks.answered(corr, remoteOf(source).peerNode, route.Reason(status), payload)
}

// openBeside makes what runs beside the control goroutine: surveys, replicated values and parcels. It returns the seed.
func openBeside(d *Driver, seed uint64) uint64 {
	d.surveys = survey.NewOffice(survey.Needs{Self: d.self, Invalid: d.nonsense.note,
		Look: func(ctx context.Context, typ route.TypeID) (*survey.Picture, bool) { return look(ctx, d, typ) },
		Send: func(to peer.ID, kind wire.Kind, body []byte) { // it is asked for again
			_ = d.wires.Send(peer.Mail{To: to, Kind: kind, Body: body})
		}})
	d.replicas = replicas.New(replicas.Needs{Self: d.self, Now: d.now, Invalid: d.nonsense.note,
		Guard: &d.count.callbacks,
		Send:  func(m peer.Mail) { _ = d.wires.Send(m) }, // it is said again
	}, replica.New(d.self, rand.New(rand.NewPCG(seed, 4))))
	d.parcels = parcels.New(parcels.Needs{Invalid: d.nonsense.note, Send: d.sendParcel})
	d.leaving.disks = d.parcels
	return seed
}

// Parcels returns what carries the messages of services of a node.
func Parcels(d *Driver) *parcels.Office { return d.parcels }

// parcel takes a piece of a message to a service here, from members only. From event loops.
func (d *Driver) parcel(c *transport.InConn, body []byte) {
	if m, in := d.View().Member(c.From()); in && m.Status != membership.Down {
		d.parcels.Take(c.From(), c.Generation(), body)
	} else if _, err := wire.ParseParcel(body); err != nil { // nonsense counts from any sender
		d.nonsense.note(c.From(), wire.KindParcel, err)
	}
}

// Replicas returns what keeps the replicated values of a node.
func Replicas(d *Driver) *replicas.Office { return d.replicas }

// Of returns the driver behind a node of the root package, which sets it: packages above it that need more than
// embedders are given get at it so.
var Of func(node any) *Driver

// Partitions is the partition table as package partition gets at it. Its methods are safe for concurrent use.
type Partitions struct{ d *Driver }

// PartitionsOf returns the partition table of a node of the root package.
func PartitionsOf(node any) Partitions { return Partitions{Of(node)} }

// Table returns what this node knows of the partitions: one atomic load. It is immutable.
func (p Partitions) Table() partition.Table { return p.d.View().Partitions }

// Views yields the view of now, and each later one that has another table; a slow reader may miss some, never the last.
// It ends with ctx or with the node.
func (p Partitions) Views(ctx context.Context) iter.Seq[*membership.View] {
	return func(yield func(*membership.View) bool) {
		for e := range p.d.Events(ctx) {
			if (e.Kind == Snapshot || e.Kind == membership.PartitionsChanged) && !yield(e.View) {
				return
			}
		}
	}
}

// Do makes the node carry out a membership.DefineCommand, UndefineCommand, MoveInstanceCommand or CompleteCommand and
// returns its error, why the node has ended, or the context's: then it may still be carried out.
func (p Partitions) Do(ctx context.Context, cmd membership.Command) error { return p.d.call(ctx, cmd) }

// serveBeside runs surveys, replicated values and parcels until the node's goroutines end.
func serveBeside(d *Driver) {
	ctx, cancel := context.WithCancel(context.Background())
	d.threads.Go(func() { d.surveys.Run(ctx) })
	d.threads.Go(func() { d.replicas.Run(ctx) })
	d.threads.Go(func() { d.parcels.Run(ctx) })
	d.threads.Go(func() { <-d.tickerStop; cancel() })
}
