// The steps: what may happen next, and what must never have happened.

package session

// kind says which party does a step, for the question of a way out.
type kind uint8

const (
	fair   kind = iota // the owner, the store and time, when nothing goes wrong
	fault              // need not happen
	others             // the members that do not hear the owner
)

// step is one thing that happens.
type step struct {
	to   state
	text string
	kind kind
}

// steps is what may happen next in a state.
type steps struct {
	c    *Config
	from *state
	list []step
}

func (c *Config) steps(from *state) []step {
	s := &steps{c: c, from: from}
	s.time()
	s.owner()
	s.service()
	s.members()
	return s.list
}

func (s *steps) add(to state, k kind, text string) {
	if to != *s.from {
		s.list = append(s.list, step{to, text, k})
	}
}

// fault returns what is wrong with a state; empty: nothing.
func (s *state) fault() string {
	if s.taken && !s.over && !s.still && (s.batch || s.sure > 0) {
		return "TWO OWNERS: a member has taken its shards, and it handles"
	}
	return ""
}

// counts is for how long an answer lets the owner handle when its call is so old.
func (c *Config) counts(age uint8) uint8 {
	lasts := uint8(ttl)
	if c.keeps(margin) {
		lasts -= drift
	}
	if !c.keeps(fromTheCall) {
		age = 0
	}
	return lasts - min(age, lasts)
}

// reads makes an owner that runs stop handling when its time is over.
func (c *Config) reads(t *state) {
	if t.sure == 0 && !t.still && c.keeps(readEachBatch) {
		t.batch = false
	}
}

// time lets a tick pass. A process that stands still has its clock go on; a slow one does not count the tick.
func (s *steps) time() {
	t := *s.from
	if t.left > 0 {
		if t.left--; t.left == 0 {
			t.store = none
		}
	}
	if slow := t; slow.slow < s.c.Slow {
		slow.slow++
		s.add(slow, fault, "a tick that the owner's clock does not count")
	}
	for i := range t.calls {
		if x := &t.calls[i]; x.on {
			x.age = min(x.age+1, ttl)
		}
	}
	if t.sure > 0 {
		t.sure--
	} else if t.began {
		t.without = min(t.without+1, tries+1)
	}
	s.c.reads(&t)
	s.add(t, fair, "a tick")
}

// owner is what the owner does.
func (s *steps) owner() {
	t := *s.from
	if t.over {
		return
	}
	if dead := t; s.c.Dies {
		dead.over, dead.batch = true, false
		s.add(dead, fault, "the owner dies")
	}
	if t.still {
		t.still = false
		s.c.reads(&t)
		s.add(t, fair, "the owner goes on")
		return
	}
	if still := t; still.stops < s.c.Stops {
		still.stops++
		still.still = true
		s.add(still, fault, "the owner stands still")
	}
	if t.without > tries && s.c.keeps(givesUp) {
		t.over, t.batch = true, false
		s.add(t, fair, "the owner gives up: it was without a session for too long")
		return
	}
	s.handles()
	for i := range s.from.calls {
		s.asks(i)
	}
}

// handles begins and ends a batch.
func (s *steps) handles() {
	t := *s.from
	if t.batch {
		t.batch = false
		s.add(t, fair, "a batch is over")
	} else if t.batch = true; t.sure > 0 {
		s.add(t, fair, "a batch begins")
	}
}

// asks begins a call of the owner, or takes its answer.
func (s *steps) asks(i int) {
	t := *s.from
	x := &t.calls[i]
	if !x.on {
		if *x = (call{on: true}); !t.began || t.sure > 0 || s.c.keeps(goesOn) {
			s.add(t, fair, "the owner asks")
		}
		return
	}
	if !x.landed {
		return
	}
	ok, age := x.ok, x.age
	if *x = (call{}); !ok {
		t.over, t.batch = true, false
		s.add(t, fair, "the owner hears that its session was ended, and ends")
		return
	}
	if sure := s.c.counts(age); sure > t.sure {
		t.sure, t.without, t.began = sure, 0, true
	}
	s.add(t, fair, "the owner hears that it has its session")
}

// service is what the store does with calls of the owner, at any time later.
func (s *steps) service() {
	for i := range s.from.calls {
		t := *s.from
		x := &t.calls[i]
		if !x.on || x.landed {
			continue
		}
		lost := t
		lost.calls[i] = call{}
		s.add(lost, fault, "a call is lost")
		x.landed, x.ok = true, t.store != ended || !s.c.keeps(endedStays)
		if x.ok {
			t.store, t.left = held, ttl
		}
		s.add(t, fair, "the store carries a call of the owner out")
	}
}

// members is what a member does that does not hear the owner, or believes so: it ends the session if that has run out.
func (s *steps) members() {
	t := *s.from
	if t.taken || !t.began || t.store == held {
		return
	}
	t.taken = true
	if s.c.keeps(proofIsTheSwap) {
		t.store, t.left = ended, marker
		if !s.c.keeps(endedOutlasts) {
			t.left = 1
		}
	}
	s.add(t, others, "a member ends the session, and takes the owner's shards")
}
