// Figures: what is counted of each type. Shards count for themselves, on whatever steps them; a copy is published at
// most every tenth of a second, so that readers load it without a lock and a message writes nothing that is shared.

package driver

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/kith-io/kith/entity"
)

// publishEvery is how often a shard's figures are published while they change.
const publishEvery = 100 * time.Millisecond

// The figures of a type. Those from figEntities on are states, which end with their shard.
const (
	figHandled = iota
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
	figEntities
	figCrashed
	figTimers
	figMailboxBytes
	figures
)

// tally is one value of each figure.
type tally [figures]uint64

func tallyOf(st *entity.Stats) tally {
	return tally{
		figHandled: st.Delivered, figFailed: st.Failed, figNoReply: st.NoReply, figAnswersLost: st.AnswersLost,
		figMade: st.Made, figPassivated: st.Passivated, figStopped: st.Stopped, figAbandoned: st.Abandoned,
		figCrashes: st.Crashes, figGivenUp: st.GivenUp, figDropped: st.Dropped, figEvicted: st.Evicted,
		figTimersFired: st.TimersFired, figTimersDropped: st.TimersDropped,
		figEntities: uint64(st.Live), figCrashed: uint64(st.Crashed), figTimers: uint64(st.Timers),
		figMailboxBytes: uint64(st.QueuedBytes),
	}
}

// published is what one host last told.
type published struct {
	over  bool // the shard's figures are in its type's past; guarded by past.mu
	value [figures]atomic.Uint64
}

// publish copies the shard's figures where readers find them, and returns when it is to be called again though nothing
// changes. The caller steps the shard.
func (h *host) publish(now time.Duration) (again time.Duration) {
	h.showAt = now + publishEvery
	st := h.sh.Stats()
	t := tallyOf(&st)
	for i := range t {
		if v := &h.shown.value[i]; v.Load() != t[i] { // most have not changed, and a store costs more than a load
			v.Store(t[i])
		}
	}
	if h.sh.Spare() {
		return h.showAt
	}
	return never
}

// put fills in the fields of t.
func (v *tally) put(t *TypeStats) {
	t.Handled, t.Failed, t.NoReply, t.AnswersLost = v[figHandled], v[figFailed], v[figNoReply], v[figAnswersLost]
	t.Made, t.Passivated, t.Stopped, t.Abandoned = v[figMade], v[figPassivated], v[figStopped], v[figAbandoned]
	t.TimersFired, t.TimersDropped, t.Timers = v[figTimersFired], v[figTimersDropped], v[figTimers]
	t.Crashes, t.GivenUp, t.Dropped, t.Evicted = v[figCrashes], v[figGivenUp], v[figDropped], v[figEvicted]
	t.Crashed = v[figCrashed]
	t.Entities, t.MailboxBytes = v[figEntities], v[figMailboxBytes]
}

// past holds the sums of a type's shards that are over.
type past struct {
	mu  sync.Mutex
	sum tally
}

// keep adds the figures of a shard that has ended.
func (p *past) keep(h *host) {
	st := h.sh.Stats()
	t := tallyOf(&st)
	p.mu.Lock()
	defer p.mu.Unlock()
	h.shown.over = true
	for i := range figEntities {
		p.sum[i] += t[i]
	}
}

// figures adds up what the type's shards have published, and what those that are over had counted. Its lock is
// otherwise taken only when a shard ends.
func (r *Region) figures() tally {
	r.past.mu.Lock()
	defer r.past.mu.Unlock()
	sum := r.past.sum
	for i := range r.hosts {
		h := r.hosts[i].Load()
		if h == nil || h.shown.over {
			continue
		}
		for f := range sum {
			sum[f] += h.shown.value[f].Load()
		}
	}
	return sum
}
