// Ahead: looks a few frames ahead, so that the memory that their entities need is on its way while others are handled,
// and then calls the handlers of the prefetch hits, one after the other.

package exec

import (
	"sync/atomic"
	"time"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/core/plane"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

// aheadFrames is how many frames are looked at together: about as many waits for memory as a core keeps under way.
const aheadFrames = 16

// ahead is what one goroutine that runs handlers knows of the frames that come next.
type ahead struct {
	x         *Exec
	queue     *execQueue       // its shards are stepped by this goroutine alone
	cache     typeCache        // of the frame looked at last
	callFrame entity.CallFrame // of these shards
	fresh     bool             // frames come from the wire: their limits are not moments of this node's clock yet
	arrived   uint32           // if so, when they came
	n         int
	at        int // how many of them were begun, for those of a worker
	next      [aheadFrames]prefetched

	far    bool                               // of some the place is known, of the type of more than farShards
	places [aheadFrames]*atomic.Pointer[Host] // then; nil: of the others
}

// prefetched is one frame that was looked at.
type prefetched struct {
	frame []byte
	kind  wire.Kind
	bad   error // why it is no envelope though it is of that kind
	env   wire.Envelope
	hash  uint64 // of the id; zero: not known
	h     *Host
	e     *entity.Entity // the entity of h that it is for; nil: not known
}

// look takes up to aheadFrames whole frames, finds the host and entity of each, and returns the rest. Slots are looked
// at all at once, then entities: the waits for memory overlap. What was found is looked at again, and judged, when its
// turn comes.
func (a *ahead) look(frames []byte) (rest []byte) {
	at := 0
	a.far = false
	for a.n = 0; at < len(frames) && a.n < aheadFrames; a.n++ {
		end := at + wire.SizeOf(frames[at:])
		x := &a.next[a.n%aheadFrames]
		x.frame = frames[at:end:end]
		x.kind, x.hash, x.h, x.e = wire.KindOf(frames[at:]), 0, nil, nil
		at = end
		if x.kind == wire.KindEnvelope {
			a.envelope(x)
		}
	}
	if a.far {
		a.hosts()
	}
	for i := range a.next[:a.n] {
		if x := &a.next[i]; x.h != nil && x.h.singleThreaded {
			x.e = x.h.sh.Foresee(x.hash) // of others only under their lock
		}
	}
	for i := range a.next[:a.n] {
		if x := &a.next[i]; x.e != nil && !x.e.Is(x.env.ID) {
			x.e = nil
		}
	}
	return frames[at:]
}

// envelope looks at an envelope. Those of shards that another goroutine steps are left to it.
func (a *ahead) envelope(x *prefetched) {
	if a.fresh && x.frame[5]&wire.FlagLimit != 0 {
		wire.Arrive(x.frame, a.arrived)
	}
	if x.bad = wire.ParseEnvelope(x.frame, &x.env); x.bad != nil {
		return
	}
	t := a.cache.typeOf(a.x, &x.env)
	if t == nil || x.env.Shard >= t.shards || t.leaseLost != nil { // the last: the slow path looks at the lease
		return
	}
	place := t.hosts.Find(route.ShardID(x.env.Shard))
	if t.shards > farShards {
		if !a.far {
			a.far = true
			clear(a.places[:])
		}
		a.places[a.n%aheadFrames] = place
		x.hash = entity.HashID(x.env.ID)
		return
	}
	if h := place.Load(); a.mine(h, x) {
		x.h, x.hash = h, entity.HashID(x.env.ID)
	}
}

// farShards is the largest number of shards at which all hosts of a type are at hand. Of a larger type each message
// waits for the memory of its own, which is most of what it costs.
const farShards = 4096

// hosts looks at the hosts of messages of such types: at all places first, and then at all hosts, so that these waits
// overlap as well.
func (a *ahead) hosts() {
	var found [aheadFrames]*Host
	for i, place := range a.places[:a.n] {
		if place != nil {
			found[i] = place.Load()
		}
	}
	for i, h := range found[:a.n] {
		if h != nil && a.mine(h, &a.next[i]) {
			a.next[i].h = h
		}
	}
}

// mine reports whether this goroutine steps a host, nil for none, and may take an envelope for it. When it may not,
// hostOf says why in its turn.
func (a *ahead) mine(h *Host, x *prefetched) bool {
	return h != nil && h.callFrame != nil && (!h.singleThreaded || h.queue == a.queue) && h.term == x.env.Term &&
		h.epoch == x.env.Epoch && len(x.env.Payload) <= a.x.cfg.MaxPayload && x.env.Flags&wire.FlagBulk == 0
}

// run calls the handlers of the frames from at on, up to end, as long as they are prefetch hits and the gate is open.
// It returns the first frame that it has not dealt with, which is at when that is the one.
func (a *ahead) run(now time.Duration, from *Source, at, end int) (next int) {
	ex := a.x
	next = at
	a.callFrame.Bind()
	defer func() {
		if v := recover(); v != nil {
			x := &a.next[next-1]
			x.h.callFrame.Recovered(v)
			x.h.follow()
			x.exit(now)
		}
	}()
	for clock := ex.Clock.slewed.Load(); next < end; {
		x := &a.next[next]
		h, e := x.h, x.e
		if h == nil || ex.Gate.Closed() || h.closed.Load() {
			return next
		}
		more := x.env.Flags&(wire.FlagLimit|wire.FlagHeaders) != 0
		if more && x.env.Flags&wire.FlagLimit != 0 && plane.Over(x.env.Limit, max(now, ex.Clock.Ticked())) {
			return next // the slow path says so
		}
		if e == nil {
			if e = h.enter(now, x); e == nil {
				return next
			}
		}
		var origin entity.Origin
		if x.env.Flags&wire.FlagAsk != 0 {
			origin = ex.originOf(from)
		}
		if more {
			h.with(now, x)
		}
		next++ // also when it panics
		a.at = next
		ok, quiet := h.sh.Dispatch(now, e, origin, x.env.Corr, x.env.Payload)
		if !ok {
			x.exit(now)
			return next - 1
		}
		if t := ex.Clock.slewed.Load(); t != clock {
			h.sh.Took(e, time.Duration(t-clock))
			clock, now = t, ex.Clock.Fresh(now)
		}
		if !quiet || !h.upToDate(clock) {
			h.follow()
		}
		if x.e == nil {
			x.exit(now)
		}
	}
	return next
}

// with gives the next call what only some envelopes have.
func (h *Host) with(now time.Duration, x *prefetched) {
	var m entity.Message
	h.x.more(now, &x.env, &m)
	h.callFrame.With(m.Limit, m.Headers)
}

// enter tries for the lock of an Inline host that several loops step, and looks up the frame's entity. Without both it
// returns nil and has no lock; so it does for other hosts.
func (h *Host) enter(now time.Duration, x *prefetched) *entity.Entity {
	if h.singleThreaded || !h.mu.TryLock() {
		return nil
	}
	h.workLeft(now) // what was left before comes first
	h.callFrame.Bind()
	if e := h.sh.Foresee(x.hash); e != nil && e.Is(x.env.ID) {
		return e
	}
	x.exit(now)
	return nil
}

// exit gives the lock of such a host up; of others there is nothing to give up.
func (x *prefetched) exit(now time.Duration) {
	if !x.h.singleThreaded {
		x.h.mu.Unlock()
		x.h.pickUp(now)
	}
}
