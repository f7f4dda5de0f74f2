// Latency: one of so many messages is timed while it is worked off, reported to Config.Latency, and taken for so many
// of its shard where shards are weighed. The goroutine that runs handlers looks once a batch whether Config.Latency is
// set; without it nothing else is paid.

package exec

import (
	"math/rand/v2"
	"time"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/runtime/transport"
	"github.com/kith-io/kith/route"
)

// Sampler picks one of so many on average, at random distances, so that what comes in turns is picked in turns too. It
// belongs to one goroutine, or to a lock. The zero value picks the first.
type Sampler struct {
	left   int
	stride int       // how many one stands for: every, or more where they come fast; zero: every
	stands int       // how many the last one that was picked stands for
	last   time.Time // when that one was picked
}

// A sample costs about 0.3 us, as much as five messages: two readings of the clock, and the call. So where samples
// would be less than sampleGap apart they grow rarer, up to maxStretch times.
const (
	sampleGap  = 50 * time.Microsecond
	maxStretch = 16
)

// Pick reports whether this one is timed; every is at least one.
func (s *Sampler) Pick(every int) bool {
	if s.left--; s.left > 0 {
		return false
	}
	s.draw(every)
	return true
}

func (s *Sampler) draw(every int) {
	if s.stands = s.stride; s.stands == 0 {
		s.stands, s.stride = every, every
	}
	if s.left = 1; s.stride > 1 {
		s.left += rand.IntN(2*s.stride - 1)
	}
}

// Begin says when the one that was picked began, by which it learns how fast they come, and returns how many that one
// stands for. When each is picked, all are.
func (s *Sampler) Begin(now time.Time, every int) (stands int) {
	gap := now.Sub(s.last)
	s.last = now
	switch {
	case gap < sampleGap && every > 1:
		s.stride = min(2*s.stride, maxStretch*every)
	case gap > 4*sampleGap:
		s.stride = max(s.stride/2, every)
	}
	return s.stands
}

// room is how many come before the next one that is timed; pass says that so many have come.
func (s *Sampler) room() int  { return max(s.left-1, 0) }
func (s *Sampler) pass(n int) { s.left -= n }

// timeFrame makes a worker work off one frame, and tells how long that took if it is picked.
func (w *worker) timeFrame(now time.Duration, from *Source, x *prefetched) {
	if !w.timed.Pick(w.x.cfg.LatencyEvery) {
		w.frame(now, from, x)
		return
	}
	began := time.Now()
	stands := w.timed.Begin(began, w.x.cfg.LatencyEvery)
	w.frame(now, from, x)
	took := time.Since(began)
	if t := w.ahead.cache.last; t != nil {
		t.took(x.env.Shard, took, stands)
	}
}

// took tells how long a message of a shard took that stands for so many.
func (t *Type) took(shard uint32, took time.Duration, stands int) {
	if t.x.cfg.Latency != nil {
		tellLatency(t, took)
	}
	if t.weighs.Load() && shard < t.shards {
		if h := t.hosts.Find(route.ShardID(shard)).Load(); h != nil {
			h.published.ran.Add(int64(took) * int64(stands))
		}
	}
}

// tellLatency calls the embedder's function.
func tellLatency(t *Type, took time.Duration) {
	_ = t.x.cfg.Callbacks.Call("Latency", func() { t.x.cfg.Latency(t.typ.Name, took) })
}

// timed reports whether somebody wants to know how long messages take.
func timed(x *Exec) bool { return x.cfg.Latency != nil || x.weighs.Load() }

// timeFrame makes a loop take one frame, and tells how long that took if it was for an Inline entity. The others'
// handlers run elsewhere.
func (p *pass) timeFrame(now time.Duration, c *transport.InConn, from *Source, x *prefetched) outcome {
	began := time.Now()
	done := p.frame(now, c, from, x)
	if done == taken {
		p.tellInline(began, x.env.Shard)
	}
	return done
}

// timeHere is here, timed if somebody wants to know and it is picked.
func (p *pass) timeHere(now time.Duration, c *chunk, x *prefetched, times bool) (elsewhere bool) {
	if !times || !p.timed.Pick(p.x.cfg.LatencyEvery) {
		return p.here(now, c, x)
	}
	began := time.Now()
	if elsewhere = p.here(now, c, x); !elsewhere {
		p.tellInline(began, x.env.Shard)
	}
	return elsewhere
}

func (p *pass) tellInline(began time.Time, shard uint32) {
	took := time.Since(began)
	if t := p.ahead.cache.last; t != nil && t.typ.Mode == entity.Inline {
		t.took(shard, took, p.timed.Begin(began, p.x.cfg.LatencyEvery))
	}
}

// timeWork works off a run of a Blocking entity as serve does, and times the picked calls.
func (r *runner) timeWork(h *Host, e *entity.Entity, run run) {
	x := h.x
	for more := true; more && goesOn(h, run); {
		if !r.timed.Pick(x.cfg.LatencyEvery) {
			more = e.Work()
		} else {
			began := time.Now()
			r.timed.Begin(began, x.cfg.LatencyEvery)
			more = e.Work()
			tellLatency(h.t, time.Since(began))
		}
		if more {
			x.Gate.goOn(e)
		}
	}
}
