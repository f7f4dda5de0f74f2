// Waiting: TellWait, which waits for room in the link, the parking queue, and the mailbox wherever the entity lives.

package driver

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/flow"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

// TellWait is Tell that waits for room: in the link, the parking queue, and the mailbox of the entity.
func (r *Region) TellWait(ctx context.Context, id string, payload []byte) error {
	return r.TellWaitWith(ctx, nil, id, payload)
}

// TellWaitWith is TellWait with headers.
func (r *Region) TellWaitWith(ctx context.Context, h *Headers, id string, payload []byte) error {
	if err := r.tellWait(h, id, payload); err != nil {
		return route.NotRun(r.insist(ctx, err, func() error { return r.tellWait(h, id, payload) }))
	}
	return nil
}

// tellWait is one attempt of TellWait: Tell with a flag by which the entity's node takes the message even when the
// mailbox is full, and says so; what it has said is looked at under the link's lock.
func (r *Region) tellWait(h *Headers, id string, payload []byte) error {
	if h != nil || !r.fit(id, payload) {
		if over, err := r.unusual(id, payload, 0, nil, h); over {
			return err // why, or that it is large: no mailbox refuses those
		}
	}
	sh := route.ShardOfBytes(bytesOf(id), r.shards)
	s := &r.slots[sh]
	for {
		e := s.route.Load()
		if e == nil {
			if again, err := r.park(s, sh, id, payload, 0, nil, h, wire.FlagWait); !again {
				return err
			}
			continue
		}
		if e.host != nil {
			env := r.envelope(sh, e, 0, payload, nil, h)
			if stale, err := r.sendHere(s, e, &env, id); !stale {
				return err
			}
			continue
		}
		l := e.link
		l.Lock()
		if s.route.Load() != e {
			l.Unlock()
			continue
		}
		if l.Pressed() {
			if err := r.fullThere(sh, e, id); err != nil {
				l.Unlock()
				return err
			}
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
		env.Type, env.Shard, env.Term, env.Epoch, env.Payload = uint32(r.id), uint32(sh), e.term, e.epoch, payload
		if l.Waits() {
			env.Flags |= wire.FlagWait
		}
		if h != nil {
			l.Timed()
		}
		l.Put(b, &env, id)
		wake := l.Commit()
		l.Unlock()
		if wake {
			l.Wake(nil)
		}
		return nil
	}
}

// fullThereError says that an entity, or its node, has no room; it names the line in which to wait for some.
type fullThereError struct {
	route.RefusedError
	at lineKey
}

// Unwrap returns what callers see of it.
func (e *fullThereError) Unwrap() error { return &e.RefusedError }

// fullThere returns why there is no room for an entity at its node, as far as that has said so. The link's lock is
// held.
func (r *Region) fullThere(sh route.ShardID, e *routeEntry, id string) error {
	f, limit, full := e.link.Full(flow.FullEntity(r.id, sh, entity.HashID(bytesOf(id))))
	if !full {
		return nil
	}
	return &fullThereError{at: lineKey{e.link, f}, RefusedError: route.RefusedError{
		Peer: e.remote.id, Type: r.typ.Name, Reason: route.Reason(f.Reason), Limit: limit}}
}

// insist repeats an attempt that has ended with err, if that was because there was no room, until there is some or ctx
// ends.
func (r *Region) insist(ctx context.Context, err error, try func() error) error {
	if !isFull(err) {
		return err
	}
	if err := r.d.exec.Waits.MayWait(); err != nil {
		return err
	}
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

// Pauses of a TellWait whose room nobody rings for: that of a local mailbox or of the parking budget.
const (
	waitFirst = time.Millisecond
	waitMost  = 20 * time.Millisecond
)

func isFull(err error) bool {
	return err != nil &&
		(errors.Is(err, route.ErrLinkFull) || errors.Is(err, route.ErrParkFull) || errors.Is(err, route.ErrMailboxFull))
}
