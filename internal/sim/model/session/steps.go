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
	s.probes()
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
	if s.taken && !s.over && !s.still && !s.asleep && (s.batch || s.sure > 0) {
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
	if t.asleep {
		s.add(t, fair, "a tick, and the owner's machine sleeps")
		return
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
	if s.sleeps(); t.asleep {
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
	if t.doubt != sure {
		s.hears()
		return
	}
	for i := range s.from.calls {
		s.asks(i)
	}
}

// sleeps has the owner's machine sleep and wake, and its wall clock be set.
func (s *steps) sleeps() {
	t := *s.from
	if t.asleep {
		t.asleep = false
		s.c.stepped(&t)
		s.add(t, fair, "the owner's machine wakes, and its wall clock has stepped")
		return
	}
	if t.still {
		return
	}
	if t.sleeps < s.c.Sleeps {
		t.sleeps++
		t.asleep = true
		s.add(t, fault, "the owner's machine sleeps, and its clock stands")
	}
	if t = *s.from; t.sets < s.c.Sets {
		t.sets++
		s.c.stepped(&t)
		s.add(t, fault, "the owner's wall clock is set forward")
	}
}

// stepped is what the owner does when it sees that its wall clock has stepped: for how long it slept nobody knows.
func (c *Config) stepped(t *state) {
	under := t.calls[0].on || t.calls[1].on
	switch {
	case !t.began: // nothing lives there, and no answer counts
		for i := range t.calls {
			t.calls[i].age = ttl
		}
		return
	case t.sure == 0 || under && c.keeps(noneUnderWay):
		t.over, t.batch = true, false
		return
	}
	if t.doubt = asks; !c.keeps(asksItself) {
		t.doubt = sure
	}
	if !c.keeps(asksAnew) {
		t.kept = t.sure
	}
	t.sure = 0
	c.reads(t)
}

// hears has the owner hear what became of its attempt to end its own session.
func (s *steps) hears() {
	t := *s.from
	switch t.doubt {
	case isHeld:
		t.doubt = sure
		if t.kept > 0 {
			t.sure, t.kept, t.without = t.kept, 0, 0
		}
		s.add(t, fair, "the owner hears that its session is held, so it did not sleep, and asks anew")
	case ranOut:
		t.over, t.batch = true, false
		s.add(t, fair, "the owner hears that its session had run out, and ends")
	}
}

// probes is what the store does with that attempt, at any time later.
func (s *steps) probes() {
	t := *s.from
	if t.doubt != asks {
		return
	}
	if t.doubt = isHeld; t.store != held {
		t.doubt, t.store, t.left = ranOut, ended, marker
	}
	s.add(t, fair, "the store carries out the owner's attempt to end its own session")
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
