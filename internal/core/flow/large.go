// LargeState: how far a large message has come, at either end, and the one table of its steps.

package flow

import "fmt"

// LargeState is how far a large message has come. Both ends go through the same states.
type LargeState uint8

// The states of a large message.
const (
	LargeWaits  LargeState = 0 // at its sender for its turn among the messages to its shard, at its receiver for room
	LargeMoving LargeState = 1 // its payload is on the way
	LargeWhole  LargeState = 2 // the receiver has all of it
	LargeSent   LargeState = 3 // the envelope that stands for it has gone, or has come: an entity has it, or may have it
	LargeOver   LargeState = 4 // its end has been reported to the goroutine that waits for it

	largeStates = 5
)

// LargeEvent is what moves a large message on.
type LargeEvent uint8

// The events of a large message.
const (
	LargeBegins  LargeEvent = 0 // its sender gives it to a connection, its receiver has room for it
	LargeArrives LargeEvent = 1 // the last of it is there
	LargeGoes    LargeEvent = 2 // its envelope goes, or comes
	LargeReturns LargeEvent = 3 // it has not been taken where it went, or is called back: it waits for the next home
	LargeEnds    LargeEvent = 4 // it is taken, refused, lost, given up

	largeEvents = 5
)

// largeSteps is the state after each event in each state. What is not here is no step: -1.
var largeSteps = [largeStates][largeEvents]int8{
	//           begins               arrives             goes               returns             ends
	LargeWaits:  {int8(LargeMoving), -1, -1, -1, int8(LargeOver)},
	LargeMoving: {-1, int8(LargeWhole), -1, int8(LargeWaits), int8(LargeOver)},
	LargeWhole:  {-1, -1, int8(LargeSent), int8(LargeWaits), int8(LargeOver)},
	LargeSent:   {-1, -1, -1, -1, int8(LargeOver)},
	LargeOver:   {-1, -1, -1, -1, -1},
}

// Step takes an event and reports whether it is one in this state; if not, nothing changes.
func (s *LargeState) Step(e LargeEvent) bool {
	next := largeSteps[*s][e]
	if next < 0 {
		return false
	}
	*s = LargeState(next)
	return true
}

// String names the state.
func (s LargeState) String() string {
	names := [largeStates]string{"waits", "moving", "whole", "sent", "over"}
	if int(s) < len(names) {
		return names[s]
	}
	return fmt.Sprintf("large-%d", uint8(s))
}
