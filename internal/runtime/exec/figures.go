// Figures: what is counted of each type. Shards count for themselves, on whatever steps them; a copy is published at
// most every tenth of a second, more rarely where there are very many, so that readers load it without a lock and a
// message writes nothing that is shared.

package exec

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/kith-io/kith/entity"
)

// How often a shard's figures are published while they change: every tenth of a second, or with more than 5,000 shards
// as rarely as keeps all of them together at 50,000 copies a second, each of which costs about a microsecond.
const (
	publishEvery = 100 * time.Millisecond
	publishPause = 20 * time.Microsecond // for each shard
)

// showEvery returns how often the figures of each of so many shards are published while they change.
func showEvery(shards int) time.Duration {
	return max(publishEvery, time.Duration(shards)*publishPause)
}

// The figures of a type. Those from figEntities on are states, which end with their shard.
const (
	figHandled = iota
	figNotMade
	figFailed
	figNoReply
	figAnswersLost
	figMade
	figPassivated
	figStopped
	figAbandoned
	figCrashes
	figGivenUp
	figDropped
	figEvicted
	figTimersFired
	figTimersDropped
	figTimersHandled
	figExpired
	figFilled
	figHandedOver
	figTakenUp
	figTimersLate    // the first of the classes of entity.Lateness
	figTimersLateMax = figTimersLate + entity.LateClasses
	figEntities      = figTimersLateMax + 1
	figCrashed       = figEntities + 1
	figTimers        = figEntities + 2
	figMailboxBytes  = figEntities + 3
	figFull          = figEntities + 4
	figures          = figEntities + 5
)

// tally is one value of each figure.
type tally [figures]uint64

func tallyOf(st *entity.Stats) tally {
	t := tally{
		figHandled: st.Delivered, figNotMade: st.NotMade, figFailed: st.Failed, figNoReply: st.NoReply,
		figAnswersLost: st.AnswersLost,
		figMade:        st.Made, figPassivated: st.Passivated, figStopped: st.Stopped, figAbandoned: st.Abandoned,
		figCrashes: st.Crashes, figGivenUp: st.GivenUp, figDropped: st.Dropped, figEvicted: st.Evicted,
		figHandedOver: st.HandedOver, figTakenUp: st.TakenUp,
		figTimersFired: st.TimersFired, figTimersDropped: st.TimersDropped,
		figTimersHandled: st.TimersHandled, figExpired: st.Expired, figFilled: st.Filled, figFull: uint64(st.Full),
		figEntities: uint64(st.Live), figCrashed: uint64(st.Crashed), figTimers: uint64(st.Timers),
		figMailboxBytes: uint64(st.QueuedBytes), figTimersLateMax: uint64(st.Late.Max),
	}
	copy(t[figTimersLate:], st.Late.Counts[:])
	return t
}

// add adds one figure of a shard to those of others.
func (v *tally) add(figure int, n uint64) {
	if figure == figTimersLateMax {
		v[figure] = max(v[figure], n)
		return
	}
	v[figure] += n
}

// published is what one host last reported.
type published struct {
	at    time.Duration // when they are due to be published; of the goroutine that steps the shard
	over  bool          // the shard's figures are in its type's past; guarded by past.mu
	value [figures]atomic.Uint64
	ran   atomic.Int64 // nanoseconds that handlers ran, of a type that is weighed: always new
}

// publish copies the shard's figures where readers find them, and returns when it is to be called again though nothing
// changes. The caller steps the shard, and has set published.at.
func (h *Host) publish() (again time.Duration) {
	st := h.sh.Stats()
	t := tallyOf(&st)
	for i := range t {
		if v := &h.published.value[i]; v.Load() != t[i] { // most have not changed, and a store costs more than a load
			v.Store(t[i])
		}
	}
	if h.sh.Spare() {
		return h.published.at
	}
	return never
}

// stats returns the tally with its names. What a shard does not publish stays zero.
func (v *tally) stats() (st entity.Stats) {
	st.Delivered, st.Failed, st.NoReply, st.AnswersLost = v[figHandled], v[figFailed], v[figNoReply], v[figAnswersLost]
	st.Made, st.Passivated, st.Stopped, st.Abandoned = v[figMade], v[figPassivated], v[figStopped], v[figAbandoned]
	st.TimersFired, st.TimersDropped, st.Timers = v[figTimersFired], v[figTimersDropped], int(v[figTimers])
	st.Expired, st.TimersHandled = v[figExpired], v[figTimersHandled]
	st.HandedOver, st.TakenUp = v[figHandedOver], v[figTakenUp]
	st.Filled, st.Full = v[figFilled], int(v[figFull])
	st.Crashes, st.GivenUp, st.Dropped, st.Evicted = v[figCrashes], v[figGivenUp], v[figDropped], v[figEvicted]
	st.NotMade, st.Crashed = v[figNotMade], int(v[figCrashed])
	st.Late.Max = time.Duration(v[figTimersLateMax])
	copy(st.Late.Counts[:], v[figTimersLate:])
	st.Live, st.QueuedBytes = int(v[figEntities]), int(v[figMailboxBytes])
	return st
}

// past holds the sums of a type's shards that are over.
type past struct {
	mu  sync.Mutex
	sum tally
}

// keep adds the figures of a shard that has ended.
func (p *past) keep(h *Host) {
	st := h.sh.Stats()
	t := tallyOf(&st)
	p.mu.Lock()
	defer p.mu.Unlock()
	h.published.over = true
	for i := range figEntities {
		p.sum.add(i, t[i])
	}
}

// Stats adds up what the type's shards have published, up to showEvery old, and what those that are over had
// counted. Refused is not among it; see Refused.
func (t *Type) Stats() entity.Stats {
	// The lock is otherwise taken only when a shard ends.
	t.past.mu.Lock()
	defer t.past.mu.Unlock()
	sum := t.past.sum
	for _, at := range t.hosts.All {
		h := at.Load()
		if h == nil || h.published.over {
			continue
		}
		for f := range sum {
			sum.add(f, h.published.value[f].Load())
		}
	}
	return sum.stats()
}
