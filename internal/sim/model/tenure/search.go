// The search: all states that can be reached, nearest first, and whether the shard has a way to be handled.

package tenure

import (
	"fmt"
	"hash/maphash"
	"strings"
	"time"

	"github.com/kith-io/kith/internal/sim/model/explore"
)

// origin says how a state was first reached: from which one, by which of its steps.
type origin struct {
	parent int32
	step   uint16
}

// search is one run. States are known by a hash of 64 bits.
type search struct {
	c           *compiled
	seed        maphash.Seed
	seen        map[uint64]int32
	origins     []origin
	front, next []state
	first       int32 // the number of the first of front
	found       explore.Found

	ways       []explore.Step // which state leads to which
	good, hope []bool
}

// Explore looks at all states of a configuration, at most limit, and stops at the first violation. A run that has more
// is not complete.
func Explore(cfg Config, limit int) explore.Found {
	begin := time.Now()
	s := &search{c: compile(cfg), seed: maphash.MakeSeed(), seen: map[uint64]int32{}, found: explore.Found{Name: cfg.Name}}
	if cfg.States > 0 {
		limit = min(limit, cfg.States)
	}
	s.add(s.c.begin(), origin{parent: -1})
	for len(s.next) > 0 && s.found.Violation == "" && len(s.origins) <= limit {
		s.first += int32(len(s.front))
		s.front, s.next = s.next, s.front[:0]
		s.level(limit)
	}
	s.found.States = len(s.origins)
	s.found.Complete = s.found.Violation == "" && len(s.origins) <= limit
	if s.found.Complete && cfg.Live {
		s.stuck()
	}
	s.found.Seconds = time.Since(begin).Seconds()
	return s.found
}

// begin returns the state in which a run begins: everybody that is a member has reported to the first coordinator.
func (c *compiled) begin() *state {
	s := &state{alive: (1<<c.n - 1) &^ c.joiners, written: 1, crashes: c.Crashes, mistakes: c.Mistakes, writes: c.Writes,
		refounds: c.Refounds, reigns: c.Reigns, prunes: c.Prunes}
	for i := range places {
		s.list[0].holder[i] = nobody
	}
	for i, d := range c.Seats {
		s.list[0].holder[i] = uint8(d - '0')
	}
	s.list[0].in, s.list[0].up = s.alive, s.alive
	for x := range c.n {
		if s.alive.has(x) {
			s.view[x] = view{in: s.alive, up: s.alive}
			s.promised[x] = uint8(c.First + 1)
		}
	}
	if lead := s.alive.lowest(); c.asksWhoHasSeen(s, lead) {
		s.view[lead].seen = s.alive
	}
	s.reign[c.First] = reign{phase: ready, reported: s.alive}
	if c.Owner < 0 {
		return s
	}
	fence := uint8(c.First+1)<<3 | 1
	s.own[c.Owner].fence, s.own[c.Owner].top, s.highest = fence, fence, fence
	q := &s.reign[c.First]
	q.home, q.fence, q.epoch = uint8(c.Owner), fence, 1
	return s
}

// fault returns what is wrong with a state, and notes the highest fence; empty: nothing.
func (c *compiled) fault(t *state) string {
	first := -1
	for x := range c.n {
		if !c.handles(t, x) {
			continue
		}
		f := t.own[x].fence
		if first >= 0 {
			o := t.own[first].fence
			return fmt.Sprintf("TWO OWNERS: n%d under fence %d.%d and n%d under %d.%d may both handle", first, o>>3, o&7, x,
				f>>3, f&7)
		}
		if first = x; f < t.highest {
			return fmt.Sprintf("FENCE: n%d handles under %d.%d after %d.%d", x, f>>3, f&7, t.highest>>3, t.highest&7)
		}
		t.highest = f
	}
	return ""
}

// add returns the number of a state.
func (s *search) add(t *state, from origin) int32 {
	sum := maphash.Comparable(s.seed, *t)
	at, ok := s.seen[sum]
	if ok {
		return at
	}
	at = int32(len(s.origins))
	s.seen[sum] = at
	s.origins, s.next = append(s.origins, from), append(s.next, *t)
	if s.c.Live {
		good := false
		for x := range s.c.n {
			good = good || s.c.handles(t, x)
		}
		s.good, s.hope = append(s.good, good), append(s.hope, s.c.hopes(t))
	}
	return at
}

// level takes all steps of the states of one depth.
func (s *search) level(limit int) {
	number, n, bad := int32(0), 0, ""
	r := turn{c: s.c, emit: func(t *state, _ note) {
		n++
		if bad != "" {
			return
		}
		if bad = s.c.fault(t); bad != "" {
			s.tell(number, n-1, bad)
			return
		}
		at := s.add(t, origin{number, uint16(n - 1)})
		if s.c.Live {
			s.ways = append(s.ways, explore.Step{To: at, From: number})
		}
	}}
	for k := range s.front {
		number, n, r.s = s.first+int32(k), 0, &s.front[k]
		r.steps()
		if bad != "" || len(s.origins) > limit {
			return
		}
	}
	s.found.Depth++
}

// tell notes a violation with the steps that lead to it; last is the step behind them, or -1.
func (s *search) tell(at int32, last int, what string) {
	var path []int
	if last >= 0 {
		path = append(path, last)
	}
	for e := at; s.origins[e].parent >= 0; e = s.origins[e].parent {
		path = append(path, int(s.origins[e].step))
	}
	now := *s.c.begin()
	for k := len(path) - 1; k >= 0; k-- {
		n, to := 0, state{}
		r := turn{c: s.c, s: &now, emit: func(t *state, w note) {
			if n == path[k] {
				to = *t
				args := []any{w.a, w.b, w.d}
				s.found.Steps = append(s.found.Steps, fmt.Sprintf(w.text, args[:strings.Count(w.text, "%")]...))
			}
			n++
		}}
		r.steps()
		s.c.fault(&to)
		now = to
	}
	s.found.Violation = what
}

// hopes reports whether the newest list has a quorum of holders that live and that nobody takes for Down, and so does a
// host, and one that coordinates or may begin to. From there the shard must be handled again.
func (c *compiled) hopes(s *state) bool {
	lost, term, best := ^s.alive, uint8(0), uint8(0)
	for x := range c.n {
		lost |= s.view[x].down | s.seat[x].revoked
		if s.alive.has(x) {
			term = max(term, s.promised[x])
		}
	}
	for m := range s.written {
		if lost |= s.list[m].down; s.list[m].number >= s.list[best].number {
			best = m
		}
	}
	ok := false
	for m := range s.written {
		if s.list[m].number != s.list[best].number {
			continue
		}
		k := 0
		for _, h := range s.list[m].holder[:c.seats] {
			if h == nobody || lost.has(int(h)) {
				continue
			}
			if own := s.view[h].list; own == m || s.list[own].number < s.list[m].number {
				k++
			}
		}
		ok = ok || k >= c.quorum
	}
	b := int(term) - 1
	leads := !lost.has(b) && (s.reign[b].phase == asking || s.reign[b].phase == ready)
	for x := range c.n {
		leads = leads || s.reigns > 0 && c.seekers.has(x) && !lost.has(x) && s.reign[x].phase == notYet && x > b
	}
	return ok && leads && c.hosts&^lost != 0
}

// stuck looks for a state of hope from which the shard is never handled again.
func (s *search) stuck() {
	explore.Lead(s.ways, s.good)
	for i := range s.good {
		if s.hope[i] && !s.good[i] {
			s.found.Complete = false
			s.tell(int32(i), -1, "STUCK: a quorum of the newest list lives, but the shard is never handled again")
			return
		}
	}
}
