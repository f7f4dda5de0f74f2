// Hosts: the shards that live on this node, and what orders their messages in each of the three modes.

package exec

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/base/dues"
	"github.com/kith-io/kith/internal/core/lifetime"
	"github.com/kith-io/kith/route"
)

const never = dues.Never

// Host is one shard that lives here. What steps sh depends on the mode: Blocking, a goroutine that holds mu, shortly;
// Worker, its worker's goroutine; Inline, a loop that got mu by trying.
type Host struct {
	// What every message touches comes first, in one line of memory: a host is cold when its message comes.
	t              *Type
	sh             *entity.Shard
	queue          *execQueue // Worker and Inline: local messages and orders
	callFrame      *entity.CallFrame
	term, epoch    uint32
	singleThreaded bool        // Worker, or Inline with one loop: one goroutine steps it, the queue's, mu is not needed
	endReported    bool        // the control goroutine knows of the end: nothing steps sh any more
	queued         bool        // in the queue of the pool, or in the hands of a runner that looks next
	closed         atomic.Bool // no handler is called for what waits: it is lost already, or at the deadline of its move
	upTo           int64       // until when note has nothing to do, by the slewed clock; see upToDate
	mu             sync.Mutex
	waits          waits // beside the lock: a goroutine that takes one of them writes the other

	x         *Exec
	due       dues.Due[Host] // when Tick has something to do
	shard     route.ShardID
	fence     route.Fence
	published published // the figures
	calls     calls
	leftover  // Inline: what losers of the try left

	permit  permit         // of the entity that is kept alive
	life    lifetime.Shard // of the handlers' contexts
	end     hostEnd
	ticking atomic.Bool // a tick is on its way
}

// hostEnd is how a shard ends on this node.
type hostEnd struct {
	why   entity.StopReason // of orderStop; it and the next two are written before that is given
	by    time.Duration     // when that must be over; zero: nobody knows
	cutAt time.Duration     // the deadline of its move; zero: none
	room  int               // of its move, for states too; zero: they are not taken
	began atomic.Bool       // an order to stop or abandon was given
	lost  atomic.Bool       // others own it: no handler is called any more
	rest  atomic.Bool       // somebody has claimed what it leaves
	moves atomic.Bool       // loops read on meanwhile

	attended atomic.Bool // Type.Hosted is being called: until it returns the shard has not stopped
}

// order is what the control goroutine or the ticker wants of a host.
type order uint8

const (
	orderTick    order = 1
	orderStop    order = 2
	orderAbandon order = 3
	orderBegin   order = 4 // of the entity that is kept alive
	orderCut     order = 5
	orderLease   order = 6 // that it lives, or not
	orderRecall  order = 7 // of entities that are remembered
	orderLook    order = 8 // at what is left behind a lock, for nothing else
	orderWatch   order = 9 // what there is of watches
)

// newHost returns the host of a shard that is to live here, and to begin with what its last owner handed over.
func (x *Exec) newHost(t *Type, id route.ShardID, f route.Fence, left []entity.Message, states []entity.State) *Host {
	h := &Host{x: x, t: t, shard: id, fence: f, term: f.Term(), epoch: f.Epoch()}
	if t.typ.Mode != entity.Blocking {
		x.Waits.CallingOut()
	}
	switch t.typ.Mode {
	case entity.Worker:
		h.queue = &x.workers[int(id)%len(x.workers)].queue
		h.singleThreaded = true
	case entity.Inline:
		h.queue = &x.passes[int(id)%len(x.passes)].local
		h.singleThreaded = len(x.passes) == 1
	}
	x.hosts.add(h)
	h.leftover.limit = x.cfg.LocalBuffer
	h.sh = entity.NewShard(&t.typ, id, f, t.rider(h), x.cfg.Mailboxes)
	switch {
	case h.singleThreaded:
		h.callFrame = h.queue.callFrame
	case t.typ.Mode == entity.Inline:
		h.callFrame = &entity.CallFrame{}
	}
	h.sh.Use(h.callFrame)
	if t.leaseLost != nil {
		Withhold(h)
		entity.Withhold(h.sh, x.Clock.Now(), t.keep)
	}
	if len(left)+len(states) > 0 {
		entity.Resume(h.sh, x.Clock.Now(), left, states)
	}
	t.living.Add(1)
	return h
}

// Shard returns the number of the shard.
func (h *Host) Shard() route.ShardID { return h.shard }

// Fence returns the fence under which the shard lives here.
func (h *Host) Fence() route.Fence { return h.fence }

// Type returns the type of the shard's entities.
func (h *Host) Type() *Type { return h.t }

// Entities returns how many live in a shard, idle ones included, up to showEvery ago.
func Entities(h *Host) uint64 { return h.published.value[figEntities].Load() }

// Handled returns how many messages were handled in a shard since it lives here, up to showEvery ago.
func Handled(h *Host) uint64 { return h.published.value[figHandled].Load() }

// Look says what an entity of a shard is doing; known is false for one of a type that is not Blocking, which has no
// mailbox of its own.
func Look(id string, h *Host) (d entity.Doing, known bool) {
	if h.queue != nil {
		return d, false
	}
	now := h.x.Clock.Now()
	h.mu.Lock()
	defer h.mu.Unlock()
	return entity.Look(id, h.sh, now), true
}

// MailboxBytes returns what waits in the mailboxes of a shard, with entity.RecordOverhead for each message, up to
// showEvery ago.
func MailboxBytes(h *Host) uint64 { return h.published.value[figMailboxBytes].Load() }

// HandlerTime returns how long handlers of the shard ran since Weigh was called and it lives here: what they waited for
// included. Of Blocking entities that is the length of their runs, which ended; of the others an estimate, by one call
// in so many. Zero for a type that is not weighed.
func HandlerTime(h *Host) time.Duration { return time.Duration(h.published.ran.Load()) }

// Ending reports whether an order to stop or to abandon the shard was given.
func (h *Host) Ending() bool { return h.end.began.Load() }

// Stop stops the shard's entities; what came before is worked off. by is when that must be over, zero when nobody
// knows. Needs.Stopped follows. It is called once. With within, which is more than zero for a shard that moves, it is
// worked off for no longer: then no handler is called for what waits, Needs.Overdue is called, handlers that run are
// waited for, and Rest has what nobody has handled. Its entities are asked for their states then, for which there is
// room together with the messages; zero: the next owner takes none. Rest has them too. Without within each state that
// they would have handed over is reported as lost.
func (h *Host) Stop(why entity.StopReason, by, within time.Duration, room int) {
	h.end.why, h.end.by, h.end.room = why, by, room
	h.life.Stop(by)
	if within > 0 {
		h.end.cutAt = h.x.Clock.Now() + within
	}
	h.give(orderStop)
	if within > 0 {
		h.x.hosts.leave(h)
	}
}

// Overdue reports whether the shard is at the deadline of its move, or lost: its handlers wait for no answer any more.
func Overdue(h *Host) bool { return h.closed.Load() }

// cut makes the shard hand over what it has not worked off.
func cut(h *Host) {
	h.closed.Store(true)
	h.life.Stop(h.end.by) // those that run see it by their contexts
	h.x.needs.Overdue(h)
	h.give(orderCut)
}

// cutIfDue carries that out if it is due. Called where the host's messages are ordered. It reports whether no message
// waits any more for handlers that a run would call.
func cutIfDue(h *Host, now time.Duration) bool {
	if !h.closed.Load() {
		return false
	}
	if !h.end.lost.Load() {
		entity.Cut(h.sh, now)
	}
	return true
}

// goesOn reports whether a run of one of the host's entities makes its next call: not once the shard is lost, and at
// the deadline of its move the run under way ends, so that what it has not begun can be taken, and likewise when the
// entity that is kept alive may not live.
func goesOn(h *Host, r run) bool {
	if h.t.leaseLost != nil && !r.other && withheldNow(h) {
		return false
	}
	return !h.closed.Load() || r.last && !h.end.lost.Load()
}

// run is what was so when the run of an entity began.
type run struct {
	last  bool // the deadline of its shard's move had come
	other bool // the entity that is kept alive was withheld: this is another one, or it would not have begun
}

// begins begins a run of an entity of the host. Its lock is held.
func begins(h *Host, e *entity.Entity, now time.Duration) (r run, more bool) {
	r.last = cutIfDue(h, now)
	r.other = h.t.leaseLost != nil && entity.Withheld(h.sh)
	return r, e.Begin(now)
}

// Abandon makes the shard, which others own by now, call no handler any more. Needs.Stopped follows when those that run
// have returned.
func (h *Host) Abandon() { h.give(orderAbandon) }

// Moves says whether a shard moves: from the order to hand it over until it has ended, or stays. The caller is one
// goroutine.
func Moves(moves bool, h *Host) {
	if h.end.moves.Swap(moves) == moves {
		return
	}
	if moves {
		h.x.readsOn.moving.Add(1)
	} else {
		h.x.readsOn.moving.Add(-1)
	}
}

// Remove takes a host out of its place when its entities have stopped.
func (h *Host) Remove() {
	Moves(false, h)
	h.t.hosts.At(h.shard).CompareAndSwap(h, nil)
	h.x.hosts.remove(h)
	h.x.forgetHost(h)
}

// give carries out an order where the host's messages are ordered.
func (h *Host) give(o order) {
	if o == orderStop || o == orderAbandon {
		h.end.began.Store(true)
	}
	if o == orderAbandon {
		h.lose()
	}
	if o == orderStop || o == orderAbandon {
		toldToEnd(h)
	}
	if h.queue != nil {
		h.queue.order(h, o)
		return
	}
	now := h.x.Clock.Now()
	h.mu.Lock()
	h.obey(now, o)
	h.mu.Unlock()
}

// lose marks the host's shard as lost: no handler is called any more, and the contexts of those that run end.
func (h *Host) lose() {
	h.end.lost.Store(true)
	h.closed.Store(true)
	h.life.Lose()
}

// obey carries out an order. Called where the host's messages are ordered.
func (h *Host) obey(now time.Duration, o order) {
	if h.endReported {
		over(h, o)
		return
	}
	now = h.x.Clock.Fresh(now)
	switch o {
	case orderTick:
		h.ticking.Store(false)
		if !h.end.lost.Load() {
			revokeLease(h, now)
			h.sh.Tick(now)
		}
	case orderBegin:
		if !h.end.lost.Load() {
			serving := func() context.Context { return h.life.Serving(h.x.Gate.Closed) }
			entity.KeepAlive(h.sh, now, h.t.keep, serving)
		}
	case orderLease:
		lookAtLease(h, now)
	case orderStop:
		if !h.end.lost.Load() {
			askForStates(h)
			h.sh.Stop(now, h.end.why)
		}
	case orderRecall:
		recallNow(h, now)
	case orderCut:
		cutIfDue(h, now)
	case orderWatch:
		watchNow(h, false)
	case orderAbandon:
		askForStates(h) // the loss may come before Stop was carried out
		h.sh.Abandon()
	}
	h.follow()
}

// over is obey once the control goroutine knows of the end: it takes what the shard leaves, so nothing here steps it:
// what was sent before comes too late. If the node ends before that was taken, it is dropped.
func over(h *Host, o order) {
	switch {
	case o == orderRecall:
		h.x.recaller.take(h)
	case o == orderWatch:
		watchNow(h, true)
	case o == orderAbandon && !h.end.rest.Swap(true):
		h.sh.Abandon()
	}
}

// upToDate reports whether follow has nothing to do though a message was handled, given that it changed nothing of what
// Next tells: the figures are to be published later, and that will happen by itself. at is the slewed clock, which is
// never ahead.
func (h *Host) upToDate(at int64) bool { return at < h.upTo }

// follow comes after every verb: entities that are ready run, the next tick is noted, the end is reported.
func (h *Host) follow() {
	if h.t.typ.Mode == entity.Blocking {
		h.x.pool.run(h)
	}
	h.note()
}

// note is follow but for the entities that are ready.
func (h *Host) note() {
	if h.endReported {
		return
	}
	due, ok := h.sh.Next()
	if !ok {
		due = never
	}
	if now := h.x.Clock.Ticked(); now < h.published.at {
		due = min(due, h.published.at)
	} else {
		h.published.at = now + time.Duration(h.x.hosts.every.Load())
		due = min(due, h.publish())
	}
	h.due.Set(due)
	if h.upTo = 0; due <= h.published.at {
		h.upTo = int64(h.published.at)
	}
	if h.sh.Stopping() && h.sh.Stopped() && !h.end.attended.Load() {
		h.endReported, h.upTo = true, 0
		h.due.Set(never)
		h.t.living.Add(-1)
		h.t.past.keep(h)
		h.x.needs.Stopped(h)
	}
}

// hostList holds the hosts for the code that looks at all of them: the ticker, statistics, the end.
type hostList struct {
	mu      sync.Mutex
	all     dues.Table[Host]
	due     []*Host      // of tick, used again
	leaving []*Host      // with a deadline
	every   atomic.Int64 // how often a host's figures are published while they change
}

// leave notes a host that has a deadline.
func (l *hostList) leave(h *Host) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.leaving = append(l.leaving, h)
}

// cut makes the hosts at their deadline hand over.
func (l *hostList) cut(now time.Duration) {
	var due []*Host
	l.mu.Lock()
	l.leaving = slices.DeleteFunc(l.leaving, func(h *Host) bool {
		over := h.end.cutAt <= now
		if over {
			due = append(due, h)
		}
		return over
	})
	l.mu.Unlock()
	for _, h := range due {
		cut(h)
	}
}

func (l *hostList) add(h *Host) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all.Add(&h.due, h)
	l.every.Store(int64(showEvery(l.all.Len())))
}

func (l *hostList) remove(h *Host) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.leaving = slices.DeleteFunc(l.leaving, func(o *Host) bool { return o == h })
	l.all.Remove(&h.due, h)
	l.every.Store(int64(showEvery(l.all.Len())))
}

func (l *hostList) snapshot() []*Host {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Collect(l.all.All)
}

// tick ticks the hosts that are due. It touches no other.
func (l *hostList) tick(now time.Duration) {
	l.mu.Lock()
	due := l.all.Over(now, l.due[:0])
	l.mu.Unlock()
	for _, h := range due {
		if h.ticking.CompareAndSwap(false, true) {
			h.give(orderTick)
		}
	}
	clear(due)
	l.due = due
}
