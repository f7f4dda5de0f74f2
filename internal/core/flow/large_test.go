// Tests of the table of states of a large message.

package flow

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Each step of the table, and that nothing else is one: what is sent never comes back, what is over stays so (SHD-9).
func TestLargeSteps(t *testing.T) {
	steps := map[[2]int]LargeState{
		{int(LargeWaits), int(LargeBegins)}:   LargeMoving,
		{int(LargeMoving), int(LargeArrives)}: LargeWhole,
		{int(LargeWhole), int(LargeGoes)}:     LargeSent,
		{int(LargeMoving), int(LargeReturns)}: LargeWaits,
		{int(LargeWhole), int(LargeReturns)}:  LargeWaits,
		{int(LargeWaits), int(LargeEnds)}:     LargeOver,
		{int(LargeMoving), int(LargeEnds)}:    LargeOver,
		{int(LargeWhole), int(LargeEnds)}:     LargeOver,
		{int(LargeSent), int(LargeEnds)}:      LargeOver,
	}
	for from := LargeWaits; from < largeStates; from++ {
		for e := LargeBegins; e < largeEvents; e++ {
			s := from
			next, is := steps[[2]int{int(from), int(e)}]
			require.Equal(t, is, s.Step(e), "%s, event %d", from, e)
			if !is {
				next = from
			}
			require.Equal(t, next, s)
		}
	}
	require.Equal(t, "whole", LargeWhole.String())
	require.Equal(t, "large-9", LargeState(9).String())
}
