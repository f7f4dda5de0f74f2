// Sending large messages: the way into the slot, TellBulk with progress and cancellation, large replies.

package driver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/core/flow"
	"github.com/kith-io/kith/internal/core/plane"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

// errLarge is how check says that a payload fits no frame; errMoving that a large message at the head of a slot is on
// its way.
var (
	errLarge  = errors.New("driver: a large message")
	errMoving = errors.New("driver: a large message is on its way")
)

// largeWatch is what a TellBulk waits at.
type largeWatch struct {
	done  chan error    // capacity 1
	moved chan struct{} // capacity 1
	sent  atomic.Int64
}

func (w *largeWatch) move(sent int) {
	w.sent.Store(int64(sent))
	select {
	case w.moved <- struct{}{}:
	default:
	}
}

// sendLarge is send for a payload over MaxPayload. It does not wait. Without a watch the payload is copied.
func (r *Region) sendLarge(id string, payload []byte, corr uint64, a *asking, watch *largeWatch,
	h *Headers) (*large, error) {
	if len(payload) > r.d.cfg.MaxMessage {
		return nil, r.d.bounds.tooLarge(r, len(payload))
	}
	_, sh, err := r.shardOf(id)
	if err != nil {
		return nil, err
	}
	l := &large{r: r, shard: sh, id: id, corr: corr, watch: watch}
	if err := r.d.large.add(l, payload); err != nil {
		return nil, err
	}
	if err := r.place(l, a, h); err != nil {
		r.d.large.close(l)
		return nil, err
	}
	return l, nil
}

// place puts the envelope that stands for l in its place among the messages to its shard: into the host's queue when
// the shard lives here, else into the slot, where all that is sent later stays behind it.
func (r *Region) place(l *large, a *asking, h *Headers) error {
	ref := slotRef{r, l.shard}
	s := ref.slot()
	for {
		e := s.route.Load()
		var env wire.Envelope
		r.envelope(&env, l.shard, e, l.corr, wire.AppendU64(nil, l.key), a, h)
		env.Flags |= wire.FlagBulk
		if e != nil && e.host != nil {
			if a != nil && !a.goes(r.d.asks, l.corr, e) {
				return nil // sweep ends it
			}
			if err := r.d.large.copyOwn(l); err != nil { // not under the host's lock
				return err
			}
			if stale, err := s.routeCell.sendHere(r, e, &env, 0, l.id, false); !stale {
				return err
			}
			continue
		}
		if a != nil {
			a.stays(r.d.asks, l.corr)
		}
		now := r.d.now()
		s.mu.Lock()
		if s.route.Load() != e {
			s.mu.Unlock()
			continue
		}
		if err := r.closedTo(l.corr != 0); err != nil {
			s.mu.Unlock()
			return err
		}
		next, err := plane.Hold(&s.slot, now, &env, l.id)
		if next == plane.Flush {
			s.lead(e)
			s.route.Store(nil)
		}
		s.mu.Unlock()
		switch next {
		case plane.LookUp:
			r.d.inbox.post(func() { r.d.want(ref) })
		case plane.Flush:
			r.d.drainSlot(ref)
		}
		return err
	}
}

// TellBulkWith sends a payload that may be large, which it does not copy, and waits until the receiver's host has taken
// it or ctx ends.
func (r *Region) TellBulkWith(ctx context.Context, h *Headers, id string, payload []byte,
	progress func(sent, total int)) error {
	if err := ctx.Err(); err != nil {
		return route.NotRun(given(err))
	}
	if r.sends {
		return bare{r}.tellThrough(ctx, h, id, payload, func(h *Headers, payload []byte) error {
			return bare{r}.tellBulk(ctx, h, id, payload, progress)
		})
	}
	return bare{r}.tellBulk(ctx, h, id, payload, progress)
}

// tellBulk is TellBulkWith without what is around it.
func (r bare) tellBulk(ctx context.Context, h *Headers, id string, payload []byte,
	progress func(sent, total int)) error {
	if progress == nil {
		progress = func(int, int) {}
	}
	w := &largeWatch{done: make(chan error, 1), moved: make(chan struct{}, 1)}
	var l *large
	try := func() (err error) {
		if err = r.check(id, payload, h); err == errLarge {
			l, err = r.sendLarge(id, payload, 0, nil, w, h)
			return err
		}
		if err == nil {
			err = r.send(entity.HashID(bytesOf(id)), id, payload, 0, nil, h)
		}
		return err
	}
	if err := r.insist(ctx, try(), try); err != nil {
		return err
	}
	if l == nil {
		progress(len(payload), len(payload))
		return nil
	}
	for told := 0; ; {
		select {
		case err := <-w.done:
			if err == nil && told < len(payload) {
				progress(len(payload), len(payload))
			}
			return err
		case <-w.moved:
			if sent := int(w.sent.Load()); sent > told {
				told = sent
				progress(sent, len(payload))
			}
		case <-ctx.Done():
			cancel, ok := r.d.large.close(l)
			if !ok {
				return <-w.done
			}
			cancel()
			r.d.drainSlot(slotRef{r.Region, l.shard})
			r.d.room.ringAll()
			return fmt.Errorf("kith: large message given up: %w", ctx.Err())
		}
	}
}

// largeReply is a reply over MaxPayload on its way to the asker.
type largeReply struct {
	to   peer.ID
	size int
}

// replyLarge sends a copy of a reply over MaxPayload. It does not wait.
func (r *peerConn) replyLarge(corr uint64, payload []byte) error {
	d := r.d
	if !d.large.bytes.Take(len(payload)) {
		d.counts.repliesLost.Add(1)
		return d.large.short
	}
	x := &flow.BulkTransfer{Begin: wire.BulkBegin{Reply: true, Corr: corr}, Payload: slices.Clone(payload),
		Owner: &largeReply{r.id, len(payload)}}
	if err := d.wires.Bulk(r.id).Send(x); err != nil {
		d.large.bytes.Give(len(payload))
		d.counts.repliesLost.Add(1)
		return err
	}
	return nil
}

// replyOver ends a large reply. An asker that may still wait gets the reason: from its own node, if that takes
// none so large.
func (t *largeTable) replyOver(x *flow.BulkTransfer, reason route.Reason) {
	reply, ok := x.Owner.(*largeReply)
	if !ok {
		return
	}
	t.bytes.Give(reply.size)
	t.room.ringAll()
	if reason == route.OK || reason == route.NoReply { // NoReply: nobody waits for it
		return
	}
	t.counts.repliesLost.Add(1)
	if to := t.links.get(reply.to); to != nil && reason != route.TooLarge {
		_ = to.conns[0].answer(x.Begin.Corr, reason, []byte("the reply, by the asker's node"))
	}
}
