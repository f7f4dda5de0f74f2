// Steps: what may happen next, and what must never be.

package once

import "fmt"

// step is what one leads to.
type step struct {
	to    state
	text  string
	timed bool // time goes by, or somebody gives up
}

// steps returns all that may happen in a state.
func (c *Config) steps(s *state) (all []step) {
	emit := func(to state, timed bool, text string, args ...any) {
		if to != *s {
			all = append(all, step{to, fmt.Sprintf(text, args...), timed})
		}
	}
	for n := range senders {
		c.commits(s, n, emit)
		for i := 1; i <= int(c.Parcels[n]); i++ {
			c.sends(s, n, i, emit)
			for b := range uint8(most + 1) {
				if s.copies[n][i].has(int(b)) {
					c.receives(s, n, i, b, false, emit)
				}
				if s.voids[n][i].has(int(b)) {
					c.receives(s, n, i, b, true, emit)
				}
			}
			c.hears(s, n, i, emit)
		}
		c.moves(s, n, emit)
	}
	c.stores(s, emit)
	c.passes(s, emit)
	return all
}

type emits = func(to state, timed bool, text string, args ...any)

// view is what the owner of a sender takes to be in the outbox: all but what it knows to be handled.
func (f *sender) view() set { return f.outbox &^ f.handled &^ f.blind }

// near returns the number of the nearest parcel before i in a set, 0 for none.
func (f *sender) near(in set, i int) uint8 {
	for m := i - 1; m > 0; m-- {
		if in.has(m) {
			return f.number[m]
		}
	}
	return 0
}

// commits: a sender makes a parcel, deletes its record, and commits that parcels have left the outbox.
func (c *Config) commits(s *state, n int, emit emits) {
	f := &s.from[n]
	if f.made < c.Parcels[n] && !f.draft {
		t := *s
		t.from[n].draft = true
		i := f.made + 1
		t.from[n].number[i] = i - f.reused
		emit(t, false, "sender %d begins to commit parcel %d with number %d", n, i, i-f.reused)
	}
	if f.draft {
		t := *s
		g, i := &t.from[n], int(f.made)+1
		g.draft, g.made = false, uint8(i)
		g.outbox |= only(i)
		if !c.keeps(beforeIsNow) {
			g.before[i] = f.near(f.view(), i)
		}
		emit(t, false, "the commit of parcel %d of sender %d takes place", i, n)
	}
	if s.deletes < c.Deletes && f.made > 0 && !f.draft {
		t := *s
		t.deletes++
		g := &t.from[n]
		if !c.keeps(numbersGoOn) {
			g.reused = f.made
		}
		if !c.keeps(outboxStays) {
			g.outbox = 0
		}
		emit(t, false, "the record of sender %d is deleted", n)
	}
	if gone := f.outbox & (f.handled | f.void); gone != 0 {
		t := *s
		g := &t.from[n]
		g.outbox &^= gone
		g.undone |= gone & f.void &^ f.handled
		g.handled, g.void = f.handled&^gone, f.void&^gone
		emit(t, false, "sender %d commits that parcels have left its outbox", n)
	}
}

// sends: a parcel is sent by its sender's owner, or the one before.
func (c *Config) sends(s *state, n, i int, emit emits) {
	f := &s.from[n]
	draft := !c.keeps(sentAfterCommit) && f.draft && i == int(f.made)+1
	for _, in := range []set{f.view(), f.old} {
		if !in.has(i) && !draft {
			continue
		}
		b := f.near(in, i)
		switch {
		case !c.keeps(namesBefore):
			b = 0
		case !c.keeps(beforeIsNow):
			b = f.before[i]
		}
		t := *s
		t.copies[n][i] |= only(int(b))
		emit(t, false, "parcel %d of sender %d is sent, after %d", i, n, b)
		if c.Time && f.age[i] >= voidAge {
			t := *s
			t.voids[n][i] |= only(int(b))
			emit(t, false, "sender %d asks that parcel %d be void, after %d", n, i, b)
		}
	}
	if f.outbox.has(i) && !f.blind.has(i) && f.age[i] >= giveUpAge {
		t := *s
		g := &t.from[n]
		g.outbox &^= only(i)
		if c.keeps(voidProves) {
			g.told |= only(i)
		} else {
			g.undone |= only(i)
		}
		emit(t, true, "sender %d gives up parcel %d and says so", n, i)
	}
}

// receives: a copy comes to the receiver's owner, or the wish that the parcel be void.
func (c *Config) receives(s *state, n, i int, b uint8, void bool, emit emits) {
	m, number := &s.memory, s.from[n].number[i]
	switch {
	case number <= m.mark[n]:
		c.known(s, n, i, emit)
		return
	case b > m.mark[n], c.keeps(voidFirst) && b == m.mark[n] && b > 0 && m.void[n]: // a gap
		return
	case c.keeps(refusesOld) && s.from[n].age[i] >= giveUpAge:
		return
	}
	t := *s
	t.memory.mark[n], t.memory.void[n] = number, void
	if void {
		c.answer(&t, n, i, true, c.keeps(ackAfterCommit))
		emit(t, false, "the receiver takes it that parcel %d of sender %d is void", i, n)
		return
	}
	t.memory.times[n][i]++
	c.answer(&t, n, i, false, c.keeps(ackAfterCommit))
	emit(t, false, "the receiver handles parcel %d of sender %d", i, n)
	if s.rejects < c.Rejects {
		t := *s
		t.rejects++
		if c.keeps(voidIsMark) {
			t.memory.mark[n], t.memory.void[n] = number, true
		}
		c.answer(&t, n, i, true, c.keeps(ackAfterCommit))
		emit(t, false, "the receiver's handler refuses parcel %d of sender %d", i, n)
	}
}

// answer makes an answer leave, or wait for the commit.
func (c *Config) answer(t *state, n, i int, void, waits bool) {
	to := &t.acks[n]
	switch {
	case void && waits:
		to = &t.vwaits[n]
	case void:
		to = &t.vacks[n]
	case waits:
		to = &t.waits[n]
	}
	*to |= only(i)
}

// known: a parcel comes that the receiver has had.
func (c *Config) known(s *state, n, i int, emit emits) {
	if !c.keeps(knownAgain) {
		return
	}
	t, number := *s, s.from[n].number[i]
	void := number == s.memory.mark[n] && s.memory.void[n]
	c.answer(&t, n, i, void, c.keeps(knownWaits) && number > s.stored.mark[n])
	emit(t, false, "the receiver knows parcel %d of sender %d", i, n)
}

// hears: the sender's owner gets an answer.
func (c *Config) hears(s *state, n, i int, emit emits) {
	f := &s.from[n]
	if s.acks[n].has(i) && f.view().has(i) {
		t := *s
		t.from[n].handled |= only(i)
		emit(t, false, "sender %d hears that parcel %d was handled", n, i)
	}
	if s.vacks[n].has(i) && f.view().has(i) {
		t := *s
		t.from[n].void |= only(i)
		emit(t, false, "sender %d hears that parcel %d is void", n, i)
	}
}

// moves: a sender has a new owner, which reads what is stored; the one before does not know it yet.
func (c *Config) moves(s *state, n int, emit emits) {
	if s.moves >= c.Moves {
		return
	}
	t, f := *s, &s.from[n]
	t.moves++
	g := &t.from[n]
	g.old = f.view()
	g.draft, g.handled, g.void = false, 0, 0
	if !c.keeps(resentByOwner) {
		g.blind = f.outbox
	}
	emit(t, false, "sender %d has a new owner", n)
}

// stores: the receiver's commit takes place, its answers leave, it has a new owner, its record is deleted.
func (c *Config) stores(s *state, emit emits) {
	switch {
	case s.memory == s.stored:
		if s.waits != [senders]set{} || s.vwaits != [senders]set{} {
			t := *s
			for n := range senders {
				t.acks[n] |= s.waits[n]
				t.vacks[n] |= s.vwaits[n]
			}
			t.waits, t.vwaits = [senders]set{}, [senders]set{}
			emit(t, false, "the receiver's answers leave")
		}
	case !c.keeps(markWithState) && s.stored.times != s.memory.times:
		t := *s
		t.stored.times = s.memory.times
		emit(t, false, "the receiver's state is stored")
	default:
		t := *s
		c.put(&t, s.memory)
		emit(t, false, "the receiver's commit takes place")
	}
	if s.isLate {
		t := *s
		c.put(&t, s.late)
		t.late, t.isLate = receiver{}, false
		emit(t, false, "the commit of the receiver's owner before takes place")
	}
	if s.stops < c.Stops {
		t := *s
		t.stops++
		if !c.keeps(fenced) && s.memory != s.stored {
			t.late, t.isLate = s.memory, true
		}
		t.memory = s.stored
		t.waits, t.vwaits = [senders]set{}, [senders]set{}
		emit(t, false, "the receiver has a new owner")
	}
	if s.cleans < c.Cleans && s.memory == s.stored {
		t := *s
		t.cleans++
		if !c.keeps(marksStay) {
			t.stored.mark, t.stored.void = [senders]uint8{}, [senders]bool{}
		}
		t.memory = t.stored
		emit(t, false, "the receiver's record is deleted")
	}
}

// put stores the receiver's record with its marks.
func (c *Config) put(t *state, r receiver) {
	for n := range senders {
		if r.mark[n] != t.stored.mark[n] {
			t.idle[n] = 0
		}
	}
	t.stored = r
}

// passes: a third of the time that marks are kept goes by. Nothing is under way then that was not before.
func (c *Config) passes(s *state, emit emits) {
	if !c.Time || s.memory != s.stored {
		return
	}
	t := *s
	for n := range senders {
		f := &t.from[n]
		for i := 1; i <= int(f.made); i++ {
			f.age[i] = min(f.age[i]+1, markAge)
		}
		if t.stored.mark[n] == 0 {
			continue
		}
		if t.idle[n]++; t.idle[n] >= markAge || !c.keeps(marksOutlive) {
			t.stored.mark[n], t.stored.void[n], t.idle[n] = 0, false, 0
		}
	}
	t.memory = t.stored
	emit(t, true, "a third of the time that marks are kept goes by")
}

// fault returns what must never be.
func (c *Config) fault(s *state) string {
	for n := range senders {
		f := &s.from[n]
		for i := 1; i <= int(c.Parcels[n]); i++ {
			times := s.stored.times[n][i]
			switch {
			case times > 1:
				return fmt.Sprintf("TWICE: parcel %d of sender %d", i, n)
			case times == 1 && i > int(f.made):
				return fmt.Sprintf("PHANTOM: parcel %d of sender %d was handled, and no commit has it", i, n)
			case times == 1 && f.undone.has(i):
				return fmt.Sprintf("REFUNDED: parcel %d of sender %d was handled", i, n)
			case times == 0 && i <= int(f.made) && !f.outbox.has(i) && !f.told.has(i) && !f.undone.has(i):
				return fmt.Sprintf("LOST: parcel %d of sender %d", i, n)
			}
		}
	}
	return ""
}

// overtaken returns what a step must never do: a parcel is handled for the first time behind a later one.
func (c *Config) overtaken(s, t *state) string {
	for n := range senders {
		for i := 1; i < most; i++ {
			for j := i + 1; j <= most; j++ {
				if s.stored.times[n][i] == 0 && s.stored.times[n][j] > 0 && t.stored.times[n][i] > 0 {
					return fmt.Sprintf("REORDERED: parcel %d of sender %d comes behind parcel %d", i, n, j)
				}
			}
		}
	}
	return ""
}

// rests reports whether nothing has to happen any more.
func (s *state) rests() bool {
	for n := range senders {
		if f := &s.from[n]; f.outbox != 0 || f.draft {
			return false
		}
	}
	return s.memory == s.stored
}

// young reports whether no parcel of an outbox is so old that its sender may give it up.
func (s *state) young() bool {
	for n := range senders {
		f := &s.from[n]
		for i := 1; i <= int(f.made); i++ {
			if f.outbox.has(i) && f.age[i] >= giveUpAge {
				return false
			}
		}
	}
	return true
}
