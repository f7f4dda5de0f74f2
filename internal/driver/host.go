// Hosts: the shards that live on this node, and what orders their messages in each of the three modes.

package driver

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/invariant"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/shard"
	"github.com/kith-io/kith/wire"
)

const never = time.Duration(math.MaxInt64)

// host is one shard that lives here. What steps sh depends on the mode: Blocking, whoever holds mu, shortly; Worker,
// its worker's goroutine; Inline, whoever got mu by trying, on a loop.
type host struct {
	// What every message touches comes first.
	r           *Region
	sh          *entity.Shard
	term, epoch uint32
	alone       bool          // Worker, or Inline with one loop: one goroutine steps it, the queue's, mu is not needed
	told        bool          // the end has been told to the control goroutine
	waits       bool          // in blockingPool.waiting, whose lock guards it
	abandoned   atomic.Bool   // lost already: no handler is called any more
	due         atomic.Int64  // when Tick has something to do
	showAt      time.Duration // when the figures are due to be published, by the coarse clock
	mu          sync.Mutex

	shard    route.ShardID
	fence    route.Fence
	queue    *execQueue // Worker and Inline: local messages and orders
	desk     *entity.Desk
	closing  bool // control goroutine: told to stop
	shown    published
	calls    calls
	leftover // Inline: what losers of the try left

	ending  atomic.Bool // an order to stop or abandon was given
	ticking atomic.Bool // a tick is on its way
	at      int         // in hostList
}

// order is what the control goroutine or the ticker wants of a host.
type order uint8

const (
	orderTick    order = 1
	orderStop    order = 2
	orderAbandon order = 3
)

// hostOrder carries out what the node says of one hosted shard. Control goroutine.
func (d *Driver) hostOrder(o *shard.HostOrder) {
	r := d.regions.Load().byID[o.Type]
	if r == nil || uint32(o.Shard) >= r.shards {
		return
	}
	ref := slotRef{r, o.Shard}
	h := ref.host().Load()
	if !o.Stop {
		if h != nil && h.fence == o.Fence {
			return
		}
		invariant.Check(h == nil, "driver: a shard is to live here twice")
		ref.host().Store(d.newHost(r, o.Shard, o.Fence))
		return
	}
	if h == nil || h.fence != o.Fence {
		d.inbox.post(func() { d.hostStopped(ref, o.Fence, nil) })
		return
	}
	if !h.closing {
		// Senders here park from now on; what they appended before is worked off.
		d.closeRoute(ref)
		h.closing = true
	}
	if o.Abandon {
		h.give(orderAbandon)
	} else {
		h.give(orderStop)
	}
}

func (d *Driver) newHost(r *Region, id route.ShardID, f route.Fence) *host {
	h := &host{r: r, shard: id, fence: f, term: f.Term(), epoch: f.Epoch()}
	if r.typ.Mode != entity.Blocking {
		d.callingOut()
	}
	switch r.typ.Mode {
	case entity.Worker:
		h.queue = &d.workers[int(id)%len(d.workers)].queue
		h.alone = true
	case entity.Inline:
		h.queue = &d.passes[int(id)%len(d.passes)].local
		h.alone = len(d.passes) == 1
	}
	h.due.Store(int64(never))
	h.leftover.limit = d.cfg.localBuffer()
	h.sh = entity.NewShard(&r.typ, id, f, hostRider{regionRider{r}, h}, &d.mail)
	switch {
	case h.alone:
		h.desk = h.queue.desk
	case r.typ.Mode == entity.Inline:
		h.desk = &entity.Desk{}
	}
	h.sh.Use(h.desk)
	d.hosts.add(h)
	r.living.Add(1)
	return h
}

// hostStopped tells the node that a shard's entities have stopped. Control goroutine.
func (d *Driver) hostStopped(ref slotRef, f route.Fence, h *host) {
	if h != nil {
		ref.host().CompareAndSwap(h, nil)
		d.hosts.remove(h)
	}
	cmd := shard.StoppedCommand{Type: ref.r.id, Shard: ref.shard, Fence: f}
	if err := d.command(cmd); err != nil {
		d.log.Warn("stopped shard not reported", "type", ref.r.typ.Name, "shard", ref.shard, "error", err)
	}
}

// give has an order carried out where the host's messages are ordered.
func (h *host) give(o order) {
	if o != orderTick {
		h.ending.Store(true)
	}
	if o == orderAbandon {
		h.abandoned.Store(true)
	}
	if h.queue != nil {
		h.queue.order(h, o)
		return
	}
	now := h.r.d.now()
	h.mu.Lock()
	h.obey(now, o)
	h.mu.Unlock()
}

// obey carries out an order. Whoever orders the host's messages calls it.
func (h *host) obey(now time.Duration, o order) {
	switch o {
	case orderTick:
		h.ticking.Store(false)
		if !h.abandoned.Load() {
			h.sh.Tick(now)
		}
	case orderStop:
		if !h.abandoned.Load() {
			h.sh.Stop(now)
		}
	case orderAbandon:
		h.sh.Abandon()
	}
	h.settle()
}

// settled reports whether settle has nothing to do though a message was handled, given that it changed nothing of what
// Next tells: the figures are to be published later, and that will happen by itself. at is the coarse clock.
func (h *host) settled(at int64) bool {
	show := int64(h.showAt)
	return at < show && h.due.Load() <= show
}

// settle follows every verb: entities that are ready run, the next tick is noted, the end is told.
func (h *host) settle() {
	if h.r.typ.Mode == entity.Blocking {
		h.r.d.pool.run(h)
	}
	h.note()
}

// note is settle but for the entities that are ready.
func (h *host) note() {
	due, ok := h.sh.Next()
	if !ok {
		due = never
	}
	if now := time.Duration(h.r.d.coarse.Load()); now < h.showAt {
		due = min(due, h.showAt)
	} else {
		due = min(due, h.publish(now))
	}
	if int64(due) != h.due.Load() {
		h.due.Store(int64(due))
	}
	if h.sh.Stopping() && !h.told && h.sh.Stopped() {
		h.told = true
		h.r.living.Add(-1)
		h.r.past.keep(h)
		d, ref, f := h.r.d, slotRef{h.r, h.shard}, h.fence
		d.inbox.post(func() { d.hostStopped(ref, f, h) })
	}
}

// deliver gives one message to the shard; from is nil for this node, hash zero when that of the id is not known.
// Whoever orders the host's messages calls it, and settle afterwards. What is not accepted is the caller's to refuse.
func (h *host) deliver(now time.Duration, from *remote, env *wire.Envelope, hash uint64) route.Reason {
	if env.Flags&wire.FlagBulk != 0 {
		return h.deliverLarge(now, from, env)
	}
	var m entity.Message // field by field: a literal is built elsewhere and copied, and the copy waits for its stores
	m.Hash, m.Corr, m.Parked = hash, env.Corr, env.Flags&wire.FlagParked != 0
	m.ID, m.Payload = env.ID, env.Payload
	if env.Flags&wire.FlagAsk != 0 {
		m.From = h.r.d.originOf(from)
	}
	return h.sh.Deliver(now, &m)
}

// sendHere takes a message of this node under the route e. stale means that the route has changed.
func (h *host) sendHere(s *regionSlot, e *routeEntry, id string, payload []byte, corr uint64) (stale bool, err error) {
	env := h.r.envelope(h.shard, e, corr, payload)
	return h.takeHere(s, e, &env, id)
}

// takeHere is sendHere for an envelope.
func (h *host) takeHere(s *regionSlot, e *routeEntry, env *wire.Envelope, id string) (stale bool, err error) {
	if h.queue != nil {
		return h.queue.appendHere(s, e, env, id)
	}
	env.ID = bytesOf(id)
	now := h.r.d.now()
	h.mu.Lock()
	if s.route.Load() != e {
		h.mu.Unlock()
		return true, nil
	}
	reason := h.deliver(now, nil, env, 0)
	h.settle()
	h.mu.Unlock()
	if reason != route.OK {
		h.r.count.refused(reason)
	}
	return false, h.r.errOf(reason)
}

// forwardHere takes a parked message of this node, and reports whether there was room.
func (h *host) forwardHere(f []byte, env *wire.Envelope) bool {
	if h.queue != nil {
		return h.queue.appendFrame(f)
	}
	now := h.r.d.now()
	h.mu.Lock()
	reason := h.deliver(now, nil, env, 0)
	h.settle()
	h.mu.Unlock()
	if reason != route.OK {
		// The slot's lock is held: an ask is settled later, on the control goroutine, which this is.
		h.r.d.dropParked(slotRef{h.r, h.shard}, f, reason)
	}
	return true
}

// hostList holds the hosts for whoever looks at all of them: the ticker, statistics, the end.
type hostList struct {
	mu   sync.Mutex
	list []*host
	due  []*host // of tick, used again
}

func (l *hostList) add(h *host) {
	l.mu.Lock()
	defer l.mu.Unlock()
	h.at = len(l.list)
	l.list = append(l.list, h)
}

func (l *hostList) remove(h *host) {
	l.mu.Lock()
	defer l.mu.Unlock()
	last := len(l.list) - 1
	if h.at > last || l.list[h.at] != h {
		return
	}
	l.list[h.at] = l.list[last]
	l.list[h.at].at = h.at
	l.list[last] = nil
	l.list = l.list[:last]
}

func (l *hostList) snapshot() []*host {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]*host(nil), l.list...)
}

// tick has the hosts ticked whose time has come.
func (l *hostList) tick(now time.Duration) {
	l.mu.Lock()
	due := l.due[:0]
	for _, h := range l.list {
		if h.due.Load() <= int64(now) && h.ticking.CompareAndSwap(false, true) {
			due = append(due, h)
		}
	}
	l.mu.Unlock()
	for _, h := range due {
		h.give(orderTick)
	}
	clear(due)
	l.due = due
}
