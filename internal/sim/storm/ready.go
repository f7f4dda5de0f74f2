// What people and programs say of where shards may live: members that drain, regions that are not ready, pauses of the
// balance.

package storm

import (
	"time"

	"github.com/kith-io/kith/internal/sim/check"
	"github.com/kith-io/kith/internal/sim/world"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/shard"
)

// drainNodes makes a member drain, or not any more, and plans the next time: several may drain at once, and all of
// them.
func drainNodes(s *storm) {
	s.w.After(between(s.drains, time.Second, 10*time.Second), func() {
		if s.quiet() {
			return
		}
		defer drainNodes(s)
		if up := s.up(); len(up) > 0 {
			drainOne(s, up[s.drains.IntN(len(up))], s.drains.IntN(3) > 0)
		}
	})
}

// drainOne orders a process to drain, or not any more, when it listens.
func drainOne(s *storm, p *world.Process, on bool) {
	switch {
	case p.Paused() || p.Stuck():
		s.w.After(time.Second, func() { drainOne(s, p, on) })
	case p.Alive:
		on = on && !s.quiet()
		carryOut := func() error { return p.Command(shard.DrainCommand{On: on}) } // fails when it leaves, or is alone
		if on {
			check.Drains(s.check, p, carryOut)
		} else {
			_ = carryOut()
		}
	}
}

// declare makes a region declare that it is not ready for shards, or that it is again, and plans the next time: all may
// be not ready at once, and then shards without a home wait.
func declare(s *storm) {
	if s.ready == nil {
		return
	}
	s.w.After(between(s.ready, 500*time.Millisecond, 8*time.Second), func() {
		if s.quiet() {
			return
		}
		defer declare(s)
		if up := s.up(); len(up) > 0 {
			p := up[s.ready.IntN(len(up))]
			if len(p.Regions) == 0 {
				return // it has not come so far
			}
			r := p.Regions[s.ready.IntN(len(p.Regions))]
			declareOne(s, r, s.ready.IntN(3) == 0)
		}
	})
}

// declareOne declares whether a region is ready, when its process listens.
func declareOne(s *storm, r *world.Region, ready bool) {
	switch p := r.Process; {
	case p.Paused() || p.Stuck():
		s.w.After(time.Second, func() { declareOne(s, r, ready) })
	case p.Alive:
		ready = ready || s.quiet()
		check.Declares(s.check, p, r.ID, ready, func() error {
			return p.Command(shard.ReadyCommand{Type: r.ID, Ready: ready})
		})
	}
}

// holdBalance makes a process pause the balance of the whole cluster for a while, and plans the next time.
func holdBalance(s *storm) {
	if s.holds == nil {
		return
	}
	on := false
	var turn func()
	turn = func() {
		on = !on && !s.quiet()
		if up := s.up(); len(up) > 0 {
			c := membership.SetMetadataCommand{Key: shard.PauseKey}
			if on {
				c.Value = []byte("a storm")
			}
			p := up[s.holds.IntN(len(up))]
			p.Live(func() { p.Do(c) })
		}
		if !s.quiet() {
			s.w.After(between(s.holds, time.Second, 20*time.Second), turn)
		}
	}
	s.w.After(between(s.holds, time.Second, 20*time.Second), turn)
}

// undrain takes all drains back, all words of regions that are not ready, and the pause of the balance: what follows
// demands that every shard has a home, and that members are given something. A node that is given nothing is none for
// instances (found by storm 11300000905).
func undrain(s *storm) {
	if up := s.up(); s.holds != nil && len(up) > 0 {
		up[0].Live(func() { up[0].Do(membership.SetMetadataCommand{Key: shard.PauseKey}) })
	}
	for _, p := range s.w.Running() {
		if s.drains != nil {
			drainOne(s, p, false)
		}
		for _, r := range p.Regions {
			if s.ready != nil {
				declareOne(s, r, true)
			}
		}
	}
}
