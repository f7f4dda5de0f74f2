// The search: all states that can be reached, nearest first.

package model

import (
	"time"

	"github.com/cespare/xxhash/v2"
)

// Found is what a run found.
type Found struct {
	Name        string   `json:"name"`
	States      int      `json:"states"`
	Transitions int      `json:"transitions"`
	AtRest      int      `json:"at_rest"` // states in which nothing has to happen any more
	Depth       int      `json:"depth"`
	Complete    bool     `json:"complete"` // all states were looked at
	Violation   string   `json:"violation,omitempty"`
	Steps       []string `json:"steps,omitempty"` // that lead to the violation
	Seconds     float64  `json:"seconds"`
}

// origin says how a state was first reached: from which one, by which of its actions.
type origin struct {
	parent uint32
	action uint8
}

// search is one run. States are known by a hash of 64 bits: that two among ten million share one has a chance of one
// in three hundred thousand, and would hide a state, never invent a violation.
type search struct {
	c       *Config
	seen    map[uint64]uint32
	origins []origin
	front   []byte // the states of this depth, encoded
	ends    []int  // where each of them ends in front
	first   int    // the number of the first of them
	next    []byte
	nexts   []int
	ways    ways
	found   Found
}

// Explore looks at all states of a configuration, at most limit, and stops at the first violation. The result is not
// complete when there are more. progress is called after each depth; it may be nil.
func Explore(c Config, limit int, progress func(states, depth int)) Found {
	begin := time.Now()
	s := &search{c: &c, seen: map[uint64]uint32{}, found: Found{Name: c.Name}}
	first := c.begin()
	s.add(c.encode(nil, first), origin{})
	for s.found.Violation == "" && len(s.nexts) > 0 && len(s.origins) <= limit {
		s.first = len(s.origins) - len(s.nexts)
		s.front, s.next = s.next, s.front[:0]
		s.ends, s.nexts = s.nexts, s.ends[:0]
		s.level(limit)
		if s.found.Violation == "" {
			s.found.Depth++
		}
		if progress != nil {
			progress(len(s.origins), s.found.Depth)
		}
	}
	s.found.States = len(s.origins)
	s.found.Complete = s.found.Violation == "" && len(s.origins) <= limit
	if s.found.Complete {
		if at, ok := s.ways.dead(); ok {
			s.tell(at, action{}, false, "NO WAY OUT: from here on nothing ever comes to rest")
			s.found.Complete = false
		}
	}
	s.found.Seconds = time.Since(begin).Seconds()
	return s.found
}

// add takes a state up unless it is known, and returns its number.
func (s *search) add(b []byte, from origin) uint32 {
	h := xxhash.Sum64(b)
	if at, ok := s.seen[h]; ok {
		return at
	}
	at := uint32(len(s.origins))
	s.seen[h] = at
	s.origins = append(s.origins, from)
	s.next = append(s.next, b...)
	s.nexts = append(s.nexts, len(s.next))
	return at
}

// level looks at all states of one depth.
func (s *search) level(limit int) {
	var w, after world
	var acts []action
	var b []byte
	run := actorIn(s.c, &after)
	at := 0
	for k, end := range s.ends {
		s.c.decode(s.front[at:end], &w)
		at = end
		number := uint32(s.first + k)
		acts = s.c.actions(&w, acts)
		rests := true
		for n, a := range acts {
			rests = rests && a.optional
			after = w
			run.bad = ""
			run.run(a)
			s.found.Transitions++
			if run.bad != "" {
				s.tell(int(number), a, true, run.bad)
				return
			}
			b = s.c.encode(b[:0], &after)
			s.ways.step(s.add(b, origin{number, uint8(n)}))
		}
		s.ways.end(rests)
		if rests {
			s.found.AtRest++
			if what := s.c.atRest(&w); what != "" {
				s.tell(int(number), action{}, false, what)
				return
			}
		}
		if len(s.origins) > limit {
			return
		}
	}
}

// tell notes a violation with the steps that lead to it.
func (s *search) tell(at int, last action, more bool, what string) {
	var path []uint8
	for e := at; e != 0; e = int(s.origins[e].parent) {
		path = append(path, s.origins[e].action)
	}
	w := s.c.begin()
	for n := len(path) - 1; n >= 0; n-- {
		a := s.c.actions(w, nil)[path[n]]
		s.found.Steps = append(s.found.Steps, s.c.text(w, a))
		run := actorIn(s.c, w)
		run.run(a)
		s.c.decode(s.c.encode(nil, w), w)
	}
	if more {
		s.found.Steps = append(s.found.Steps, s.c.text(w, last))
	}
	s.found.Violation = what
}
