// The search: all states that can be reached, nearest first, and whether each has a way to rest.

package instances

import (
	"fmt"
	"hash/maphash"
	"math/bits"
	"strings"
	"time"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/internal/sim/model/explore"
)

// compiled is a Config with its sets as bits.
type compiled struct {
	*Config
	messages int
	buffers  bool
	plans    plans

	movers, takers, leavers, drainers, mortal, victims, deciders, lags set
}

// keeps reports whether a rule is on.
func (c *Config) keeps(r Rule) bool { return c.Broken&r == 0 }

func compile(cfg Config) *compiled {
	if cfg.Movers == "" {
		cfg.Movers = "1"
	}
	if cfg.Takers == "" {
		cfg.Takers = "012"
	}
	wanted := uint8(slots)
	if cfg.One {
		wanted = 1
	}
	return &compiled{Config: &cfg, messages: len(cfg.Senders), buffers: cfg.Way.New == cluster.NewBuffers,
		plans:  plans{cfg.Way, wanted, map[planned]view{}},
		movers: setOf(cfg.Movers), takers: setOf(cfg.Takers), leavers: setOf(cfg.Leavers), drainers: setOf(cfg.Drainers),
		mortal: setOf(cfg.Mortal), victims: setOf(cfg.Victims), deciders: setOf(cfg.Deciders), lags: setOf(cfg.Lags)}
}

// begin returns the state in which a run begins: all have looked at a table of epoch 1.
func (c *compiled) begin() *state {
	s := &state{alive: 1<<nodes - 1}
	v := view{defined: defined{version: 1, to: nobody}, Placed: Placed{At: StampOf(1, 1), Way: c.Way,
		Wanted: c.plans.wanted, Host: [slots]uint8{0, 1}}}
	if c.One {
		v.Host[1] = nobody
	}
	for x := range nodes {
		s.view[x], s.on[x].row, s.seen[x] = v, v.Placed, s.alive
		s.room.knows[x] = 0
	}
	for slot := range v.Wanted {
		s.on[slot].here[slot] = instance{live: !c.buffers, at: v.At, rank: v.At}
		if c.buffers {
			s.on[slot].here[slot] = instance{}
		}
	}
	s.given[0] = 1 << v.At
	s.room.to = nobody
	return s
}

// fault returns what is wrong with a state; empty: nothing.
func (c *compiled) fault(t *state) string {
	if t.mistakes > 0 || c.buffers {
		return ""
	}
	most := 2
	if c.Way.Old == cluster.OldDrops {
		most = 1
	}
	for slot := range slots {
		var at []int
		for x := range nodes {
			if o := &t.on[x]; o.here[slot].live && (most == 1 || o.ends[slot] == 0) {
				at = append(at, x)
			}
		}
		if len(at) > most {
			return fmt.Sprintf("TWO: %d instances of slot %d live, on %v", len(at), slot, at)
		}
	}
	return ""
}

// rests reports whether nothing has to happen any more.
func (c *compiled) rests(s *state) bool {
	var v *view
	for x := range nodes {
		if !s.alive.has(x) {
			continue
		}
		if v == nil {
			v = &s.view[x]
		}
		if s.view[x] != *v || s.on[x].row != v.Placed || s.on[x].goes != stays ||
			s.on[x].doors != (s.on[x].drain && (c.bare(s, x) || c.hangs(s, x) || !c.keeps(shardsLast))) ||
			s.on[x].ends != [slots]Stamp{} {
			return false
		}
		t := *s
		if (&turn{c: c}).look(&t, x, false); t != *s {
			return false
		}
	}
	for m := range c.messages {
		if at := s.sent[m].where; at < handled && (at != unsent || v != nil && v.Target(0) != nobody) {
			return false
		}
	}
	if v == nil {
		return true
	}
	has, may := 0, s.alive
	for x := range nodes {
		if s.on[x].drain && v.Host[0] != uint8(x) && v.Host[1] != uint8(x) {
			may &^= only(x) // it is given nothing
		}
	}
	for slot := range slots {
		if ch := v.Change[slot]; ch.At != 0 && (ch.To == nobody || !c.hangs(s, int(ch.To))) {
			return false
		}
		at := int(v.Host[slot])
		if at < nodes && !s.alive.has(at) {
			return false
		}
		if at < nodes {
			has++
		}
		if c.buffers {
			if slot == 0 && v.Host[0] != nobody && (s.room.to != nobody || s.room.home != v.Host[0]) {
				return false
			}
			continue
		}
		for x := range nodes {
			if s.alive.has(x) && s.on[x].here[slot].live != (x == at) {
				return false
			}
		}
	}
	return s.ended || has == min(int(c.plans.wanted), bits.OnesCount8(uint8(may)))
}

// hangs reports whether a hand-off to x that goes on while x drains waits until it drains no more: no way is known.
func (c *compiled) hangs(s *state, x int) bool {
	v, o := &s.view[x], &s.on[x]
	return c.Way.Old == cluster.OldForwards && o.drain && o.doors &&
		(v.Change[0].At != 0 && v.Change[0].To == uint8(x) || v.Change[1].At != 0 && v.Change[1].To == uint8(x))
}

// late returns what is wrong with a state that rests.
func (c *compiled) late(s *state) string {
	if c.buffers || s.mistakes > 0 {
		return ""
	}
	for x := range nodes {
		i := s.on[x].here[0]
		if !i.live {
			continue
		}
		for y := range nodes {
			if g := s.given[y]; y != x && g>>(i.rank+1) != 0 {
				return fmt.Sprintf("FENCE: n%d keeps slot 0 under %d.%d, and n%d had a later one", x, i.rank.epoch(), i.rank&7, y)
			}
		}
	}
	for m := range c.messages {
		if s.sent[m].where == lost && s.crashes == 0 {
			return fmt.Sprintf("LOST: message %d", m+1)
		}
	}
	return ""
}

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

	ways []explore.Step // which state leads to which, faults apart
	good []bool
}

func newSearch(c *compiled) *search {
	return &search{c: c, seed: maphash.MakeSeed(), seen: map[uint64]int32{}, found: explore.Found{Name: c.Name}}
}

// Explore looks at all states of a configuration, at most limit, and stops at the first violation. A run that has more
// is not complete.
func Explore(cfg Config, limit int) explore.Found {
	begin := time.Now()
	s := newSearch(compile(cfg))
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
		s.good = append(s.good, s.c.rests(t))
	}
	return at
}

// level takes all steps of the states of one depth.
func (s *search) level(limit int) {
	number, n, bad := int32(0), 0, ""
	r := turn{c: s.c}
	r.emit = func(t *state, w note) {
		n++
		if bad != "" {
			return
		}
		if bad = r.bad; bad == "" {
			bad = s.c.fault(t)
		}
		if bad == "" && s.c.rests(t) {
			bad = s.c.late(t)
		}
		if bad != "" {
			s.tell(number, n-1, bad)
			return
		}
		at := s.add(t, origin{number, uint16(n - 1)})
		if s.c.Live && !w.fault {
			s.ways = append(s.ways, explore.Step{To: at, From: number})
		}
	}
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
		now = to
	}
	s.found.Violation = what
}

// stuck looks for a state that has no way to rest.
func (s *search) stuck() {
	explore.Lead(s.ways, s.good)
	for i, good := range s.good {
		if !good {
			s.tell(int32(i), -1, "NO WAY OUT: the instances do not come to rest")
			s.found.Complete = false
			return
		}
	}
}
