// Sending: from a caller to a link, a local host, or the parking queue of a slot.

package driver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"
	"unsafe"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/base/invariant"
	"github.com/kith-io/kith/internal/core/flow"
	"github.com/kith-io/kith/internal/core/plane"
	"github.com/kith-io/kith/internal/runtime/exec"
	"github.com/kith-io/kith/internal/runtime/transport"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/shard"
	"github.com/kith-io/kith/wire"
)

// TellWith sends payload to the entity id: accepted or a typed error, without blocking.
func (r *Region) TellWith(h *Headers, id string, payload []byte) error {
	if r.sends {
		return bare{r}.tellThrough(nil, h, id, payload, func(h *Headers, payload []byte) error {
			return r.send(entity.HashID(bytesOf(id)), id, payload, 0, nil, h)
		})
	}
	return r.send(entity.HashID(bytesOf(id)), id, payload, 0, nil, h)
}

// asking is what a sender has of an ask that has begun. Of one with an answer that calls a function nobody waits: its
// waiter may be over, and another ask's, while it is being sent, so that what the sender needs of it is copied.
type asking struct {
	w       *askWaiter
	limit   uint32 // from when on its envelope says that nobody waits; limited
	limited bool   // else its time is so long that its envelope says nothing
	called  bool   // the answer calls a function
}

// goes is askWaiter.goes, also where the waiter may be another ask's by now.
func (a *asking) goes(t *askTable, corr uint64, e *routeEntry) bool {
	if a.called {
		return t.goes(corr, e)
	}
	return a.w.goes(corr, e)
}

// stays is askWaiter.stays, also where the waiter may be another ask's by now.
func (a *asking) stays(t *askTable, corr uint64) {
	if a.called {
		t.stays(corr)
		return
	}
	a.w.stays()
}

// shardAt is route.ShardOf by the hash of an id, which is needed for more than that.
func shardAt(hash uint64, shards uint32) route.ShardID {
	return route.ShardID((hash >> 32) * uint64(shards) >> 32)
}

// shardOf returns the hash of an id and its shard. A function of the type is shown only what may be an id.
func (r *Region) shardOf(id string) (hash uint64, sh route.ShardID, err error) {
	hash = entity.HashID(bytesOf(id))
	sh = shardAt(hash, r.shards)
	if r.chosen {
		if err = route.CheckID(id); err == nil {
			sh, err = r.typ.ShardOf(id)
		}
	}
	return hash, sh, err
}

// send takes the fast path while the home is known: one atomic load, one append under the link's lock, where the route
// is compared again. hash is that of the id.
func (r *Region) send(hash uint64, id string, payload []byte, corr uint64, a *asking, h *Headers) error {
	sh, err := shardAt(hash, r.shards), error(nil)
	if h != nil || r.chosen || !r.fit(id, payload) {
		if sh, err = r.unusual(sh, id, payload, corr, a, h); sh == route.NoShard {
			return err
		}
	}
	c := r.cells.At(sh)
	for {
		e := c.route.Load()
		if e == nil {
			if again, err := r.park(sh, id, payload, corr, a, h, 0); !again {
				return err
			}
			continue
		}
		if a != nil && !a.goes(r.d.asks, corr, e) {
			return nil // its time is over already, and somebody has said so
		}
		l, stamp := c.link.Load(), c.stamp.Load()
		if l == nil {
			stale, err := c.takeHere(r, e, sh, hash, id, payload, corr, a, h)
			if !stale {
				return err
			}
			continue
		}
		l.Lock()
		if c.route.Load() != e {
			l.Unlock()
			continue
		}
		var env wire.Envelope // field by field, as r.envelope does
		size := wire.EnvelopeSize + len(id) + len(payload)
		if a != nil || h != nil {
			size += more(&env, a, h)
		}
		b, err := l.Reserve(size)
		if err != nil {
			l.Unlock()
			return r.deadEnd(sh, e, err)
		}
		env.Type, env.Shard, env.Term, env.Epoch = uint32(r.id), uint32(sh), uint32(stamp>>32), uint32(stamp)
		env.Corr, env.Payload = corr, payload
		if corr == 0 && h == nil {
			wire.PutPlainEnvelope(b, &env, id) // inlined
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

// putOther writes what is not a plain tell: an ask, or a message with headers. The link's lock is held.
//
//go:noinline
func putOther(l *transport.Link, b []byte, env *wire.Envelope, id string) {
	if env.Corr != 0 {
		env.Flags |= wire.FlagAsk
		l.Hurry()
	}
	if env.Flags&(wire.FlagLimit|wire.FlagHeaders) != 0 {
		l.Timed()
	}
	l.Put(b, env, id)
}

// unusual is send for what may not fit a frame, has headers, or is of a shard that a function of the type says; by the
// hash it would be sh. It returns the shard, route.NoShard if there is nothing left to do.
func (r *Region) unusual(sh route.ShardID, id string, payload []byte, corr uint64, a *asking,
	h *Headers) (route.ShardID, error) {
	err := r.check(id, payload, h)
	switch {
	case err == errLarge:
		_, err = r.sendLarge(id, payload, corr, a, nil, h)
		return route.NoShard, err
	case err != nil:
		return route.NoShard, err
	case r.chosen:
		return r.typ.ShardOf(id)
	}
	return sh, nil
}

// envelope writes the header of a message to a shard under a route into env, which is empty; e may be nil for one that
// is parked. It writes field by field: a literal is built elsewhere and copied, and the copy waits for its stores.
func (r *Region) envelope(env *wire.Envelope, sh route.ShardID, e *routeEntry, corr uint64, payload []byte,
	a *asking, h *Headers) {
	env.Type, env.Shard, env.Corr, env.Payload = uint32(r.id), uint32(sh), corr, payload
	if e != nil {
		env.Term, env.Epoch = e.term, e.epoch
	}
	if corr != 0 {
		env.Flags = wire.FlagAsk
	}
	if a != nil || h != nil {
		more(env, a, h)
	}
}

// park is the slow path: it keeps the message until the home is known. again means that it has become known.
func (r *Region) park(sh route.ShardID, id string, payload []byte, corr uint64, a *asking,
	h *Headers, flags uint8) (again bool, err error) {
	if a != nil {
		a.stays(r.d.asks, corr)
	}
	var env wire.Envelope
	r.envelope(&env, sh, nil, corr, payload, a, h)
	env.Flags |= flags
	now, s := r.d.now(), slotOf(r, sh)
	s.mu.Lock()
	if s.route.Load() != nil {
		s.mu.Unlock()
		return true, nil
	}
	if err := r.closedTo(corr != 0); err != nil {
		s.mu.Unlock()
		return false, err
	}
	next, err := plane.Park(&s.slot, now, &env, id)
	invariant.Check(!errors.Is(err, flow.ErrOpen), "driver: a slot is open and has no route")
	s.mu.Unlock()
	if next == plane.LookUp {
		r.d.inbox.post(func() { r.d.want(slotRef{r, sh}) })
	}
	return false, err
}

// closedTo is closed for a message that is an ask or not: no ask waits for a home where no member may host the type.
func (r *Region) closedTo(ask bool) error {
	if ask && shard.NoHost(r.d.View(), r.typ.Role) {
		return route.ErrNoHost
	}
	return r.closed()
}

// closed returns why nothing may wait for a shard any more. It is called under the slot's lock: a goroutine that fails
// what waits has set this before, and takes that lock afterwards, so that nothing slips in.
func (r *Region) closed() error {
	if why := r.refused.Load(); why != nil {
		return *why
	}
	if r.d.stopping.Load() {
		return r.d.ended()
	}
	return nil
}

// bare is a region without what is around its sends.
type bare struct{ *Region }

// tellThrough calls what is around a tell of a type around send. ctx nil: it has none.
func (r bare) tellThrough(ctx context.Context, h *Headers, id string, payload []byte,
	send func(h *Headers, payload []byte) error,
) error {
	_, err := r.through(&entity.Sending{Context: ctx, ID: id, Payload: payload}, h,
		func(h *Headers, payload []byte) ([]byte, error) { return nil, send(h, payload) })
	return err
}

// through calls what is around the sends of a type around send, which gets the headers and the payload that come of it.
func (r bare) through(m *entity.Sending, h *Headers,
	send func(h *Headers, payload []byte) ([]byte, error),
) ([]byte, error) {
	done, err := r.enterSend(m, h)
	if err != nil {
		return nil, err
	}
	reply, err := send(headersOf(m.Headers), m.Payload)
	if err != nil {
		done(nil, err)
	} else {
		done(reply, nil)
	}
	return reply, err
}

// enterSend calls what is around a message that is about to be sent.
func (r bare) enterSend(m *entity.Sending, h *Headers) (done func([]byte, error), err error) {
	m.Type = r.typ.Name
	if m.Context == nil {
		m.Context = context.Background()
	}
	if h != nil {
		m.Headers = h.B
	}
	return entity.EnterSend(r.typ.Around, m, r.d.count.callbacks.Call)
}

// AskWith sends payload and waits for the reply until ctx ends.
func (r *Region) AskWith(ctx context.Context, h *Headers, id string, payload []byte) ([]byte, error) {
	if r.sends {
		return bare{r}.through(&entity.Sending{Context: ctx, ID: id, Payload: payload, Asks: true}, h,
			func(h *Headers, payload []byte) ([]byte, error) { return bare{r}.ask(ctx, h, id, payload) })
	}
	return bare{r}.ask(ctx, h, id, payload)
}

// ask is AskWith without what is around it.
func (r bare) ask(ctx context.Context, h *Headers, id string, payload []byte) ([]byte, error) {
	limit := r.d.cfg.AskTimeout
	deadline, byContext := ctx.Deadline()
	if byContext {
		// The context fires first; the wheel stands behind it.
		limit = time.Until(deadline) + 2*wheelTick
	}
	if ctx.Err() != nil {
		return nil, route.NotRun(askCancelled(ctx, route.ErrTimeout))
	}
	if err := cmp.Or(r.d.exec.Waits.MayWait(), r.d.inbox.mayWait()); err != nil {
		return nil, route.NotRun(err)
	}
	hash, sh, err := r.shardOf(id)
	if err != nil {
		return nil, route.NotRun(err)
	}
	a, corr, err := r.d.asks.begin(limit, r.Region, sh, nil, nil)
	if err != nil {
		return nil, err
	}
	w := a.w
	if err := r.send(hash, id, payload, corr, &a, h); err != nil {
		r.d.asks.abandon(w, corr, false)
		return nil, route.NotRun(err)
	}
	select {
	case <-w.wake:
	case <-ctx.Done():
		if w.claim(corr) {
			r.giveUp(ctx, w.dest.Load(), sh, corr, a.limited)
			failed := unanswered(w.dest.Load(), r.Region, id, sh, route.TimedOut, w.failure(route.TimedOut, nil))
			if err = askCancelled(ctx, failed); !route.MayHaveRun(failed) {
				err = route.NotRun(err)
			}
			r.d.asks.free(w)
			return nil, err
		}
		<-w.wake // somebody is answering it now
	}
	reply, err := w.reply, w.err
	if err != nil {
		err = unanswered(w.dest.Load(), r.Region, id, sh, w.reason, err)
	}
	r.d.asks.free(w)
	if byContext && errors.Is(err, route.ErrTimeout) { // the wheel was first after all
		err = fmt.Errorf("%w: %w", err, context.DeadlineExceeded)
	}
	return reply, err
}

// giveUp tells the node that has an ask, to which it was sent by the route e, that nobody waits for it any more, unless
// it knows by itself. Once is enough: what is lost of it, or comes too late, costs the handler's time and no more.
func (r bare) giveUp(ctx context.Context, e *routeEntry, sh route.ShardID, corr uint64, limited bool) {
	if e != nil && hasMoved(e) {
		e = r.cells.At(sh).route.Load() // the ask has gone on with its shard
	}
	if e == nil || !plane.TellsCancel(errors.Is(ctx.Err(), context.DeadlineExceeded), limited) {
		return
	}
	if e.link == nil {
		exec.Cancel(r.d.self, corr, &r.d.exec)
		r.count.told.Add(1)
		return
	}
	l := e.link
	l.Lock()
	room, err := []byte(nil), errOldPeer
	if l.Version() >= wire.KindCancel.Since() { // else nothing of the ask has left, or it is an earlier build
		room, err = l.Reserve(wire.CancelSize)
	}
	if err != nil {
		l.Unlock()
		r.count.untold.Add(1)
		return
	}
	wire.PutCancel(room, corr)
	l.Hurry()
	wake := l.Commit()
	l.Unlock()
	r.count.told.Add(1)
	if wake {
		l.Wake(nil)
	}
}

// errOldPeer is why a peer gets no cancel.
var errOldPeer = errors.New("driver: the peer knows of no cancels")

// errNoTime is the error of an ask with no time for an answer: nothing is sent.
var errNoTime = fmt.Errorf("%w: none was given", route.ErrTimeout)

// askCancelled returns the error of an ask when its context has ended; timeout is the one to be used if time was short.
func askCancelled(ctx context.Context, timeout error) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("%w: %w", timeout, ctx.Err())
	}
	return fmt.Errorf("kith: ask given up: %w", ctx.Err())
}

// AskWithinWith is AskWith with a time limit; the reply is appended to into[:0].
func (r *Region) AskWithinWith(d time.Duration, h *Headers, id string, payload, into []byte) ([]byte, error) {
	if !r.sends {
		return bare{r}.askWithin(nil, d, h, id, payload, into) // as askFor, with a call less
	}
	return r.askFor(nil, d, h, id, payload, into)
}

// askFor is AskWithinWith for a handler of a shard here, nil for none. The deadline of the shard's move lets it go.
func (r *Region) askFor(by *exec.Host, d time.Duration, h *Headers, id string, payload, into []byte) ([]byte, error) {
	if !r.sends {
		return bare{r}.askWithin(by, d, h, id, payload, into)
	}
	b, err := bare{r}.through(&entity.Sending{ID: id, Payload: payload, Asks: true, Within: d}, h,
		func(h *Headers, payload []byte) ([]byte, error) {
			return bare{r}.askWithin(by, d, h, id, payload, into)
		})
	if err != nil {
		return into[:0], err
	}
	return b, nil
}

// askWithin is askFor without what is around it.
func (r bare) askWithin(by *exec.Host, d time.Duration, h *Headers, id string, payload, into []byte) (
	[]byte, error,
) {
	if d <= 0 {
		return into[:0], route.NotRun(errNoTime)
	}
	if err := r.d.inbox.mayWait(); err != nil {
		return into[:0], route.NotRun(err)
	}
	hash, sh, err := r.shardOf(id)
	if err != nil {
		return into[:0], route.NotRun(err)
	}
	a, corr, err := r.d.asks.begin(d, r.Region, sh, into, nil)
	if err != nil {
		return into[:0], err
	}
	w := a.w
	if by != nil {
		w.by.Store(by)
		if exec.Overdue(by) {
			r.d.asks.abandon(w, corr, false)
			return into[:0], route.NotRun(route.ReplyError(route.ShardStopping, []byte(plane.LetGo)))
		}
	}
	if err := r.send(hash, id, payload, corr, &a, h); err != nil {
		r.d.asks.abandon(w, corr, false)
		return into[:0], route.NotRun(err)
	}
	<-w.wake
	reply, err := w.reply, w.err
	if err != nil {
		err = unanswered(w.dest.Load(), r.Region, id, sh, w.reason, err)
	}
	r.d.asks.free(w)
	return reply, err
}

// AskFuncWith is AskWith with an answer that calls f.
func (r *Region) AskFuncWith(d time.Duration, h *Headers, id string, payload []byte,
	f func(reply []byte, err error)) error {
	if r.sends {
		return bare{r}.askFuncThrough(d, h, id, payload, f)
	}
	return bare{r}.askFunc(d, h, id, payload, f)
}

// askFuncThrough is askFunc with what is around it.
func (r bare) askFuncThrough(d time.Duration, h *Headers, id string, payload []byte,
	f func(reply []byte, err error)) error {
	m := &entity.Sending{ID: id, Payload: payload, Asks: true, Within: d}
	done, err := r.enterSend(m, h)
	if err != nil {
		return err
	}
	err = r.askFunc(d, headersOf(m.Headers), id, m.Payload, func(reply []byte, err error) {
		done(reply, err)
		f(reply, err)
	})
	if err != nil {
		done(nil, err)
	}
	return err
}

// askFunc is AskFuncWith without what is around it.
func (r bare) askFunc(d time.Duration, h *Headers, id string, payload []byte,
	f func(reply []byte, err error)) error {
	if d <= 0 {
		return route.NotRun(errNoTime)
	}
	r.d.exec.Waits.CallingOut()
	hash, sh, err := r.shardOf(id)
	if err != nil {
		return route.NotRun(err)
	}
	a, corr, err := r.d.asks.beginFor(id, d, r.Region, sh, nil, f)
	if err != nil {
		return err
	}
	if err := r.send(hash, id, payload, corr, &a, h); err != nil && r.d.asks.abandon(a.w, corr, true) {
		return route.NotRun(err)
	}
	return nil
}

// bytesOf views a string as bytes that are only read.
func bytesOf(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }

// Headers go with messages, and belong to the caller; nil: there are none. A pointer, so that nothing is passed along
// where there are none.
type Headers struct{ B []byte }

// check judges headers; nil is in order.
func (h *Headers) check() error {
	if h != nil && len(h.B) > wire.MaxHeaders {
		return &route.HeadersError{Size: len(h.B), Limit: wire.MaxHeaders}
	}
	return nil
}

// more gives an envelope the limit of the ask that it is, if a is not nil, and headers, and returns what both take.
func more(env *wire.Envelope, a *asking, h *Headers) int {
	if a != nil && a.limited {
		env.Flags |= wire.FlagLimit
		env.Limit = a.limit
	}
	if h != nil && len(h.B) > 0 {
		env.Flags |= wire.FlagHeaders
		env.Headers = h.B
	}
	return env.More()
}
