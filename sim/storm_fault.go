// The faults of a storm, drawn at random: cuts, pauses, stuck control loops, crashes, restarts, leaves, bad weather.

package sim

import (
	"fmt"
	"time"

	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
)

// startHost starts a process at a host where none runs. Without records the first host comes first in the list of
// contact points only while there is no cluster: a first seed that is alone after a restart would form a second one, as
// documented.
func (s *storm) startHost(i int) {
	w := s.w
	if p := w.hosts[i].proc; p != nil && p.alive {
		return
	}
	var order []int
	for k := range w.hosts {
		order = append(order, k)
	}
	if i == 0 && s.formed() && !w.cfg.Records {
		order = s.firstSeed(order)
	}
	if p := w.hosts[i].proc; p != nil {
		s.check.excuse(p.id)
	}
	w.start(i, w.seeds(order))
}

// formed reports whether some running process is in a cluster.
func (s *storm) formed() bool {
	for _, p := range s.w.running() {
		if p.view != nil && p.view.ClusterID != 0 {
			return true
		}
	}
	return false
}

// victims returns the running processes that hold themselves for Up, and of which one may be taken down.
func (s *storm) victims() []*proc {
	if up := s.up(); len(up) > spareNodes {
		return up
	}
	return nil
}

func (s *storm) victim() *proc {
	list := s.victims()
	if len(list) == 0 {
		return nil
	}
	return list[s.rng.IntN(len(list))]
}

// anyone draws any running process.
func (s *storm) anyone() *proc {
	list := s.w.running()
	if len(list) == 0 {
		return nil
	}
	return list[s.rng.IntN(len(list))]
}

// faultTick does one thing to the cluster and plans the next.
func (s *storm) faultTick() {
	if s.quiet() {
		return
	}
	s.w.after(s.between(200*time.Millisecond, 6*time.Second), s.faultTick)
	if s.w.now < s.truce {
		return
	}
	s.faults++
	s.mix.next(s.rng.IntN).do(s)
}

// quiet reports whether the random faults are over: in a trial, and in the calm.
func (s *storm) quiet() bool { return s.ending || s.still }

func (s *storm) note(format string, args ...any) {
	s.w.fault(0, fmt.Sprintf(format, args...))
}

// partition cuts the hosts in two for a while.
func (s *storm) partition() {
	side := s.sides()
	d := s.between(500*time.Millisecond, 25*time.Second)
	s.note("partition %v for %v", side, d)
	s.setCuts(func(a, b int) bool { return side[a] != side[b] }, d)
}

// oneWay cuts one direction between two hosts.
func (s *storm) oneWay() {
	from, to := s.rng.IntN(len(s.w.hosts)), s.rng.IntN(len(s.w.hosts))
	d := s.between(500*time.Millisecond, 20*time.Second)
	s.note("cut n%d->n%d for %v", from+1, to+1, d)
	s.setCuts(func(a, b int) bool { return a == from && b == to && a != b }, d)
}

func (s *storm) setCuts(cut func(a, b int) bool, d time.Duration) {
	net := s.w.net
	set := func(v bool) {
		for a := range net.cuts {
			for b := range net.cuts[a] {
				if cut(a, b) {
					net.cuts[a][b] = v
				}
			}
		}
		s.check.core.links()
	}
	set(true)
	s.w.after(d, func() {
		if !s.still {
			set(false)
		}
	})
}

// slow makes one way between two hosts slow.
func (s *storm) slow() {
	net := s.w.net
	from, to := s.rng.IntN(len(net.slow)), s.rng.IntN(len(net.slow))
	net.slow[from][to] = s.between(10*time.Millisecond, 700*time.Millisecond)
	if !good(net) {
		s.check.core.spoil()
	}
	s.note("slow n%d->n%d by %v", from+1, to+1, net.slow[from][to])
	s.w.after(s.between(time.Second, 20*time.Second), func() { net.slow[from][to] = 0 })
}

func (s *storm) pauseOne() {
	if p := s.anyone(); p != nil {
		d := s.between(100*time.Millisecond, 15*time.Second)
		if s.seed%8 == 5 {
			p.sleep(d) // in these storms the clock of the process stands still, too
			return
		}
		p.pause(d)
	}
}

// down is the operator's word on a member, given to a node.
func (s *storm) down(on *proc, id peer.ID) {
	w := s.w
	s.check.excuse(id)
	w.fault(on.idx, "operator downs "+w.name(id))
	on.live(func() { on.do(membership.DownCommand{ID: id}) })
}

// laterDown lets an operator down a member from some running node, until one takes it. With a resolver there is none.
func (s *storm) laterDown(p *proc, d time.Duration) {
	if s.resolves() {
		return
	}
	s.w.after(d, func() {
		if s.quiet() {
			return
		}
		for _, on := range s.w.running() {
			if _, ok := on.view.Member(p.id); ok && on != p && !on.paused() && !on.doomed {
				s.down(on, p.id)
				return
			}
		}
	})
}

func (s *storm) crashAndDown() {
	p := s.victim()
	if p == nil {
		return
	}
	p.crash(s.rng.IntN(2) == 0)
	s.laterDown(p, s.between(0, 12*time.Second))
	if s.rng.IntN(2) == 0 {
		s.w.after(s.between(3*time.Second, 25*time.Second), func() { s.restartHost(p.idx) })
	}
}

func (s *storm) crashAndRestart() {
	p := s.victim()
	if p == nil {
		return
	}
	p.crash(s.rng.IntN(2) == 0)
	s.w.after(s.between(0, 5*time.Second), func() { s.restartHost(p.idx) })
}

func (s *storm) restartHost(i int) {
	if !s.quiet() {
		s.startHost(i)
	}
}

func (s *storm) leaveOne() {
	p := s.victim()
	if p == nil {
		return
	}
	s.note("n%d leaves", p.idx+1)
	s.w.leave(p)
	if s.rng.IntN(2) == 0 {
		s.w.after(s.between(time.Second, 20*time.Second), func() { s.restartHost(p.idx) })
	}
}

// weather makes the network better or worse.
func (s *storm) weather() {
	net := s.w.net
	loss, raw := net.Loss, net.Raw
	if s.rng.IntN(2) == 0 {
		net.Loss = float64(s.rng.IntN(201)) / 1000
	} else {
		net.Raw = s.raw()
	}
	s.note("weather: loss %v, raw %v", net.Loss, net.Raw)
	if !good(net) {
		s.check.core.spoil()
	}
	s.w.after(s.between(time.Second, 15*time.Second), func() {
		if !s.quiet() {
			net.Loss, net.Raw = loss, raw
		}
	})
}

// breakConnections resets connections at random, without any cut.
func (s *storm) breakConnections() {
	s.note("connections break")
	for _, p := range s.w.running() {
		p.breakSome(func() bool { return s.rng.IntN(3) == 0 }, "reset in between")
	}
}

// stopAndDown stops a process as a debugger does, downs it, and lets it go on when others may own what it owned: it
// must find out, and the store must refuse what it writes until then.
func (s *storm) stopAndDown() {
	p := s.victim()
	if p == nil {
		return
	}
	p.doomed = true
	p.pause(s.between(3*time.Second, s.w.takeover()+20*time.Second))
	s.laterDown(p, s.between(500*time.Millisecond, 3*time.Second))
}
