// The search: all states that can be reached, nearest first, and whether each has a way out.

package once

import (
	"time"

	"github.com/kith-io/kith/internal/sim/model/explore"
)

// search is one run.
type search struct {
	c      *Config
	states []state
	seen   map[state]int32
	origin []int32 // from which state each was first reached
	depth  []int32
	ways   [][]int32 // the states that lead to each without that time goes by
	found  explore.Found
}

// Explore looks at all states of a configuration, at most limit, and stops at the first violation. A run that has more
// is not complete.
func Explore(c Config, limit int) explore.Found {
	begin := time.Now()
	s := &search{c: &c, seen: map[state]int32{}, found: explore.Found{Name: c.Name}}
	s.add(state{}, -1)
	for i := 0; i < len(s.states) && len(s.states) <= limit && s.found.Violation == ""; i++ {
		s.look(int32(i))
	}
	s.found.States = len(s.states)
	s.found.Complete = s.found.Violation == "" && len(s.states) <= limit
	if s.found.Complete {
		s.out()
	}
	s.found.Seconds = time.Since(begin).Seconds()
	return s.found
}

// add returns the number of a state.
func (s *search) add(t state, from int32) int32 {
	at, ok := s.seen[t]
	if !ok {
		at = int32(len(s.states))
		s.seen[t] = at
		s.states, s.origin, s.ways = append(s.states, t), append(s.origin, from), append(s.ways, nil)
		depth := int32(0)
		if from >= 0 {
			depth = s.depth[from] + 1
		}
		s.depth = append(s.depth, depth)
		s.found.Depth = max(s.found.Depth, int(depth))
	}
	return at
}

// look takes all steps of a state.
func (s *search) look(i int32) {
	from := s.states[i]
	for _, p := range s.c.steps(&from) {
		bad := s.c.fault(&p.to)
		if bad == "" {
			bad = s.c.overtaken(&from, &p.to)
		}
		if bad != "" {
			s.found.Violation, s.found.Steps = bad, append(s.path(i), p.text)
			return
		}
		at := s.add(p.to, i)
		if !p.timed {
			s.ways[at] = append(s.ways[at], i)
		}
	}
}

// path returns the steps that lead to a state.
func (s *search) path(i int32) (texts []string) {
	for ; s.origin[i] >= 0; i = s.origin[i] {
		from := s.states[s.origin[i]]
		for _, p := range s.c.steps(&from) {
			if p.to == s.states[i] {
				texts = append([]string{p.text}, texts...)
				break
			}
		}
	}
	return texts
}

// out demands that each state without a parcel that may be given up has a way to rest though no time goes by: whatever
// has happened, what is in the outbox can still arrive.
func (s *search) out() {
	good := make([]bool, len(s.states))
	var queue []int32
	for i := range s.states {
		if s.states[i].rests() {
			good[i] = true
			queue = append(queue, int32(i))
		}
	}
	for len(queue) > 0 {
		at := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		for _, from := range s.ways[at] {
			if !good[from] {
				good[from] = true
				queue = append(queue, from)
			}
		}
	}
	for i := range s.states {
		if !good[i] && s.states[i].young() {
			s.found.Violation, s.found.Steps = "NO WAY OUT: what is in the outbox arrives no more", s.path(int32(i))
			s.found.Complete = false
			return
		}
	}
}
