// The faults of a storm, drawn at random: cuts, pauses, stuck control loops, crashes, restarts, leaves, bad weather.

package storm

import (
	"fmt"
	"slices"
	"time"

	"github.com/kith-io/kith/internal/sim/check"
	"github.com/kith-io/kith/internal/sim/world"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
)

// startHost starts a process at a host where none runs. Without records the first host comes first in the list of
// contact points only while there is no cluster: a first seed that is alone after a restart would form a second one, as
// documented.
func (s *storm) startHost(i int) {
	w := s.w
	if p := w.Hosts[i].Process; p != nil && p.Alive {
		return
	}
	var order []int
	for k := range w.Hosts {
		order = append(order, k)
	}
	if i == 0 && s.formed() && !w.Config.Records {
		order = s.firstSeed(order)
	}
	if p := w.Hosts[i].Process; p != nil {
		s.check.Excuse(p.ID)
	}
	w.Start(i, w.Seeds(order))
}

// formed reports whether some running process is in a cluster.
func (s *storm) formed() bool {
	for _, p := range s.w.Running() {
		if p.View != nil && p.View.ClusterID != 0 {
			return true
		}
	}
	return false
}

// up returns the running processes that hold themselves for Up and are to stay.
func (s *storm) up() []*world.Process {
	var up []*world.Process
	for _, p := range s.w.Running() {
		if m, ok := p.View.SelfMember(); ok && m.Status == membership.Up && !p.Leaving && !p.Doomed {
			up = append(up, p)
		}
	}
	return up
}

// victims returns the running processes that hold themselves for Up, and of which one may be taken down.
func (s *storm) victims() []*world.Process {
	if up := s.up(); len(up) > spareNodes {
		return up
	}
	return nil
}

func (s *storm) victim() *world.Process {
	list := s.victims()
	if len(list) == 0 {
		return nil
	}
	return list[s.rng.IntN(len(list))]
}

// anyone draws any running process.
func (s *storm) anyone() *world.Process {
	list := s.w.Running()
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
	s.w.After(s.between(200*time.Millisecond, 6*time.Second), s.faultTick)
	if s.w.Now < s.truce {
		return
	}
	s.faults++
	s.mix.next(s.rng.IntN).do(s)
}

// quiet reports whether the random faults are over: in a trial, and in the calm.
func (s *storm) quiet() bool { return s.ending || s.still }

func (s *storm) note(format string, args ...any) {
	s.w.Fault(0, fmt.Sprintf(format, args...))
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
	from, to := s.rng.IntN(len(s.w.Hosts)), s.rng.IntN(len(s.w.Hosts))
	d := s.between(500*time.Millisecond, 20*time.Second)
	s.note("cut n%d->n%d for %v", from+1, to+1, d)
	s.setCuts(func(a, b int) bool { return a == from && b == to && a != b }, d)
}

func (s *storm) setCuts(cut func(a, b int) bool, d time.Duration) {
	net := s.w.Net
	set := func(v bool) {
		for a := range net.Cuts {
			for b := range net.Cuts[a] {
				if cut(a, b) {
					net.Cuts[a][b] = v
				}
			}
		}
		s.check.Core.Links()
	}
	set(true)
	s.w.After(d, func() {
		if !s.still {
			set(false)
		}
	})
}

// slow makes one way between two hosts slow.
func (s *storm) slow() {
	net := s.w.Net
	from, to := s.rng.IntN(len(net.Slow)), s.rng.IntN(len(net.Slow))
	net.Slow[from][to] = s.between(10*time.Millisecond, 700*time.Millisecond)
	if !check.Good(net) {
		s.check.Core.Spoil()
	}
	s.note("slow n%d->n%d by %v", from+1, to+1, net.Slow[from][to])
	s.w.After(s.between(time.Second, 20*time.Second), func() { net.Slow[from][to] = 0 })
}

func (s *storm) pauseOne() {
	if p := s.anyone(); p != nil {
		d := s.between(100*time.Millisecond, 15*time.Second)
		if s.seed%8 == 5 {
			p.Sleep(d) // in these storms the clock of the process stands still, too
			return
		}
		p.Pause(d)
	}
}

// down is the operator's word on a member, given to a node.
func (s *storm) down(on *world.Process, id peer.ID) {
	w := s.w
	s.check.Excuse(id)
	w.Fault(on.Index, "operator downs "+w.Name(id))
	on.Live(func() { on.Do(membership.DownCommand{ID: id}) })
}

// outcasts returns the processes that were downed by an order, run, and may not know it; without a resolver also those
// with a tenure that others have proven over (storm 3000720).
func outcasts(c *check.Checker, running []*world.Process) (ids peer.Set) {
	for _, p := range running {
		over := !p.World.Resolves() && p.World.Leases.Tenures.Over(p.ID)
		if (p.Doomed || over) && c.Lost(p.ID) {
			ids.Add(p.ID)
		}
	}
	return ids
}

// astray reports whether a process is on the side of such a one, which it may have joined: others have lost that one,
// and do not know this process, nor it them. An operator gives no order there, until that side has ended: one that
// downs the dead on both sides makes two owners of each shard by its own hand. Found by storm 1127004558.
func astray(c *check.Checker, p *world.Process) bool {
	untold := outcasts(c, p.World.Running())
	return apartWith(p, func(q *world.Process) bool { return holdsAny(q, untold) || letInByEnded(c, q) })
}

// apartWith reports whether, without a resolver, a process is on a side, while one runs that is not, and neither of the
// two lists the other.
func apartWith(p *world.Process, side func(q *world.Process) bool) bool {
	return !p.World.Resolves() && p.View != nil && side(p) &&
		slices.ContainsFunc(p.World.Running(), func(q *world.Process) bool {
			return !q.Doomed && q.View != nil && !side(q) && strangers(p, q)
		})
}

// letInByEnded reports whether a process is no member in office yet, and lists one that has ended when others had
// proven its tenure over. It heard of that, and is gone; nobody tells those that it had let in. Found by storm
// 9338121639.
func letInByEnded(c *check.Checker, p *world.Process) bool {
	if self, ok := p.View.SelfMember(); !ok || self.Status.Working() {
		return false
	}
	return slices.ContainsFunc(p.View.Members, func(m membership.Member) bool {
		q := p.World.ProcessOf(m.ID)
		return q != nil && !q.Alive && p.World.Leases.Tenures.Over(m.ID) && c.Lost(m.ID)
	})
}

// strangers reports whether neither of two processes lists the other one.
func strangers(p, q *world.Process) bool {
	_, known := p.View.Member(q.ID)
	_, knows := q.View.Member(p.ID)
	return !known && !knows
}

// holdsAny reports whether a process has one of these for a member that is not Down.
func holdsAny(p *world.Process, ids peer.Set) bool {
	return p.View != nil && slices.ContainsFunc(ids, func(id peer.ID) bool {
		m, is := p.View.Member(id)
		return is && m.Status != membership.Down
	})
}

// laterDown lets an operator down a member from some running node, until one takes it. With a resolver there is none.
func (s *storm) laterDown(p *world.Process, d time.Duration) {
	if s.resolves() {
		return
	}
	s.w.After(d, func() {
		if s.quiet() {
			return
		}
		for _, on := range s.w.Running() {
			if _, ok := on.View.Member(p.ID); ok && on != p && !on.Paused() && !on.Doomed && !astray(s.check, on) {
				s.down(on, p.ID)
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
	p.Crash(s.rng.IntN(2) == 0)
	s.laterDown(p, s.between(0, 12*time.Second))
	if s.rng.IntN(2) == 0 {
		s.w.After(s.between(3*time.Second, 25*time.Second), func() { s.restartHost(p.Index) })
	}
}

func (s *storm) crashAndRestart() {
	p := s.victim()
	if p == nil {
		return
	}
	p.Crash(s.rng.IntN(2) == 0)
	s.w.After(s.between(0, 5*time.Second), func() { s.restartHost(p.Index) })
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
	s.note("n%d leaves", p.Index+1)
	s.w.Leave(p)
	if s.rng.IntN(2) == 0 {
		s.w.After(s.between(time.Second, 20*time.Second), func() { s.restartHost(p.Index) })
	}
}

// weather makes the network better or worse.
func (s *storm) weather() {
	net := s.w.Net
	loss, raw := net.Loss, net.Raw
	if s.rng.IntN(2) == 0 {
		net.Loss = float64(s.rng.IntN(201)) / 1000
	} else {
		net.Raw = s.raw()
	}
	s.note("weather: loss %v, raw %v", net.Loss, net.Raw)
	if !check.Good(net) {
		s.check.Core.Spoil()
	}
	s.w.After(s.between(time.Second, 15*time.Second), func() {
		if !s.quiet() {
			net.Loss, net.Raw = loss, raw
		}
	})
}

// breakConnections resets connections at random, without any cut.
func (s *storm) breakConnections() {
	s.note("connections break")
	for _, p := range s.w.Running() {
		p.BreakSome(func() bool { return s.rng.IntN(3) == 0 }, "reset in between")
	}
}

// stopAndDown stops a process as a debugger does, downs it, and lets it go on when others may own what it owned: it
// must find out, and the store must refuse what it writes until then.
func (s *storm) stopAndDown() {
	p := s.victim()
	if p == nil {
		return
	}
	p.Doomed = true
	p.Pause(s.between(3*time.Second, s.w.Takeover()+20*time.Second))
	s.laterDown(p, s.between(500*time.Millisecond, 3*time.Second))
}
