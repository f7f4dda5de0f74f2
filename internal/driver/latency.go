// Latency: one of so many calls of a handler, and of asks, is timed and told to Config.Latency. Whoever runs handlers
// looks once a batch whether anybody wants to know; who does not pays for nothing else.

package driver

import (
	"time"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/transport"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/stats"
	"github.com/kith-io/kith/wire"
)

// Measure says what a duration given to Config.Latency is (package stats).
type Measure = stats.Measure

// The measures.
const (
	HandlerTime = stats.HandlerTime
	AskTime     = stats.AskTime
)

// DefaultLatencyEvery and MaxLatencyEvery bound Config.LatencyEvery.
const (
	DefaultLatencyEvery = 64
	MaxLatencyEvery     = 1 << 20
)

// sampler picks one of every so many. It belongs to one goroutine, or to a lock.
type sampler struct{ left int }

// pick reports whether this one is timed; every is at least one.
func (s *sampler) pick(every int) bool {
	if s.left--; s.left > 0 {
		return false
	}
	s.left = every
	return true
}

// room is how many come before the next one that is timed; pass says that so many have come.
func (s *sampler) room() int  { return max(s.left-1, 0) }
func (s *sampler) pass(n int) { s.left -= n }

// timeFrame has a worker work off one frame, and tells how long that took if it is picked.
func (w *worker) timeFrame(now time.Duration, from *remote, x *foreseen) {
	if !w.timed.pick(w.d.cfg.LatencyEvery) {
		w.frame(now, from, x)
		return
	}
	began := time.Now()
	w.frame(now, from, x)
	took := time.Since(began)
	if r := w.ahead.cache.last; r != nil {
		w.d.cfg.Latency(HandlerTime, r.typ.Name, took)
	}
}

// timeRead is read in pieces: a picked envelope of an Inline type is read by itself, and timed. The others' handlers
// run elsewhere.
func (p *pass) timeRead(now time.Duration, c *transport.InConn, from *remote, frames []byte) {
	begin := 0
	for at := 0; at < len(frames); {
		n := wire.SizeOf(frames[at:])
		f := frames[at : at+n : at+n]
		if wire.KindOf(f) == wire.KindEnvelope && p.timed.pick(p.d.cfg.LatencyEvery) && p.isInline(f) {
			if begin < at {
				p.read(now, c, from, frames[begin:at:at])
			}
			began := time.Now()
			p.read(now, c, from, f)
			p.tellInline(began)
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
	if !p.timed.pick(p.d.cfg.LatencyEvery) {
		p.here(now, f)
		return
	}
	began := time.Now()
	p.here(now, f)
	p.tellInline(began)
}

// isInline reports whether an envelope is one for an Inline type.
func (p *pass) isInline(f []byte) bool {
	var env wire.Envelope
	if wire.ParseEnvelope(f, &env) != nil {
		return false
	}
	r := p.ahead.cache.region(p.d, &env)
	return r != nil && r.typ.Mode == entity.Inline
}

func (p *pass) tellInline(began time.Time) {
	took := time.Since(began)
	if r := p.ahead.cache.last; r != nil {
		p.d.cfg.Latency(HandlerTime, r.typ.Name, took)
	}
}

// timeWork works off a run of a Blocking entity as serve does, and times the picked calls.
func (r *runner) timeWork(h *host, e *entity.Entity) {
	d := h.r.d
	for more := true; more && !h.abandoned.Load(); {
		if !r.timed.pick(d.cfg.LatencyEvery) {
			more = e.Work()
		} else {
			began := time.Now()
			more = e.Work()
			d.cfg.Latency(HandlerTime, h.r.typ.Name, time.Since(began))
		}
		if more {
			d.goOn(e)
		}
	}
}

// askSampling is one of how many asks is timed, zero when nobody wants to know.
func (c Config) askSampling() int {
	if c.Latency == nil {
		return 0
	}
	return c.LatencyEvery
}

// tellTime tells how long an ask that is timed took, when it was answered. Whoever settles it calls it.
func (w *askWaiter) tellTime(reason route.Reason) {
	if reason == route.OK {
		w.region.d.cfg.Latency(AskTime, w.region.typ.Name, time.Since(w.began))
	}
}
