// The search: all states that can be reached, nearest first, and whether the newest owner has a way to serve.

package quorum

import (
	"fmt"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"

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
	seen        map[uint64]int32
	origins     []origin
	front, next []state
	first       int32 // the number of the first of front
	bytes       []byte
	found       explore.Found

	ways []explore.Step // which state leads to which
	good []bool         // the newest owner of each shard has served and committed
	hope []bool         // majorities live
}

// Explore looks at all states of a configuration, at most limit, and stops at the first violation. A run that has more
// is not complete.
func Explore(c Config, limit int) explore.Found {
	begin := time.Now()
	s := &search{c: compile(&c), seen: map[uint64]int32{}, found: explore.Found{Name: c.Name}}
	if c.States > 0 {
		limit = min(limit, c.States)
	}
	s.add(s.c.begin(), origin{parent: -1})
	for len(s.next) > 0 && s.found.Violation == "" && len(s.origins) <= limit {
		s.first += int32(len(s.front))
		s.front, s.next = s.next, s.front[:0]
		s.level(limit)
	}
	s.found.States = len(s.origins)
	s.found.Complete = s.found.Violation == "" && len(s.origins) <= limit
	if s.found.Complete && c.Live {
		s.stuck()
	}
	s.found.Seconds = time.Since(begin).Seconds()
	return s.found
}

// begin returns the state in which a run begins.
func (c *compiled) begin() *state {
	s := &state{}
	for n := range c.shards {
		if b := &c.shards[n]; b.done {
			b.over(c, &s.s[n])
		}
	}
	return s
}

// over has the first owner of a shard done all that it may, and its members hold that.
func (b *bounds) over(c *compiled, h *shard) {
	o := &h.o[0]
	for _, w := range b.wishes[0] {
		o.begin(changeTo(w, 1)).sets++
	}
	for range b.batches[0] {
		o.begin(1).mine++
	}
	o.phase, h.told = serves, o.h
	now := c.now(&o.h, o.n)
	for i := range c.n {
		if now.has(i) {
			h.r[i] = replica{1, 1, 1, o.n, o.h}
		}
	}
	for p := range o.n {
		h.by[p] = 1
	}
}

// add returns the number of a state with settled replicas.
func (s *search) add(t *state, from origin) int32 {
	s.bytes = s.c.encode(s.bytes[:0], t)
	sum := xxhash.Sum64(s.bytes)
	at, ok := s.seen[sum]
	if !ok {
		at = int32(len(s.origins))
		s.seen[sum] = at
		s.origins = append(s.origins, from)
		s.next = append(s.next, *t)
		if s.c.Live {
			s.good, s.hope = append(s.good, s.c.done(t)), append(s.hope, s.c.hopes(t))
		}
	}
	return at
}

// steps calls emit for all that may happen in a state.
func (c *compiled) steps(s *state, emit emits) {
	for n := range c.shards {
		b := &c.shards[n]
		for x := range b.owners {
			t := turn{c, s, n, x, b, emit}
			t.claimed()
			if t.owner().phase == claims {
				t.claims()
				continue
			}
			t.decides()
			t.begins()
			t.reads()
			t.reaches()
		}
		if c.Copies {
			c.copies(s, n, emit)
		}
	}
	c.faults(s, emit)
}

// level takes all steps of the states of one depth.
func (s *search) level(limit int) {
	for k := range s.front {
		number, n, bad := s.first+int32(k), 0, ""
		s.c.steps(&s.front[k], func(to state, what string, _ note) {
			n++
			if bad != "" {
				return
			}
			if what != "" {
				bad = what
				s.tell(number, n-1, bad)
				return
			}
			s.c.settle(&to, nil)
			at := s.add(&to, origin{number, uint16(n - 1)})
			if s.c.Live {
				s.ways = append(s.ways, explore.Step{To: at, From: number})
			}
		})
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
	names := make([]int, replicas)
	for i := range names {
		names[i] = i
	}
	now := *s.c.begin()
	for k := len(path) - 1; k >= 0; k-- {
		n, to := 0, state{}
		s.c.steps(&now, func(t state, _ string, w note) {
			if n == path[k] {
				to = t
				s.found.Steps = append(s.found.Steps, s.c.words(w, names))
			}
			n++
		})
		now = to
		s.c.settle(&now, names)
	}
	s.found.Violation = what
}

// words says what a step does, with the names that its replicas had at the beginning.
func (c *compiled) words(n note, names []int) string {
	owner := fmt.Sprintf("f%d", n.owner+1)
	if len(c.shards) > 1 {
		owner += fmt.Sprintf(" of shard %d", n.shard+1)
	}
	return strings.NewReplacer("{f}", owner, "{r}", fmt.Sprintf("r%d", names[n.replica]+1),
		"{o}", fmt.Sprintf("r%d", names[n.other]+1), "{n}", fmt.Sprint(n.number)).Replace(n.text)
}

// done reports whether the newest owner of each shard has committed a batch of its own, and serves.
func (c *compiled) done(s *state) bool {
	for n := range c.shards {
		if o := &s.s[n].o[c.shards[n].owners-1]; o.phase != serves || o.mine == 0 {
			return false
		}
	}
	return true
}

// hopes reports whether a majority lives of each set that counts: the one in force, the one before while nothing was
// decided behind the change, and each one that was proposed after it. Of the one before, a wiped disk is no loss.
func (c *compiled) hopes(s *state) bool {
	alive := ^s.gone
	for n := range c.shards {
		h := &s.s[n]
		at, now, _ := c.lastChange(h)
		if !now.majority(alive) {
			return false
		}
		if at > 0 && at < positions && h.told[at] == 0 {
			if old, _ := c.inForce(&h.told, at); !old.majority(alive | s.wiped) {
				return false
			}
		}
		for i := range h.r {
			if !c.proposedLive(&h.r[i].h, at, alive) {
				return false
			}
		}
		for x := range h.o {
			if !c.proposedLive(&h.o[x].h, at, alive) {
				return false
			}
		}
	}
	return true
}

// proposedLive reports whether a majority lives of each set that a history proposes after position at.
func (c *compiled) proposedLive(h *history, at uint8, alive set) bool {
	for p := at; p < positions; p++ {
		if h[p].isChange() && !c.sets[h[p]&15].majority(alive) {
			return false
		}
	}
	return true
}

// stuck looks for a state with majorities alive from which the newest owner has no way to serve and commit.
func (s *search) stuck() {
	explore.Lead(s.ways, s.good)
	for i := range s.good {
		if s.hope[i] && !s.good[i] {
			s.found.Complete = false
			s.tell(int32(i), -1, "STUCK: majorities live, but the newest owner can never serve and commit")
			return
		}
	}
}
