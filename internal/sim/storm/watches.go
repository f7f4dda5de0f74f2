// Watches in a storm: entities of all modes watch one another, through whatever befalls them (SHD-12).

package storm

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/sim/check"
	"github.com/kith-io/kith/internal/sim/world"
	"github.com/kith-io/kith/route"
)

// toldBound is how long after a watch came, or its entity ended, it is reported in a cluster that is well, beyond the
// takeover time.
const toldBound = time.Minute

// watches is what a storm with watches draws; nil in others.
type watches struct {
	s     *storm
	rng   *rand.Rand
	check *check.Watches
}

// drawWatches makes the entities of all types watch one another. It comes when all else of the types is drawn.
func drawWatches(s *storm) {
	rng, ok := s.draw(OffWatches, 3)
	if !ok {
		return
	}
	x := &watches{s: s, rng: rng, check: check.NewWatches(s.check)}
	s.watches = x
	for _, t := range s.types {
		open, key, resumes := t.Open, check.WatchKey{Type: route.TypeOf(t.Name)}, t.Restart == entity.RestartResume
		t.Open = func(c *entity.Context) (entity.Handler, error) {
			h, err := open(c)
			if err != nil {
				return nil, err
			}
			key := key
			key.ID = c.ID
			w := watchingEntity{Handler: h, x: x, p: s.w.Acting, resumes: resumes,
				of: x.check.Begins(s.w.Acting, key, c.Shard, c.Fence)}
			if state, is := h.(entity.Stateful); is {
				return &watchingStateful{w, state}, nil
			}
			return &w, nil
		}
	}
}

// watchingEntity is a handler of an entity that watches, and is watched.
type watchingEntity struct {
	entity.Handler
	x       *watches
	p       *world.Process
	of      *check.Instance
	resumes bool // a panic does not end it
}

// Receive implements entity.Handler.
func (h *watchingEntity) Receive(c *entity.Context, payload []byte) error {
	defer func() {
		if v := recover(); v != nil {
			if !h.resumes {
				h.of.Ends(entity.EndedPanicked)
			}
			panic(v)
		}
	}()
	if end, ok := c.Ended(); ok {
		if _, timer := c.Timer(); timer || len(payload) > 0 || c.Asked() {
			h.x.s.check.Violate(h.p, "watches", "what tells %s of an end looks like another message", c.ID)
		}
		h.of.Told(end)
	} else {
		err := h.Handler.Receive(c, payload)
		if c.StopReason() != entity.NotStopping {
			return err
		}
		h.play(c)
		return err
	}
	h.play(c)
	return nil
}

// play watches somebody now and then, or takes that back.
func (h *watchingEntity) play(c *entity.Context) {
	x := h.x
	if x.rng.IntN(3) > 0 {
		return
	}
	t := x.s.types[x.rng.IntN(len(x.s.types))]
	of := check.WatchKey{Type: route.TypeOf(t.Name), ID: fmt.Sprintf("e%d", x.rng.IntN(loadIDs))}
	if x.rng.IntN(8) == 0 {
		c.Unwatch(t.Name, of.ID)
		h.of.Unwatches(of)
	} else if c.Watch(t.Name, of.ID) == nil {
		h.of.Watches(of)
	}
}

// Stop implements entity.Handler.
func (h *watchingEntity) Stop(c *entity.Context) {
	why := entity.EndedPassivated
	switch c.StopReason() {
	case entity.StopMoved:
		why = entity.EndedMoved
	case entity.StopLeaving:
		why = entity.EndedLeft
	}
	h.Handler.Stop(c)
	h.of.Ends(why)
}

// watchingStateful is one with a state that moves with it.
type watchingStateful struct {
	watchingEntity
	state entity.Stateful
}

// HandOver implements entity.Stateful.
func (h *watchingStateful) HandOver(c *entity.Context) ([]byte, error) { return h.state.HandOver(c) }

// TakeUp implements entity.Stateful.
func (h *watchingStateful) TakeUp(c *entity.Context, state []byte) error {
	err := h.state.TakeUp(c, state)
	if err != nil {
		h.of.Unmade()
	}
	return err
}

// demand demands that every watch was reported that had to be.
func (x *watches) demand() {
	if x == nil {
		return
	}
	s := x.s
	bound := s.w.Takeover() + toldBound
	mayLive := func(t route.TypeID) bool { return s.hostable(t, s.w.Running()) }
	adrift := func() (n int) {
		for _, t := range s.types { // a watch on an entity that may live nowhere waits
			for _, p := range s.w.Running() {
				if r := p.Region(route.TypeOf(t.Name)); r != nil && (r.Refused != nil || !mayLive(r.ID)) {
					return 0
				}
			}
		}
		return x.check.Adrift()
	}
	if s.w.Until(bound, func() bool { by, _, _ := x.check.Untold(mayLive); return by == nil && adrift() == 0 }) {
		return
	}
	if by, of, since := x.check.Untold(mayLive); by != nil {
		s.check.Violate(nil, "watches", "%v, which watches %s/%s since %v, is not told that it has ended or was none%s", by,
			s.w.TypeName(of.Type), of.ID, since, x.check.History(of))
	}
	if n := adrift(); n != 0 {
		s.check.Violate(nil, "watches", "%d watches are adrift", n)
	}
}
