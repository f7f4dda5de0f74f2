// Waiting: TellWait, which waits for room in the link, the parking queue, and the mailbox wherever the entity lives.

package driver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/core/flow"
	"github.com/kith-io/kith/internal/runtime/transport"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

// TellWaitWith is TellWith that waits for room: in the link, the parking queue, and the mailbox of the entity.
func (r *Region) TellWaitWith(ctx context.Context, h *Headers, id string, payload []byte) error {
	if err := ctx.Err(); err != nil {
		return route.NotRun(given(err))
	}
	if r.sends {
		return bare{r}.tellThrough(ctx, h, id, payload, func(h *Headers, payload []byte) error {
			return bare{r}.tellPatiently(ctx, r.tellWait(h, id, payload), h, id, payload)
		})
	}
	err := r.tellWait(h, id, payload)
	if err != nil { // as seldom as a full mailbox: others make no call for it
		err = bare{r}.tellPatiently(ctx, err, h, id, payload)
	}
	return err
}

// tellPatiently goes on with a tell after its first attempt has ended with err; nothing is around it.
func (r bare) tellPatiently(ctx context.Context, err error, h *Headers, id string, payload []byte) error {
	if err == nil {
		return nil
	}
	return route.NotRun(r.insist(ctx, err, func() error { return r.tellWait(h, id, payload) }))
}

// given is the error of a message if its context had ended before it was given to the node.
func given(err error) error { return fmt.Errorf("kith: not sent: %w", err) }

// tellWait is one attempt of TellWaitWith: TellWith with a flag by which the entity's node takes the message even when
// the mailbox is full, and says so; what it has said is looked at under the link's lock.
func (r *Region) tellWait(h *Headers, id string, payload []byte) error {
	hash := entity.HashID(bytesOf(id))
	sh, err := r.shardFor(hash, id, payload, h)
	if sh == route.NoShard {
		return err // why, or that it is large: no mailbox refuses those
	}
	c := r.cells.At(sh)
	for {
		e := c.route.Load()
		if e == nil {
			if again, err := r.park(sh, id, payload, 0, nil, h, wire.FlagWait); !again {
				return err
			}
			continue
		}
		l, stamp := c.link.Load(), c.stamp.Load()
		if l == nil {
			if stale, err := r.tellWaitHere(c, sh, e, hash, id, payload, h); !stale {
				return err
			}
			continue
		}
		l.Lock()
		if c.route.Load() != e {
			l.Unlock()
			continue
		}
		if err := r.pressed(l.Pressed(sh), l, id); err != nil {
			l.Unlock()
			return err
		}
		env, size := wire.Envelope{}, wire.EnvelopeSize+len(id)+len(payload) // field by field, as send does
		if h != nil {
			size += more(&env, nil, h)
		}
		b, err := l.Reserve(size)
		if err != nil {
			l.Unlock()
			return r.deadEnd(sh, e, err)
		}
		env.Type, env.Shard, env.Payload = uint32(r.id), uint32(sh), payload
		env.Term, env.Epoch = uint32(stamp>>32), uint32(stamp)
		if l.Waits() {
			env.Flags |= wire.FlagWait
		}
		if h == nil {
			wire.PutPlainEnvelope(b, &env, id)
			l.Count(b)
		} else {
			putOther(l, b, &env, id)
		}
		wake := l.Commit()
		l.Unlock()
		if wake {
			l.Wake(nil)
		}
		return nil
	}
}

// shardFor returns the shard of a tell, route.NoShard if there is nothing left to do.
func (r *Region) shardFor(hash uint64, id string, payload []byte, h *Headers) (route.ShardID, error) {
	sh := shardAt(hash, r.shards)
	if h != nil || r.chosen || !r.fit(id, payload) {
		return r.unusual(sh, id, payload, 0, nil, h)
	}
	return sh, nil
}

// fullThereError says that an entity, here or there, or its node, has no room; it names the line in which to wait for
// some.
type fullThereError struct {
	route.RefusedError
	at lineKey
}

// Unwrap returns what callers see of it.
func (e *fullThereError) Unwrap() error { return &e.RefusedError }

// pressed is fullThere if something may be full, small enough to be inlined.
func (r *Region) pressed(may bool, l *transport.Link, id string) error {
	if may {
		return r.fullThere(l, id)
	}
	return nil
}

// fullThere returns why there is no room for an entity at its node, as far as that has said so. The link's lock is
// held.
func (r *Region) fullThere(l *transport.Link, id string) error {
	f, limit, full := l.Full(flow.FullEntity(r.id, r.Shard(id), entity.HashID(bytesOf(id))))
	if !full {
		return nil
	}
	return &fullThereError{at: lineKey{l, f}, RefusedError: route.RefusedError{
		Peer: l.Peer(), Type: r.typ.Name, Reason: route.Reason(f.Reason), Limit: limit}}
}

// tellWaitHere is tellWait to an entity of this node, as sendHere is send. If the mailbox is full its error names the
// line in which to wait.
func (r *Region) tellWaitHere(c *routeCell, sh route.ShardID, e *routeEntry, hash uint64, id string, payload []byte,
	h *Headers) (stale bool, err error) {
	var env wire.Envelope
	r.envelope(&env, sh, e, 0, payload, nil, h)
	if r.typ.Mode != entity.Blocking {
		return c.sendHere(r, e, &env, hash, id, false)
	}
	env.Flags |= wire.FlagWait
	stale, err = c.sendHere(r, e, &env, hash, id, false)
	if err == nil || err != r.full[route.MailboxFull] {
		return stale, err
	}
	f := flow.FullEntity(r.id, sh, hash)
	return false, &fullThereError{at: lineKey{full: f}, RefusedError: route.RefusedError{
		Peer: r.d.self, Type: r.typ.Name, Reason: route.MailboxFull, Limit: r.typ.MailboxBytes}}
}

// ringHere wakes the first caller that waits for room at an entity of this node.
func (r *waitLine) ringHere(t route.TypeID, n route.ShardID, hash uint64) {
	r.ring(lineKey{full: flow.FullEntity(t, n, hash)})
}

// insist repeats an attempt that has ended with err, if that was because there was no room, until there is some or ctx
// ends.
func (r *Region) insist(ctx context.Context, err error, try func() error) error {
	if !isFull(err) {
		return err
	}
	if err := cmp.Or(r.d.exec.Waits.MayWait(), r.d.inbox.mayWait()); err != nil {
		return err
	}
	r.count.waits.Add(1)
	r.count.waiting.Add(1)
	defer r.count.waiting.Add(-1)
	t := r.d.room.enter(lineOf(err))
	defer r.d.room.leave(t)
	pause := waitFirst
	for {
		if err = try(); !isFull(err) {
			return err
		}
		if at := lineOf(err); at != t.at {
			r.d.room.move(t, at)
			continue // what became of room meanwhile was rung elsewhere
		}
		if t.at != (lineKey{}) {
			pause = waitMost // somebody rings
		}
		t.timer.Reset(pause)
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w (waited until %w)", err, ctx.Err())
		case <-t.bell:
			pause = waitFirst
		case <-t.timer.C:
			pause = min(2*pause, waitMost)
		}
	}
}

// Pauses of a TellWait for room that nobody signals: that of a budget of this node, of all its mailboxes or of what is
// parked, or of a queue to a worker or loop of it.
const (
	waitFirst = time.Millisecond
	waitMost  = 20 * time.Millisecond
)

func isFull(err error) bool {
	return err != nil &&
		(errors.Is(err, route.ErrLinkFull) || errors.Is(err, route.ErrParkFull) || errors.Is(err, route.ErrMailboxFull))
}
