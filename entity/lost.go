// Lost states: those of a shard that stops without moving, or is lost before it has, and how many a node lost when it
// ended in order; and how each is reported.

package entity

import (
	"errors"
	"fmt"
)

// ErrStatesLost is matched by LostStatesError.
var ErrStatesLost = errors.New("kith: states of entities are lost")

// ErrStateNotMoved is the Err of a StateLost: the shard was stopped, since no other member could be given it in time.
// HandOver was not called, Stop was.
var ErrStateNotMoved = errors.New("kith: no other member could be given the shard")

// LostStatesError says that a node left, and states of its entities reach no next instance, and counts them by type. It
// matches ErrStatesLost. A StateLost incident names each.
type LostStatesError struct {
	Types []LostStates // those of which there are some, in the order of their registration
}

// LostStates counts the states of one type.
type LostStates struct {
	Type   string
	States uint64
}

// Total counts the states of all types.
func (e *LostStatesError) Total() (n uint64) {
	for _, t := range e.Types {
		n += t.States
	}
	return n
}

// Error counts them by type.
func (e *LostStatesError) Error() string {
	s := fmt.Sprintf("%v: %d", ErrStatesLost, e.Total())
	for i, t := range e.Types {
		sep := ","
		if i == 0 {
			sep = ":"
		}
		s += fmt.Sprintf("%s %d of %s", sep, t.States, t.Type)
	}
	return s
}

// Unwrap returns ErrStatesLost.
func (e *LostStatesError) Unwrap() error { return ErrStatesLost }

// LoseStates reports each entity of a shard that is stopped, and does not move, as one with a state that is lost, if it
// has something to hand over; it comes before Stop or Abandon. What AskForState said stands.
func LoseStates(s *Shard) {
	if g := &s.moving.states; (s.phase == serving || s.phase == cut) && !g.asked {
		g.asked, g.room, g.why = true, 0, ErrStateNotMoved
	}
}

// leaveState tells that the state of an entity is lost that was to be asked for it, and ends without.
func leaveState(s *Shard, e *Entity) {
	if !s.moving.asked {
		return
	}
	if a := e.act; a != nil && (a.step == handed || a.left) {
		return
	}
	if _, is := e.h.(Stateful); is {
		loseStateOf(s, e.id, ErrStateLeftBehind)
	}
}

// leaveRun is that of an entity with a run that hangs: in a message, in HandOver, or in Stop. See LeaveBehind.
//
//go:norace
func leaveRun(s *Shard, e *Entity) {
	a := e.act
	_, is := e.h.(Stateful)
	given := a.passage != nil && a.passage.gives != nil
	if s.moving.asked && is && (a.step == handed || a.step == said || given || a.now != nil) {
		a.left = true
		loseStateOf(s, e.id, ErrStateLeftBehind)
	}
}

// dropStates ends the states of a shard that is lost.
func dropStates(s *Shard) {
	for _, st := range rest(s) {
		loseStateOf(s, st.ID, ErrStateLeftBehind)
	}
}

func loseFull(s *Shard, st *State, room int) {
	loseStateOf(s, st.ID, fmt.Errorf("%w: %d bytes, of %d in all", ErrHandOverFull, st.Size(), room))
}

// loseState tells that the state of the entity of c is lost.
func (c *Context) loseState(why error) { loseStateOf(c.s, c.e.id, why) }

func loseStateOf(s *Shard, id string, why error) {
	if s.typ.StateStored {
		return
	}
	text := why.Error()
	s.runtime.Report(Incident{Type: s.typ.Name, ID: id, Shard: s.id, Mode: s.typ.Mode, Kind: StateLost, Err: why,
		Text: text[:min(len(text), MaxIncidentText)]})
}
