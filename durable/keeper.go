// Keepers: one shard under one fence: its claim, and its commits, one under way while the next one gathers.

package durable

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/internal/base/ground"
	"github.com/kith-io/kith/store"
)

const (
	backoffFirst = 10 * time.Millisecond // before a call of the store that failed is made again; it doubles
	backoffMost  = time.Second
)

// reply is the answer that an asker gets once a write is known; none when there was no ask.
type reply struct {
	ask   bool
	token kith.ReplyToken
	b     []byte
}

// leaves sends it.
func (r *reply) leaves() {
	if !r.ask {
		return
	}
	if err := r.token.Reply(r.b); err != nil { // it is too large, or the asker is gone, which needs no second word
		_ = r.token.Fail(err)
	}
}

// mailing is the outbox of a write, for the shard's mail.
type mailing struct {
	out []*parcel
	has bool // the mail is notified
}

// pending is one write that is not known yet, of one entity, with all that waits for it.
type pending struct {
	store.Write
	fresh   bool // nothing is stored before it
	taken   bool // it is on its way, or over: nothing joins its content any more
	known   bool
	replies []reply
	ch      chan struct{} // closed when it is known; nil: nobody waits
	bytes   int64         // that it holds
	before  *pending      // of the same entity, where nothing joins that any more though it is not taken
	mailing mailing
}

// holds notes that a pending write holds more bytes now, or fewer.
func (k *keeper) holds(p *pending, bytes int) {
	p.bytes += int64(bytes)
	k.d.bytes.Add(int64(bytes))
}

// adds adds a reply to a pending write.
func (k *keeper) adds(p *pending, r reply) {
	p.replies = append(p.replies, r)
	k.waiting++
	k.d.waiting.Add(1)
	k.holds(p, len(r.b))
}

// head is what an instance knows of its last write. The keeper's lock guards it.
type head struct {
	base uint64   // the version behind which the first write comes: 0, there is no record
	last *pending // nil: none was made
}

// version returns that which the next write follows, if that may not join the last one.
func (h *head) version() uint64 {
	switch {
	case h.last == nil:
		return h.base
	case h.last.Delete:
		return 0
	}
	return h.last.Version
}

// keeper commits what the entities of one shard leave. Methods are safe for concurrent use.
type keeper struct {
	d     *desk
	shard store.Shard
	fence kith.Fence
	turn  chan struct{} // holds one: the goroutine that takes it may claim the shard
	prior kith.Fence
	owns  atomic.Bool // the shard is claimed

	mu      sync.Mutex
	floor   uint64     // that of the shard when all that is queued is committed: records are made above it
	queue   []*pending // that are not taken, in order
	pending map[string]*pending
	waiting int // messages with a write that is not known
	sending bool
	room    chan struct{} // closed when there is room; nil: nobody waits for it
	dead    *failure      // nothing is committed any more; its code is that of what was not sent
	again   bool          // another keeper may take the place of a dead one, under the same fence
}

func newKeeper(d *desk, s store.Shard, f kith.Fence) *keeper {
	k := &keeper{d: d, shard: s, fence: f, turn: make(chan struct{}, 1), pending: map[string]*pending{}}
	k.turn <- struct{}{}
	return k
}

// over reports whether another keeper may take its place under the same fence.
func (k *keeper) over() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.dead != nil && k.again
}

// died returns why nothing is committed any more, nil when it is.
func (k *keeper) died() *failure {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.dead
}

// claims claims the shard, once, and returns the fence of the owner before.
func (k *keeper) claims(ctx context.Context) (kith.Fence, *failure) {
	if !k.d.ground.Wait(ctx, ground.Forever, k.turn) {
		return kith.Fence{}, fails(codeAway, context.Cause(ctx))
	}
	defer k.d.ground.Ring(k.turn)
	if k.owns.Load() {
		return k.prior, k.died()
	}
	short, cancel := k.d.ground.Within(ctx, k.d.patience)
	defer cancel()
	c, err := k.d.store.Claim(short, k.shard, k.fence)
	if err != nil {
		return kith.Fence{}, k.judge(err)
	}
	k.d.trouble.works(k, k.d.ground.Now())
	k.mu.Lock()
	k.floor = c.Floor
	k.mu.Unlock()
	k.prior = c.Last
	k.owns.Store(true)
	return c.Last, nil
}

// judge returns what a message gets when its call of the store failed before anything was written, and ends the keeper
// if that is for good.
func (k *keeper) judge(err error) *failure {
	switch {
	case errors.Is(err, store.ErrFenced):
		k.die(nil, fails(codeLost, nil), false)
		return fails(codeLost, nil)
	case errors.Is(err, store.ErrStoreWentBack):
		k.d.stop(err)
		k.die(nil, fails(codeWentBack, nil), false)
		return fails(codeWentBack, nil)
	}
	if k.died() == nil {
		k.d.trouble.fails(k, err, k.d.ground.Now())
	}
	return fails(codeAway, err)
}

// load reads an entity that the shard's owner before has left, and waits for its writes that are under way: the record,
// nil when there is none.
func (k *keeper) load(ctx context.Context, id string) (*store.Record, *failure) {
	k.mu.Lock()
	w := k.pending[id]
	k.mu.Unlock()
	if w != nil && !k.wait(ctx, w) {
		return nil, fails(codeAway, context.Cause(ctx))
	}
	short, cancel := k.d.ground.Within(ctx, k.d.patience)
	defer cancel()
	list, err := k.d.store.Load(short, k.shard, k.fence, id)
	switch {
	case err != nil:
		return nil, k.judge(err)
	case len(list) == 0:
		k.d.trouble.works(k, k.d.ground.Now())
		return nil, nil
	}
	k.d.trouble.works(k, k.d.ground.Now())
	return &list[0], nil
}

// wait waits until a write is known and reports whether it is. nil is known.
func (k *keeper) wait(ctx context.Context, w *pending) bool {
	if w == nil {
		return true
	}
	k.mu.Lock()
	if w.known {
		k.mu.Unlock()
		return true
	}
	if w.ch == nil {
		w.ch = make(chan struct{})
	}
	ch := w.ch
	k.mu.Unlock()
	return k.d.ground.Wait(ctx, ground.Forever, ch)
}

// enters waits until one more message may wait for its write.
func (k *keeper) enters(c *kith.Context) *failure {
	for {
		k.mu.Lock()
		if k.dead != nil || k.waiting == 0 || k.waiting < k.d.most && k.d.bytes.Load() < k.d.mostBytes {
			defer k.mu.Unlock()
			return k.dead
		}
		if k.room == nil {
			k.room = make(chan struct{})
		}
		room := k.room
		k.mu.Unlock()
		if !k.d.ground.Wait(c.Context(), ground.Forever, room) {
			return fails(codeBusy, nil)
		}
	}
}

// put queues a record behind the last write of its entity, and sends r when it is written. One that is not on its way
// yet is changed, while there is room for the marks of both: what a store never had needs no version. A deletion comes
// last: it raises the floor, and the records that are made before it have their versions already.
func (k *keeper) put(h *head, w store.Write, m mailing, r reply) *failure {
	begins, failed := k.puts(h, w, m, r)
	if begins {
		k.d.ground.Begin(k.send)
	}
	return failed
}

// puts is put, except that the caller has to begin send.
func (k *keeper) puts(h *head, w store.Write, m mailing, r reply) (begins bool, failed *failure) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.dead != nil {
		return false, k.dead
	}
	var before *pending
	if p := h.last; p != nil && !p.taken && (k.overtakes(p, &w) || !joins(&w, p.Marks)) {
		p.taken, before = true, p
	} else if p != nil && !p.taken {
		w.Version, w.Nonce, w.New, p.mailing = p.Version, p.Nonce, p.fresh, m
		k.raise(&w)
		k.holds(p, w.Size()-p.Size())
		p.Write = w
		k.adds(p, r)
		return false, nil
	}
	w.Version = h.version() + 1
	if w.New = w.Version == 1; w.New {
		w.Version = k.floor + 1
	}
	k.raise(&w)
	for w.Nonce == [16]byte{} {
		k.d.ground.Fill(w.Nonce[:])
	}
	h.last = &pending{Write: w, fresh: w.New, before: before, mailing: m}
	k.holds(h.last, w.Size())
	k.adds(h.last, r)
	k.pending[w.ID] = h.last
	k.queue = append(k.queue, h.last)
	begins, k.sending = !k.sending, true
	return begins, nil
}

// overtakes reports whether a write in the place of p would raise the floor before others that are queued.
func (k *keeper) overtakes(p *pending, w *store.Write) bool {
	return w.Delete && !p.Delete && k.queue[len(k.queue)-1] != p
}

// raise raises the floor by a write that deletes.
func (k *keeper) raise(w *store.Write) {
	if w.Delete {
		k.floor = max(k.floor, w.Raises())
	}
}

// tell sends r when all that its entity has left so far is known; if that was not stored, it sends the failure instead.
func (k *keeper) tell(h *head, r reply) {
	k.mu.Lock()
	if k.dead != nil && (h.last == nil || h.last.known) { // its handler may have seen what is lost
		r.b = k.dead.answer()
	}
	if p := h.last; p != nil && !p.known {
		defer k.mu.Unlock()
		k.adds(p, r)
		return
	}
	k.mu.Unlock()
	r.leaves()
}

// take takes the writes of the next commit, as many as one may have.
func (k *keeper) take() (batch []*pending) {
	k.mu.Lock()
	defer k.mu.Unlock()
	size := 0
	for _, p := range k.queue {
		if size += p.Size(); len(batch) == store.MaxWrites || size > store.MaxBytes || p.before != nil && !p.before.known {
			break
		}
		p.before = nil
		p.taken = true
		batch = append(batch, p)
	}
	clear(k.queue[:len(batch)])
	if k.queue = k.queue[len(batch):]; len(k.queue) == 0 {
		k.queue = nil
	}
	k.sending = len(batch) > 0
	return batch
}

// send makes one commit after the other as long as there is something to commit.
func (k *keeper) send() {
	for {
		batch := k.take()
		if len(batch) == 0 {
			return
		}
		writes := make([]store.Write, len(batch))
		for i, p := range batch {
			writes[i] = p.Write
		}
		if failed, sent, again := k.commit(writes); failed != nil {
			k.die(batch, failed, again)
			k.end(batch, sent.answer())
			return
		}
		k.d.commits.Add(1)
		k.d.writes.Add(uint64(len(batch)))
		k.committed(batch)
		k.end(batch, nil)
	}
}

// commit commits the writes: it repeats what is not known, until it is. If they were not: what those get that come
// behind, and those of this commit; and whether the shard may go on.
func (k *keeper) commit(writes []store.Write) (behind, these *failure, again bool) {
	maybe, rest := false, backoffFirst
	for {
		ctx, cancel := k.d.ground.Within(k.d.ctx, k.d.patience)
		err := k.d.store.Commit(ctx, k.shard, k.fence, writes...)
		cancel()
		if known(err) {
			k.d.trouble.works(k, k.d.ground.Now())
		} else {
			k.d.trouble.fails(k, err, k.d.ground.Now())
		}
		switch {
		case err == nil:
			return nil, nil, false
		case errors.Is(err, store.ErrFenced):
			return fails(codeLost, nil), lost(maybe), false
		case errors.Is(err, store.ErrStoreWentBack), errors.Is(err, store.ErrVersion):
			k.d.stop(errors.Join(store.ErrStoreWentBack, err)) // nobody else writes under this fence
			if maybe {
				return fails(codeWentBack, err), fails(codeBackMaybe, err), false
			}
			return fails(codeWentBack, err), fails(codeWentBack, err), false
		case errors.Is(err, store.ErrTooLarge):
			return fails(codeLost, err), fails(codeTooLarge, err), true
		}
		k.d.unknown.Add(1)
		maybe = true
		if k.d.ground.Wait(k.d.ctx, rest, nil); k.d.ctx.Err() != nil {
			return fails(codeLost, nil), lost(true), false
		}
		rest = min(2*rest, backoffMost)
	}
}

// known reports whether what a call of the store returned says whether it had its effect.
func known(err error) bool {
	return err == nil || errors.Is(err, store.ErrFenced) || errors.Is(err, store.ErrVersion) ||
		errors.Is(err, store.ErrStoreWentBack) || errors.Is(err, store.ErrTooLarge)
}

// lost is what the messages of a commit get that was not known when its shard was lost.
func lost(maybe bool) *failure {
	if maybe {
		return fails(codeMaybe, nil)
	}
	return fails(codeLost, nil)
}

// die ends the keeper: what has not been sent gets failed. The goroutine that sent a batch ends it.
func (k *keeper) die(batch []*pending, failed *failure, again bool) {
	k.mu.Lock()
	if k.dead != nil {
		k.mu.Unlock()
		return
	}
	k.dead, k.again = failed, again
	if failed.code == codeLost && !again && k.d.ctx.Err() == nil {
		k.d.fenced.Add(1)
	}
	rest := k.queue
	k.queue = nil
	for _, p := range batch { // nothing joins them
		p.taken = true
	}
	for _, p := range rest {
		p.taken = true
	}
	k.mu.Unlock()
	k.d.trouble.leaves(k)
	k.end(rest, failed.answer())
}

// end makes writes known: their replies leave, or failed in the place of each.
func (k *keeper) end(batch []*pending, failed []byte) {
	var replies []reply
	k.mu.Lock()
	for _, p := range batch {
		p.known = true
		if k.pending[p.ID] == p {
			delete(k.pending, p.ID)
		}
		if p.ch != nil {
			k.d.ground.Close(p.ch)
		}
		replies = append(replies, p.replies...)
		k.holds(p, -int(p.bytes))
		p.replies, p.State, p.Outbox, p.Reminders, p.Marks, p.before = nil, nil, nil, nil, nil, nil
	}
	k.d.waiting.Add(-int64(len(replies)))
	k.waiting -= len(replies)
	if k.room != nil {
		k.d.ground.Close(k.room)
		k.room = nil
	}
	k.mu.Unlock()
	if failed == nil {
		k.d.messages.Add(uint64(len(replies)))
		k.mails(batch)
	}
	for i := range replies {
		r := &replies[i]
		if failed != nil {
			r.b = failed
		}
		r.leaves()
	}
}

// perVersion is a power of two above the number of parcels that one write may add.
const perVersion = 1 << 16

// below returns what the numbers of the parcels of the next write are above. As versions never restart, they do not.
func (k *keeper) below(h *head) uint64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	v := h.version()
	switch {
	case h.last != nil && !h.last.taken:
		v = h.last.Version - 1
	case v == 0:
		v = k.floor
	}
	return v * perVersion
}

// joins adds the marks of a write that is not on its way yet to those of the one that takes its place, and reports
// whether there was room.
func joins(w *store.Write, earlier []store.Mark) bool {
	if len(earlier) == 0 {
		return true
	}
	all := *w
	for _, m := range earlier {
		if !slices.ContainsFunc(w.Marks, func(n store.Mark) bool { return n.From == m.From }) {
			all.Marks = append(all.Marks[:len(all.Marks):len(all.Marks)], m)
		}
	}
	if len(all.Marks) > store.MaxMarks || all.Size() > store.MaxBytes {
		return false
	}
	*w = all
	return true
}

// mails tells the shard's mail what is in the outboxes of writes that have taken place.
func (k *keeper) mails(batch []*pending) {
	var m *mail
	for _, p := range batch {
		if !p.mailing.has {
			continue
		}
		if m == nil {
			if m = k.d.mailOf(k.shard.N, k.fence); m == nil {
				return // what is stored is found when it begins
			}
		}
		m.set(p.ID, p.Version, p.mailing.out)
	}
}

// owns reports whether a shard is claimed under a fence, and its keeper lives.
func (d *desk) owns(s kith.ShardID, f kith.Fence) bool {
	d.mu.Lock()
	k := d.keepers[s]
	d.mu.Unlock()
	return k != nil && k.fence == f && k.owns.Load() && k.died() == nil && d.stopped.Load() == nil
}
