// The search: all states that can be reached, nearest first, and whether each has a way out.

package session

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
	text   []string
	depth  []int
	ways   [2][][]int32 // the states that lead to each: when nothing goes wrong, and with the others' steps too
	found  explore.Found
}

// Explore looks at all states of a configuration, at most limit, and stops at the first violation. A run that has more
// is not complete.
func Explore(c Config, limit int) explore.Found {
	begin := time.Now()
	s := &search{c: &c, seen: map[state]int32{}, found: explore.Found{Name: c.Name}}
	s.add(step{}, -1)
	for i := 0; i < len(s.states) && len(s.states) <= limit && s.found.Violation == ""; i++ {
		s.look(int32(i))
	}
	s.found.States = len(s.states)
	s.found.Complete = s.found.Violation == "" && len(s.states) <= limit
	if s.found.Complete {
		s.out(0, "NO WAY BACK: the owner lives, nobody has ended its session, and it will not handle again",
			func(t *state) bool { return t.lives() }, func(t *state) bool { return t.sure > 0 })
		s.out(1, "NO WAY OUT: neither the owner nor anybody else will handle", func(*state) bool { return true },
			func(t *state) bool { return t.sure > 0 && !t.over || t.taken || t.over && !t.began })
	}
	s.found.Seconds = time.Since(begin).Seconds()
	return s.found
}

// lives reports whether an owner must be able to handle (again).
func (t *state) lives() bool {
	if t.asleep || t.doubt == ranOut || t.doubt == asks && t.store != held {
		return false // it slept for longer than its session lasts, or may have
	}
	return !t.over && t.store != ended && !t.taken && t.without < tries
}

// add returns the number of the state that a step leads to.
func (s *search) add(p step, from int32) int32 {
	at, ok := s.seen[p.to]
	if ok {
		return at
	}
	at = int32(len(s.states))
	s.seen[p.to] = at
	depth := 0
	if from >= 0 {
		depth = s.depth[from] + 1
	}
	s.states, s.origin, s.text, s.depth = append(s.states, p.to), append(s.origin, from), append(s.text, p.text),
		append(s.depth, depth)
	for k := range s.ways {
		s.ways[k] = append(s.ways[k], nil)
	}
	s.found.Depth = max(s.found.Depth, depth)
	return at
}

// look takes all steps of a state.
func (s *search) look(i int32) {
	from := s.states[i]
	for _, p := range s.c.steps(&from) {
		if bad := p.to.fault(); bad != "" {
			s.found.Violation, s.found.Steps = bad, append(s.path(i), p.text)
			return
		}
		at := s.add(p, i)
		if p.kind == fair {
			s.ways[0][at] = append(s.ways[0][at], i)
		}
		if p.kind != fault {
			s.ways[1][at] = append(s.ways[1][at], i)
		}
	}
}

// path returns the steps that lead to a state.
func (s *search) path(i int32) (texts []string) {
	for ; s.origin[i] >= 0; i = s.origin[i] {
		texts = append([]string{s.text[i]}, texts...)
	}
	return texts
}

// out demands that each state of some has a way to a good one.
func (s *search) out(ways int, why string, some, good func(*state) bool) {
	has := make([]bool, len(s.states))
	var queue []int32
	for i := range s.states {
		if good(&s.states[i]) {
			has[i] = true
			queue = append(queue, int32(i))
		}
	}
	for len(queue) > 0 {
		at := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		for _, from := range s.ways[ways][at] {
			if !has[from] {
				has[from] = true
				queue = append(queue, from)
			}
		}
	}
	for i := range s.states {
		if !has[i] && some(&s.states[i]) && s.found.Violation == "" {
			s.found.Violation, s.found.Steps, s.found.Complete = why, s.path(int32(i)), false
		}
	}
}
