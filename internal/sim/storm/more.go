// More faults of a storm: partial and flapping partitions, masses that crash and restart, rolling replacement, clocks.

package storm

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/kith-io/kith/internal/sim/world"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/shard"
)

// partial cuts one pair of hosts, or a few, while both sides reach all the others.
func (s *storm) partial() {
	pairs := 1 + s.rng.IntN(len(s.w.Hosts)-1)
	d := s.between(500*time.Millisecond, 25*time.Second)
	for range pairs {
		a, b := s.rng.IntN(len(s.w.Hosts)), s.rng.IntN(len(s.w.Hosts))
		s.note("cut n%d-n%d for %v", a+1, b+1, d)
		s.setCuts(func(x, y int) bool { return x != y && (x == a && y == b || x == b && y == a) }, d)
	}
}

// flipFlop opens and closes one partition again and again: too short to be a partition, too long to be nothing.
func (s *storm) flipFlop() {
	side := s.sides()
	on, off := s.between(200*time.Millisecond, 6*time.Second), s.between(200*time.Millisecond, 6*time.Second)
	times := 2 + s.rng.IntN(6)
	s.note("flip-flop %v, %v cut and %v open, %d times", side, on, off, times)
	var flip func()
	flip = func() {
		if times--; times < 0 || s.quiet() {
			return
		}
		s.setCuts(func(a, b int) bool { return side[a] != side[b] }, on)
		s.w.After(on+off, flip)
	}
	flip()
}

// sides draws a side for every host.
func (s *storm) sides() []bool {
	side := make([]bool, len(s.w.Hosts))
	for i := range side {
		side[i] = s.rng.IntN(2) == 0
	}
	return side
}

func (s *storm) stickOne() {
	if p := s.anyone(); p != nil {
		p.Stick(s.between(100*time.Millisecond, 8*time.Second))
	}
}

// mass kills several processes at one moment, or takes their hosts down, and returns them.
func (s *storm) mass() (fell []*world.Process) {
	list := s.victims()
	if len(list) == 0 {
		return nil
	}
	s.rng.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	kill := s.rng.IntN(2) == 0
	for _, p := range list[:1+s.rng.IntN(len(list)-spareNodes)] {
		p.Crash(kill)
		fell = append(fell, p)
	}
	return fell
}

func (s *storm) massCrash() {
	for _, p := range s.mass() {
		s.laterDown(p, s.between(0, 12*time.Second))
		if s.rng.IntN(2) == 0 {
			s.w.After(s.between(5*time.Second, 25*time.Second), func() { s.restartHost(p.Index) })
		}
	}
}

// massRestart is a power cut in the rack: all of them are back at their addresses at one moment.
func (s *storm) massRestart() {
	back := s.between(0, 4*time.Second)
	for _, p := range s.mass() {
		s.w.After(back, func() { s.restartHost(p.Index) })
	}
}

// How long a rolling replacement waits for one node to go and to come back before it turns to the next.
const (
	rollingLeave = 45 * time.Second
	rollingJoin  = 30 * time.Second
	rollingLook  = 500 * time.Millisecond
)

// rollingReplacement is a deploy: every host in turn leaves, starts a new process and is up before the next one goes.
func (s *storm) rollingReplacement() {
	if s.rolling {
		return
	}
	s.rolling = true
	s.note("rolling replacement")
	s.roll(s.rng.Perm(len(s.w.Hosts)))
}

func (s *storm) roll(order []int) {
	if len(order) == 0 || s.quiet() {
		s.rolling = false
		return
	}
	next := func() { s.roll(order[1:]) }
	p := s.w.Hosts[order[0]].Process
	fit := false
	for _, v := range s.victims() {
		fit = fit || v == p
	}
	if !fit {
		next()
		return
	}
	s.note("n%d leaves for its successor", p.Index+1)
	s.w.Leave(p)
	s.await(rollingLeave, func() bool { return !p.Alive }, func() {
		s.restartHost(p.Index)
		s.await(rollingJoin, func() bool { return s.isUp(p.Index) }, next)
	})
}

// await looks now and then until something holds or the time is over, and then goes on.
func (s *storm) await(d time.Duration, holds func() bool, then func()) {
	end := s.w.Now + d
	var look func()
	look = func() {
		switch {
		case s.quiet():
		case holds() || s.w.Now >= end:
			then()
		default:
			s.w.After(rollingLook, look)
		}
	}
	look()
}

// isUp reports whether the process of a host runs and holds itself for Up.
func (s *storm) isUp(host int) bool {
	p := s.w.Hosts[host].Process
	if p == nil || !p.Alive {
		return false
	}
	m, ok := p.View.SelfMember()
	return ok && m.Status == membership.Up
}

// clockStep sets a host's wall clock forward or back. Only the birth of a cluster takes anything from it.
func (s *storm) clockStep() {
	h := s.rng.IntN(len(s.w.Hosts))
	d := s.between(-2*time.Hour, 2*time.Hour)
	s.w.Hosts[h].Wall += d
	s.w.Fault(h, fmt.Sprintf("the wall clock jumps by %v", d))
}

// drawMoves draws how often shards move for balance, deadlines of moves that are short, so that owners hand over, and
// bounds that let some of it be refused, so that the shard stays.
func drawMoves(cfg *shard.Config, rng *rand.Rand) {
	if rng.IntN(2) == 0 {
		cfg.RebalanceInterval = time.Duration(2000+rng.IntN(13_001)) * time.Millisecond
	}
	if rng.IntN(3) > 0 {
		cfg.DrainTime = time.Duration(1+rng.IntN(300)) * time.Millisecond
	}
	if rng.IntN(4) == 0 {
		cfg.MaxHandOver = 1 << (6 + rng.IntN(8))
	}
}
