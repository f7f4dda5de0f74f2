// Faults: of nodes, of the network between them, and of the way to the store.

package durables

import (
	"time"

	"github.com/kith-io/kith/durable/durabletest"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/shard"
)

// fault is one kind, and how often it comes beside the others.
type fault struct {
	weight int
	do     func(*run)
}

var kinds = []fault{{4, crash}, {2, leave}, {3, pause}, {1, stick}, {2, partition}, {1, oneWay}, {1, slowWay},
	{1, weather}, {2, breaks}, {4, move}, {1, setClock}}

// faultTick does one thing to the cluster and plans the next.
func faultTick(s *run) {
	if s.calm {
		return
	}
	s.w.After(between(s.faults, 300*time.Millisecond, 9*time.Second), func() { faultTick(s) })
	sum := 0
	for _, f := range kinds {
		sum += f.weight
	}
	pick := s.faults.IntN(sum)
	for _, f := range kinds {
		if pick -= f.weight; pick < 0 {
			s.counts.Faults++
			s.stops()
			f.do(s)
			return
		}
	}
}

// up returns the hosts with processes that hold themselves for Up and do not leave.
func up(s *run) (list []int) {
	for i, h := range s.w.Hosts {
		if p := h.Process; p != nil && p.Alive && p.View != nil && !p.Leaving {
			if m, ok := p.View.SelfMember(); ok && m.Status == membership.Up {
				list = append(list, i)
			}
		}
	}
	return list
}

// victim draws one with a loss that leaves more than half of the hosts, -1 for none.
func victim(s *run) int {
	list := up(s)
	if len(list)-1 <= s.nodes/2 {
		return -1
	}
	return list[s.faults.IntN(len(list))]
}

func crash(s *run) {
	if i := victim(s); i >= 0 {
		s.back[i] = s.w.Now + between(s.faults, 0, 15*time.Second)
		if s.faults.IntN(2) == 0 {
			s.c.Crash(i)
		} else {
			s.c.PowerOff(i)
		}
	}
}

// leave has a host leave. A node that leaves as the last member remembers nobody, and its next process forms a new
// cluster: no operator has a node leave that holds itself for the last one while others live.
func leave(s *run) {
	if i := victim(s); i >= 0 && len(s.w.Hosts[i].Process.View.Members) > 1 {
		s.c.Leave(i)
	}
}

func pause(s *run) {
	if list := s.w.Running(); len(list) > 0 {
		list[s.faults.IntN(len(list))].Pause(between(s.faults, 100*time.Millisecond, 25*time.Second))
	}
}

func stick(s *run) {
	if list := s.w.Running(); len(list) > 0 {
		list[s.faults.IntN(len(list))].Stick(between(s.faults, 100*time.Millisecond, 8*time.Second))
	}
}

func partition(s *run) {
	var sides [2][]int
	for i := range s.nodes {
		k := s.faults.IntN(2)
		sides[k] = append(sides[k], i)
	}
	s.c.Partition(sides[0], sides[1])
	heals(s)
}

func oneWay(s *run) {
	a, b := s.faults.IntN(s.nodes), s.faults.IntN(s.nodes)
	if a != b {
		s.c.CutOneWay(a, b)
		heals(s)
	}
}

// heals ends all cuts later.
func heals(s *run) {
	s.w.After(between(s.faults, 500*time.Millisecond, 25*time.Second), func() {
		if !s.calm {
			s.c.Heal()
		}
	})
}

func slowWay(s *run) {
	a, b := s.faults.IntN(s.nodes), s.faults.IntN(s.nodes)
	d := between(s.faults, 10*time.Millisecond, 700*time.Millisecond)
	s.note("the way from n%d to n%d is slower by %v", a+1, b+1, d)
	s.w.Net.Slow[a][b] = d
	s.w.After(between(s.faults, time.Second, 15*time.Second), func() { s.w.Net.Slow[a][b] = 0 })
}

func weather(s *run) {
	s.w.Net.Loss = float64(s.faults.IntN(150)) / 1000
	s.note("loss %v", s.w.Net.Loss)
	s.w.After(between(s.faults, time.Second, 15*time.Second), func() { s.w.Net.Loss = s.loss })
}

func breaks(s *run) {
	s.note("connections break")
	for _, p := range s.w.Running() {
		p.BreakSome(func() bool { return s.faults.IntN(3) == 0 }, "reset in between")
	}
}

// move makes a shard move by hand.
func move(s *run) {
	list := up(s)
	if len(list) == 0 {
		return
	}
	to := s.w.Hosts[list[s.faults.IntN(len(list))]].Process
	c := shard.MoveCommand{Type: route.TypeOf(string(accounts)), Shard: route.ShardID(s.faults.IntN(int(s.drawn.shards))),
		To: to.ID}
	s.note("%s/%d is to move to n%d", accounts, c.Shard, to.Index+1)
	for _, i := range list {
		if p := s.w.Hosts[i].Process; !p.Paused() && !p.Stuck() && p.Command(c) == nil {
			return
		}
	}
}

// setClock sets a host's wall clock.
func setClock(s *run) {
	if s.clocks {
		i, d := s.faults.IntN(s.nodes), between(s.faults, -20*time.Second, 20*time.Second)
		s.note("the wall clock of n%d is set to %v beside the others", i+1, d)
		s.w.Hosts[i].Wall = d
	}
}

// supervises starts hosts again that are down, each some time later, and those of the older build in the end.
func supervises(s *run) {
	s.w.After(lookEvery, func() { supervises(s) })
	for i := range s.nodes {
		switch p := s.w.Hosts[i].Process; {
		case p.Alive && s.calm && s.builds[i] < s.schema && !p.Leaving && s.w.Converged():
			s.c.Leave(i)
			return
		case p.Alive:
		case s.back[i] == 0:
			s.back[i] = s.w.Now + between(s.faults, 500*time.Millisecond, 10*time.Second)
		case s.w.Now >= s.back[i]:
			s.back[i], s.builds[i] = 0, s.schema
			s.c.Restart(i)
		}
	}
}

// storeTick changes the way to the store and plans the next time.
func storeTick(s *run) {
	if s.calm {
		return
	}
	s.w.After(between(s.faults, 500*time.Millisecond, 12*time.Second), func() { storeTick(s) })
	var f durabletest.Faults
	if s.outage > 0 && s.w.Now-s.began > s.lasts-s.outage {
		return
	}
	switch s.faults.IntN(7) {
	case 0, 1:
	case 2:
		f = durabletest.Faults{LostCalls: 0.1, LostAnswers: 0.1, Again: 0.2}
	case 3:
		f = durabletest.Faults{Delay: between(s.faults, 10*time.Millisecond, 500*time.Millisecond), Again: 0.1}
	case 4: // answers come when nobody waits any more
		f = durabletest.Faults{Delay: between(s.faults, time.Second, 8*time.Second), Again: 0.3}
	case 5:
		f = durabletest.Faults{LostAnswers: 0.6, Again: 0.5, Delay: 100 * time.Millisecond}
	case 6:
		f.Away = true
	}
	s.counts.StoreFaults++
	s.note("the way to the store: %+v", f)
	s.kit.Store().Fail(f)
}

// calms ends all faults.
func calms(s *run) {
	s.calm, s.calmed = true, s.w.Now
	s.c.Heal()
	s.w.Net.Loss = 0
	s.kit.Store().Fail(durabletest.Faults{})
	for _, h := range s.w.Hosts {
		h.Wall = 0
		h.Process.Resume()
	}
	for i := range s.back {
		s.back[i] = min(s.back[i], s.w.Now)
	}
}
