// Large messages that this node sends: the table of those under way, and how each comes to its end.

package driver

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/kith-io/kith/internal/core/flow"
	"github.com/kith-io/kith/internal/core/plane"
	"github.com/kith-io/kith/internal/runtime/exec"
	"github.com/kith-io/kith/internal/runtime/transport"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

// large is one message over MaxPayload that this node sends: a plane.Large with its payload. An envelope with its key
// stands for it where messages wait, and goes with a reference instead of the key.
type large struct {
	key   uint64
	r     *Region
	shard route.ShardID
	id    string
	corr  uint64
	watch *largeWatch // of TellBulk, which lends the payload

	mu      sync.Mutex // before that of the Bulk, behind that of the slot or host
	life    plane.Large
	payload []byte
	copied  bool               // it is a copy, which counts against the budget
	x       *flow.BulkTransfer // while it is moving, whole or sent
	ref     wire.BulkRef       // once it is whole
	by      *transport.Bulk    // by what x goes
	taken   bool               // an entity here has the payload, or is being given it: its release gives the bytes back
}

// largeTable holds the large messages under way and brings each to its end. Methods may be called by any goroutine
// unless said otherwise.
type largeTable struct {
	mu    sync.Mutex
	byKey map[uint64]*large
	last  uint64
	full  error
	bytes budget
	short error // bytes are used up

	cfg      *Config
	wires    *transport.Transport
	inbox    *inbox
	routes   *dispatch
	exec     *exec.Exec
	asks     *askTable
	room     *waitLine
	links    *peerTable
	failed   *undeliveredTable
	bounds   *bounds
	nonsense *invalidFrames
	counts   *counters
	stopping *atomic.Bool // the node has ended
}

func (t *largeTable) init(d *Driver) {
	t.cfg, t.inbox, t.routes, t.exec, t.asks, t.room = &d.cfg, d.inbox, &d.dispatch, &d.exec, d.asks, &d.room
	t.links, t.failed, t.bounds, t.nonsense = &d.peerTable, &d.failed, &d.bounds, &d.nonsense
	t.counts, t.stopping = &d.count, &d.stopping
	limit := d.cfg.BulkBudget
	t.byKey, t.bytes.limit = map[uint64]*large{}, int64(limit)
	t.full = &route.BulkFullError{Bound: "large messages", Limit: plane.MaxLarge}
	t.short = &route.BulkFullError{Bound: "bytes of large messages", Limit: limit}
}

// add takes a message in. Without a watch the payload is copied, within the budget.
func (t *largeTable) add(l *large, payload []byte) error {
	if l.watch == nil {
		if !t.bytes.Take(len(payload)) {
			return t.short
		}
		payload = slices.Clone(payload)
	}
	l.payload, l.copied = payload, l.watch == nil
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.byKey) >= plane.MaxLarge {
		if l.watch == nil {
			t.bytes.Give(len(payload))
		}
		return t.full
	}
	t.last++
	l.key = t.last
	t.byKey[l.key] = l
	return nil
}

// count returns how many are under way.
func (t *largeTable) count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.byKey)
}

// get returns the message of an envelope with its key, nil when it is over.
func (t *largeTable) get(env *wire.Envelope) *large {
	r := wire.NewReader(wire.KindEnvelope, env.Payload)
	key := r.U64()
	if r.Done() != nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.byKey[key]
}

// list returns those under way, oldest first.
func (t *largeTable) list() []*large {
	t.mu.Lock()
	all := make([]*large, 0, len(t.byKey))
	for _, l := range t.byKey {
		all = append(all, l)
	}
	t.mu.Unlock()
	slices.SortFunc(all, func(a, b *large) int { return int(int64(a.key) - int64(b.key)) })
	return all
}

func (t *largeTable) remove(l *large) {
	t.mu.Lock()
	delete(t.byKey, l.key)
	t.mu.Unlock()
}

// close makes l over and returns the transfer that is to be cancelled, if any; ok is false when it was over already.
// Nobody reads a lent payload any more when the transfer has been cancelled.
func (t *largeTable) close(l *large) (cancel func(), ok bool) {
	l.mu.Lock()
	if !l.life.End() {
		l.mu.Unlock()
		return nil, false
	}
	x, by := l.x, l.by
	if l.copied && !l.taken {
		t.bytes.Give(len(l.payload))
	}
	l.payload, l.x, l.by = nil, nil, nil
	l.mu.Unlock()
	t.remove(l)
	if x == nil {
		return func() {}, true
	}
	return func() { by.Cancel(x) }, true
}

// failer fails an ask, now or when no lock is held, with an error that matches the reason; nil: that of the reason.
type failer func(corr uint64, reason route.Reason, why error)

// end ends a message: it tells the waiting sender and frees the bytes. It reports whether it was under way. An ask is
// settled by settle, so that this may be called under the lock of a slot or host.
func (t *largeTable) end(l *large, reason route.Reason, err error, answer failer) bool {
	cancel, ok := t.close(l)
	if !ok {
		return false
	}
	cancel()
	t.told(l, reason, err, answer)
	return true
}

// told reports that a message is over to the sender that waits for it.
func (t *largeTable) told(l *large, reason route.Reason, err error, answer failer) {
	t.room.ringAll()
	switch {
	case l.watch != nil:
		l.watch.done <- whyOf(reason, err)
	case reason == route.OK:
	case l.corr != 0:
		if err != nil {
			err = whyOf(reason, err)
		}
		answer(l.corr, reason, err)
	default:
		why := cause{reason: reason}
		if refused := (*RefusedError)(nil); errors.As(err, &refused) {
			why.peer, why.limit = refused.Peer, refused.Limit
		}
		t.failed.add(l.r, l.shard, why, 1, bytesOf(l.id))
	}
}

// whyOf returns the error of a reason, with what else is known.
func whyOf(reason route.Reason, err error) error {
	why := reason.Err()
	switch {
	case err == nil || why == nil:
		return why
	case errors.Is(err, why):
		return err
	}
	return fmt.Errorf("%w: %w", why, err)
}

// takeOwn returns the payload of a message of this node for an entity here.
func (t *largeTable) takeOwn(l *large) (payload []byte, reason route.Reason) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.life.State() == flow.LargeOver {
		return nil, route.PeerLost
	}
	if t.copyOwn(l) != nil {
		return nil, route.LinkFull
	}
	l.taken = true
	return l.payload, route.OK
}

// copyOwn makes a copy of a payload that was lent: an entity here may keep it longer. l.mu is held, or nobody else
// knows l.
func (t *largeTable) copyOwn(l *large) error {
	if l.copied {
		return nil
	}
	if !t.bytes.Take(len(l.payload)) {
		return t.short
	}
	l.payload, l.copied = slices.Clone(l.payload), true
	return nil
}

// untakeOwn undoes takeOwn: the entity did not take n bytes.
func (t *largeTable) untakeOwn(l *large, n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.taken = false
	if l.life.State() == flow.LargeOver {
		t.bytes.Give(n)
	}
}

// forward sends a large message when its envelope has come to the head of its slot. nil: the envelope has gone, or
// the message is over, and what is behind it may follow. errMoving: the payload is on its way. Any other error: there
// is no room just now, or the link is dead. The slot's lock is held.
func (t *largeTable) forward(e *routeEntry, env *wire.Envelope) error {
	l := t.get(env)
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	step, recall := l.life.Forward(e.remote.id, e.term, e.epoch)
	if recall {
		l.cancel()
	}
	switch step {
	case plane.LargeSkip:
		return nil
	case plane.LargeAwait:
		return errMoving
	case plane.LargeRefer:
		return t.sendRef(l, e, env)
	}
	x := &flow.BulkTransfer{Payload: l.payload, Owner: l, Begin: wire.BulkBegin{
		Type: env.Type, Shard: env.Shard, Term: e.term, Epoch: e.epoch, Corr: env.Corr}}
	by := t.wires.Bulk(e.remote.id)
	if err := by.Send(x); err != nil {
		return err
	}
	l.life.Began(e.remote.id, e.term, e.epoch)
	l.x, l.by = x, by
	return errMoving
}

// keep calls a payload back: its shard lives here now.
func (t *largeTable) keep(env *wire.Envelope) {
	if l := t.get(env); l != nil {
		l.mu.Lock()
		if l.life.Recall() {
			l.cancel()
		}
		l.mu.Unlock()
	}
}

// cancel takes the payload back from where it is going. l.mu is held.
func (l *large) cancel() {
	if l.x != nil {
		l.by.Cancel(l.x)
	}
	l.x, l.by = nil, nil
}

// sendRef sends the envelope that stands for a message which its home has whole. l.mu is held.
func (t *largeTable) sendRef(l *large, e *routeEntry, env *wire.Envelope) error {
	out := *env
	out.Payload = wire.AppendBulkRef(nil, l.ref)
	if l.corr != 0 && !t.asks.goes(l.corr, e) {
		return nil // nobody waits for it any more: sweep ends it
	}
	link := e.link
	link.Lock()
	b, err := link.Reserve(wire.EnvelopeSize + len(l.id) + len(out.Payload) + out.More())
	if err != nil {
		link.Unlock()
		return err
	}
	wire.PutEnvelope(b, &out, l.id)
	link.Hurry()
	if out.More() > 0 {
		link.Timed()
	}
	wake := link.Commit()
	link.Unlock()
	if wake {
		link.Wake(nil)
	}
	l.life.Referred()
	return nil
}
