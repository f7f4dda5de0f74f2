// Measure: very many timers on simulated nodes that stand still again and again.

package storm

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/sim/check"
	"github.com/kith-io/kith/internal/sim/world"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/sim/setup"
)

// TimersMeasured is what became of very many simulated timers.
type TimersMeasured struct {
	Fired, Early int
	Late         entity.Lateness
	Stalls       int
	Stalled      time.Duration // all of them together
	Virtual      time.Duration
	Violations   []string
}

const (
	measureNodes    = 3
	measureEntities = 3000 // of each mode
	measureEvery    = 10 * time.Millisecond
)

// measured is a run of MeasureTimers.
type measured struct {
	w      *world.World
	rng    *rand.Rand
	timers timers
	most   int
	TimersMeasured
}

// MeasureTimers makes the entities of three simulated nodes, in the three modes, set timers of up to four seconds until
// so many have come, while one node after the other stands still for up to six seconds. Each timer that comes sets one.
func MeasureTimers(most int, seed uint64) TimersMeasured {
	m := &measured{rng: rand.New(rand.NewPCG(seed, purposeLoad)), most: most}
	w, c := check.NewWorld(measureNodes, seed, setup.Config{Drift: 500})
	m.w = w
	defer w.End()
	var types []*world.EntityType
	for mode := entity.Blocking; mode <= entity.Inline; mode++ {
		t := &world.EntityType{Type: entity.Type{Name: mode.String(), Mode: mode, Shards: 16}.WithDefaults()}
		t.New = func(string, route.Fence) entity.Handler { return &timed{m: m, p: w.Acting} }
		types = append(types, t)
	}
	if why := w.Form(types...); why != "" {
		return TimersMeasured{Violations: []string{why}}
	}
	began := w.Now
	m.feed()
	m.stall()
	for m.timers.fired < most && c.Total == 0 && w.Now-began < 24*time.Hour {
		w.Advance(100 * time.Millisecond)
	}
	m.Fired, m.Early, m.Late = m.timers.fired, m.timers.check.Early, m.timers.late
	m.Virtual, m.Violations = w.Now-began, c.Broken()
	return m.TimersMeasured
}

// feed sends messages, which set timers too: instances may end, and their timers with them.
func (m *measured) feed() {
	for _, p := range m.w.Running() {
		if p.Paused() {
			continue
		}
		for _, r := range p.Regions {
			_, _ = r.Send(fmt.Sprint("e", m.rng.IntN(measureEntities)), []byte{probeMark}, 0) // one lost is no matter here
		}
	}
	m.w.After(measureEvery, m.feed)
}

// stall makes some process stand still.
func (m *measured) stall() {
	list := m.w.Running()
	if p := list[m.rng.IntN(len(list))]; !p.Paused() {
		d := between(m.rng, 20*time.Millisecond, 6*time.Second)
		m.Stalls++
		m.Stalled += d
		p.Pause(d)
	}
	m.w.After(between(m.rng, 200*time.Millisecond, 3*time.Second), m.stall)
}

// timed is an entity of theirs.
type timed struct {
	m   *measured
	p   *world.Process
	own ownTimers
}

// Receive implements entity.Handler.
func (h *timed) Receive(c *entity.Context, payload []byte) error {
	m := h.m
	if _, timer := c.Timer(); timer {
		h.own.came(&m.timers, h.p, c, payload)
	}
	name := []string{"", "", "", "x"}[m.rng.IntN(4)]
	h.own.set(&m.timers, h.p, c, name, time.Duration(m.rng.Int64N(int64(4*time.Second))))
	return nil
}

// Stop implements entity.Handler.
func (h *timed) Stop(*entity.Context) {}
