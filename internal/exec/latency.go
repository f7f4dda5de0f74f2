// Latency: one of so many messages is timed while it is worked off, told to Config.Latency, and taken for so many of
// its shard where shards are weighed. Whoever runs handlers looks once a batch whether anybody wants to know; who does
// not pays for nothing else.

package exec

import (
	"math/rand/v2"
	"time"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/transport"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

// Sampler picks one of so many on average, at random distances, so that what comes in turns is picked in turns too. It
// belongs to one goroutine, or to a lock. The zero value picks the first.
type Sampler struct{ left int }

// Pick reports whether this one is timed; every is at least one.
func (s *Sampler) Pick(every int) bool {
	if s.left--; s.left > 0 {
		return false
	}
	if s.left = every; every > 1 {
		s.left = 1 + rand.IntN(2*every-1)
	}
	return true
}

// room is how many come before the next one that is timed; pass says that so many have come.
func (s *Sampler) room() int  { return max(s.left-1, 0) }
func (s *Sampler) pass(n int) { s.left -= n }

// timeFrame has a worker work off one frame, and tells how long that took if it is picked.
func (w *worker) timeFrame(now time.Duration, from *Source, x *foreseen) {
	if !w.timed.Pick(w.x.cfg.LatencyEvery) {
		w.frame(now, from, x)
		return
	}
	began := time.Now()
	w.frame(now, from, x)
	took := time.Since(began)
	if t := w.ahead.cache.last; t != nil {
		t.took(x.env.Shard, took)
	}
}

// took tells how long a message of a shard took that stands for so many.
func (t *Type) took(shard uint32, took time.Duration) {
	if t.x.cfg.Latency != nil {
		t.x.cfg.Latency(t.typ.Name, took)
	}
	if t.weighs.Load() && shard < t.shards {
		if h := t.hosts.Find(route.ShardID(shard)).Load(); h != nil {
			h.shown.ran.Add(int64(took) * int64(t.x.cfg.LatencyEvery))
		}
	}
}

// timeRead is read in pieces: a picked envelope of an Inline type is read by itself, and timed. The others' handlers
// run elsewhere.
func (p *pass) timeRead(now time.Duration, c *transport.InConn, from *Source, frames []byte) {
	begin := 0
	for at := 0; at < len(frames); {
		n := wire.SizeOf(frames[at:])
		f := frames[at : at+n : at+n]
		if wire.KindOf(f) == wire.KindEnvelope && p.timed.Pick(p.x.cfg.LatencyEvery) && p.isInline(f) {
			_, shard, _ := wire.AddressOf(f)
			if begin < at {
				p.read(now, c, from, frames[begin:at:at])
			}
			began := time.Now()
			p.read(now, c, from, f)
			p.tellInline(began, shard)
			begin = at + n
		}
		at += n
	}
	if begin < len(frames) {
		p.read(now, c, from, frames[begin:])
	}
}

// timeHere is here, timed if it is picked.
func (p *pass) timeHere(now time.Duration, f []byte) {
	if !p.timed.Pick(p.x.cfg.LatencyEvery) {
		p.here(now, f)
		return
	}
	_, shard, _ := wire.AddressOf(f)
	began := time.Now()
	p.here(now, f)
	p.tellInline(began, shard)
}

// isInline reports whether an envelope is one for an Inline type.
func (p *pass) isInline(f []byte) bool {
	var env wire.Envelope
	if wire.ParseEnvelope(f, &env) != nil {
		return false
	}
	t := p.ahead.cache.typeOf(p.x, &env)
	return t != nil && t.typ.Mode == entity.Inline
}

func (p *pass) tellInline(began time.Time, shard uint32) {
	took := time.Since(began)
	if t := p.ahead.cache.last; t != nil {
		t.took(shard, took)
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
			more = e.Work()
			x.cfg.Latency(h.t.typ.Name, time.Since(began))
		}
		if more {
			x.Gate.goOn(e)
		}
	}
}
