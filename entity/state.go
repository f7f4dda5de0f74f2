// State: what an instance hands over to the next one of its entity when its shard moves to another node.

package entity

import (
	"errors"
	"fmt"
	"time"
)

// Stateful is a Handler with a state that moves with its entity. The node calls HandOver of such a handler when its
// shard moves to another node that lives: for balance, by hand, in a drain, when its node leaves. It does not when the
// entity goes for another reason, nor when the node is closed, is downed, or has lost the shard: what must outlive a
// crash belongs in a store. Nor when its node leaves and no other member can be given the shard in time: only Stop is
// called then, and a StateLost incident names each entity. Both methods may block only where a handler of the type's
// Mode may.
type Stateful interface {
	// HandOver returns what the next instance is to know, nil for nothing. It is called once, after the last message and
	// right before Stop, which follows whatever comes of it; c.StopReason is that of Stop. The bytes belong to the node
	// from then on: at most Type.MaxState, and those of a shard share Sharding.MaxHandOver with its messages. An error, a
	// panic, and too many bytes lose this entity's state alone: it is counted, and a StateLost incident names it.
	HandOver(c *Context) (state []byte, err error)
	// TakeUp is called once on the next instance, behind New or Open and before its first message. state is its own. An
	// entity with state is begun without a message, so it may set timers. An error, and a panic, ends the instance as a
	// failed New does (Type.Open), and the state is lost: it is counted, and an incident names it.
	TakeUp(c *Context, state []byte) error
}

// Why a state was lost, as the Err of a StateLost incident; match with errors.Is.
var (
	// ErrStateTooLarge: HandOver returned more than Type.MaxState.
	ErrStateTooLarge = errors.New("kith: the state of an entity is too large")
	// ErrHandOverFull: there was no room for it beside the messages and other states that the shard hands over.
	ErrHandOverFull = errors.New("kith: what a shard hands over has no room left")
	// ErrHandOverFailed: HandOver returned an error, or panicked.
	ErrHandOverFailed = errors.New("kith: an entity did not hand over its state")
	// ErrStateRefused: TakeUp returned an error or panicked, or the next instance has none.
	ErrStateRefused = errors.New("kith: the next instance did not take the state")
	// ErrStateNotSpoken: the next owner speaks a wire version without it. HandOver was not called, Stop was.
	ErrStateNotSpoken = errors.New("kith: the next owner knows nothing of states")
	// ErrStateLeftBehind: the shard was lost, or went on without what had been handed over.
	ErrStateLeftBehind = errors.New("kith: the shard went on without the state")
)

// State is what an instance has handed over.
type State struct {
	ID    string
	Bytes []byte
}

// StateOverhead is what a state counts beyond its id and its bytes, wherever it lies.
const StateOverhead = 16

// Size is what the state counts against bounds.
func (st *State) Size() int { return len(st.ID) + len(st.Bytes) + StateOverhead }

// states is what a shard knows of states: those that its instances hand over, and those that came with it.
type states struct {
	asked bool  // the shard moves, and its entities are asked
	room  int   // for all that they hand over; zero: nobody takes any
	why   error // nobody does
	out   []State
	size  int // of out

	in    map[string]*inherited // of the last owner: no instance has it, and no run is about to give it to one
	order []*inherited          // all that came, until none is left
	begun int                   // for how many of them an instance was begun
	held  int                   // those that runs are about to give to an instance
}

// inherited is a state that came with the shard. It counts against the budget until an instance was tried for it. One
// that could not be made leaves it to the next message of its entity, which may never come, and what is held for ever
// of a bound is room that senders wait for in vain.
type inherited struct {
	State
	counts bool
}

// countsNoMore gives back what the state has of the budget.
func (st *inherited) countsNoMore(s *Shard) {
	if st.counts {
		st.counts = false
		s.lease.give(st.Size())
	}
}

// AskForState asks the entities of a shard that moves for their state when they stop; it comes before Stop. room
// bounds what they hand over, in bytes; zero: the next owner takes none, and each state that is there is reported as
// lost.
func AskForState(s *Shard, room int) {
	if s.phase == serving || s.phase == cut {
		s.moving.asked, s.moving.room, s.moving.why = true, room, ErrStateNotSpoken
	}
}

// bring gives the shard the states that came with it.
func bring(s *Shard, list []State) {
	if len(list) == 0 {
		return
	}
	g := &s.moving.states
	g.in = make(map[string]*inherited, len(list))
	for i := range list {
		b := append([]byte{}, list[i].Bytes...) // one that waits for long holds no other's memory
		st := &inherited{State{list[i].ID, b}, true}
		g.in[st.ID], g.order = st, append(g.order, st)
		s.lease.take(st.Size(), scant)
	}
}

// begins reports whether there are states for which no instance was begun yet.
func (g *states) begins() bool { return g.begun < len(g.order) }

// nextBegin is when beginStates has something to do: soon, where as many as may be are on their way.
func nextBegin(s *Shard) time.Duration {
	if s.typ.Mode == Blocking && s.halting >= haltingMost {
		return s.now + lookAgain
	}
	return s.now
}

// beginStates makes instances for the next of the entities that got their states, at most so many: one that lived goes
// on living without a message, for it may have had timers. One that cannot be made now is made for its next message.
func beginStates(s *Shard, most int) {
	g := &s.moving.states
	for n := 0; n < most && g.begins(); n++ {
		if s.typ.Mode == Blocking && s.halting >= haltingMost && s.phase == serving {
			return
		}
		st := g.order[g.begun]
		if g.begun++; g.in[st.ID] == st && !beginOne(s, st.ID) && g.in[st.ID] == st {
			st.countsNoMore(s)
		}
	}
}

// beginOne makes the instance of an entity with a state, or of one that is remembered. It reports whether the end of a
// run will tell whether it could: it cannot while the entity rests after a failure.
func beginOne(s *Shard, id string) (later bool) {
	e := s.table.find(HashID([]byte(id)), []byte(id))
	switch {
	case e != nil && e.place&hurt != 0 && s.rests(e):
		return false
	case e != nil && (e.act != nil || e.h != nil):
		return e.act != nil // a message comes first
	case e == nil:
		if e = enroll(s, id); e == nil {
			return false
		}
	}
	if s.typ.Mode == Blocking {
		s.put(e, record{from: begins{}}, nil, nil, scant)
		e.act.begins, e.act.paced = true, true
		s.halting++
		return true
	}
	began, c := s.enter(e)
	c.timerRoom = MaxTimers - e.running()
	c.open(nil, 0)
	begin(c)
	s.leave(c, began)
	s.handled(c, e)
	return false
}

// brought returns the state that the instance of c is to get, nil for none.
func brought(c *Context) *inherited {
	if c.s.typ.Mode != Blocking {
		return c.s.moving.in[c.e.id]
	}
	if p := c.e.act.passage; p != nil && !p.taken {
		return p.brings
	}
	return nil
}

// inherit gives a new instance the state that waits for it. It returns false, and failed becomes why, when the instance
// is to end.
func inherit(c *Context, h Handler, failed *[]byte) bool {
	st := brought(c)
	if st == nil {
		return true
	}
	b := st.Bytes
	if c.s.typ.Mode == Blocking {
		c.e.act.passage.taken = true // the end of the run gives it back to the bounds
	} else {
		delete(c.s.moving.in, st.ID)
		passed(c.s, st)
	}
	to, is := h.(Stateful)
	if !is {
		c.loseState(fmt.Errorf("%w: %d bytes, and %T has no TakeUp", ErrStateRefused, len(b), h))
		return true
	}
	if !callTakeUp(c, to, b, failed) {
		return false
	}
	c.tally.TakenUp++
	return true
}

// callTakeUp calls TakeUp, which is not given the ask. When that failed, failed becomes why, and the state is lost.
func callTakeUp(c *Context, to Stateful, state []byte, failed *[]byte) (ok bool) {
	from, headers, size, returned := c.from, c.headers, len(state), false
	c.from, c.headers = nil, nil
	enterCall(c)
	defer func() {
		leaveCall(c)
		c.from, c.headers, c.passivate = from, headers, false
		if v := recover(); v != nil || !returned {
			*failed = c.caught(v)
		}
		if !ok {
			c.loseState(fmt.Errorf("%w: %d bytes: %s", ErrStateRefused, size, *failed))
		}
	}()
	if err := to.TakeUp(c, state); err != nil {
		*failed = append([]byte{}, errorText(err)...)
	} else {
		ok = true
	}
	returned = true
	return ok
}

// passed ends a state that came with the shard and was given to an instance, or is lost.
func passed(s *Shard, st *inherited) {
	st.countsNoMore(s)
	st.Bytes = nil
	if g := &s.moving.states; len(g.in)+g.held == 0 {
		g.in, g.order, g.begun = nil, nil, 0
	}
}

// asked reports whether instances are asked for their state: their shard moves.
func asked(c *Context) bool {
	if c.s.typ.Mode == Blocking { // without the lock
		p := c.e.act.passage
		return p != nil && p.asked
	}
	return c.s.moving.asked
}

// asks reports whether an instance that is about to stop is asked for its state: its shard moves.
func asks(c *Context, why StopReason) (h Stateful, ok bool) {
	if !asked(c) || why != StopMoved && why != StopLeaving {
		return nil, false
	}
	h, ok = c.e.h.(Stateful)
	return h, ok
}

// handOver asks an instance for its state.
func handOver(c *Context, h Stateful, why StopReason) {
	s := c.s
	if s.moving.room == 0 {
		c.loseState(s.moving.why)
		return
	}
	switch b := callHandOver(c, h, why); {
	case b == nil:
	case len(b) > s.typ.MaxState:
		c.loseState(fmt.Errorf("%w: %d bytes, at most %d", ErrStateTooLarge, len(b), s.typ.MaxState))
	case s.typ.Mode == Blocking:
		c.e.act.passage.gives = &State{c.e.id, b}
	default:
		give(s, State{c.e.id, b})
	}
}

// callHandOver calls HandOver. It returns nil when there is no state, or when that failed and the state is lost.
func callHandOver(c *Context, h Stateful, why StopReason) (b []byte) {
	c.from, c.halting, c.fired, c.why = nil, true, false, why
	c.limit, c.headers = 0, nil
	var failed []byte
	returned := false
	defer func() {
		leaveCall(c)
		c.s.runtime.Returned(c.e, HandOverCall)
		c.halting = false
		if v := recover(); v != nil || !returned {
			failed = c.caught(v)
		}
		if failed != nil {
			b = nil
			c.loseState(fmt.Errorf("%w: %s", ErrHandOverFailed, failed))
		}
	}()
	c.s.runtime.Calling(c.e, HandOverCall)
	enterCall(c)
	b, err := h.HandOver(c)
	if err != nil {
		failed = append([]byte{}, errorText(err)...)
	}
	returned = true
	return b
}

// give keeps a state until the shard has stopped.
func give(s *Shard, st State) {
	g := &s.moving.states
	switch {
	case s.phase == abandoned:
		loseStateOf(s, st.ID, ErrStateLeftBehind)
		return
	case st.Size() > g.room-g.size:
		loseFull(s, &st, g.room)
		return
	}
	g.out, g.size = append(g.out, st), g.size+st.Size()
	s.stats.HandedOver++
	s.lease.take(st.Size(), scant)
}

// passIn gives a run of e what waits for its next instance, and says whether that is asked for its state.
func passIn(s *Shard, e *Entity) {
	p, g := &passage{}, &s.moving.states
	e.act.passage = p
	p.asked = s.phase != serving && g.asked
	if st := g.in[e.id]; st != nil && e.h == nil {
		p.brings = st
		delete(g.in, e.id)
		g.held++
	}
}

// passOut ends that: what no instance has got waits on.
func passOut(s *Shard, a *activity) {
	p, g := a.passage, &s.moving.states
	a.passage = nil
	if st := p.brings; st != nil {
		g.held--
		switch {
		case p.taken:
			passed(s, st)
		case s.phase == abandoned:
			passed(s, st)
			loseStateOf(s, st.ID, ErrStateLeftBehind)
		default:
			if g.in[st.ID] = st; !p.tried {
				g.order = append(g.order, st) // what came first was no message for a handler: it begins without one
			} else {
				st.countsNoMore(s)
			}
		}
	}
	if p.gives != nil && !a.left {
		give(s, *p.gives)
	}
}

// TakeStates returns what a shard that has stopped hands over: states that its instances gave, and those that came with
// it and that no instance has got. What has no room is lost. The shard forgets them; they are the caller's.
func TakeStates(s *Shard, room int) []State {
	all := rest(s)
	kept := all[:0]
	for i := range all {
		if room -= all[i].Size(); room < 0 {
			room += all[i].Size()
			loseFull(s, &all[i], s.moving.room)
			continue
		}
		kept = append(kept, all[i])
	}
	return kept
}

// Claimed returns how many bytes of the budget s has claimed, timers that run aside, and how many of them states have
// that came with it and wait for an instance to be begun. It is for checkers; the shard's lock is held.
func Claimed(s *Shard) (all, states int) {
	for _, st := range s.moving.in { // a sum: no order
		if st.counts {
			states += st.Size()
		}
	}
	return s.lease.held, states
}

// rest takes all states that the shard holds, in the order in which they came.
func rest(s *Shard) (all []State) {
	g := &s.moving.states
	for _, st := range g.order {
		if g.in[st.ID] == st {
			st.countsNoMore(s)
			all = append(all, st.State)
			delete(g.in, st.ID)
		}
	}
	for i := range g.out {
		s.lease.give(g.out[i].Size())
	}
	all = append(all, g.out...)
	g.out, g.size = nil, 0
	if g.held == 0 {
		g.in, g.order, g.begun = nil, nil, 0
	}
	return all
}
