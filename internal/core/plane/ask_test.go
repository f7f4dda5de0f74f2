// Tests of the table of waiters: a law over its use, its time limits, and what a reply is to the waiter that it names.

package plane

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// A reply is due only to the ask of its correlation, while that waits, and from the node that it went to (SEC-5).
func TestJudge(t *testing.T) {
	const corr = 7<<32 | 3
	for _, c := range []struct {
		state AskState
		asked bool
		want  Verdict
	}{
		{0, true, Late},
		{Waiting(corr), true, Due},
		{Waiting(corr), false, Foreign},
		{Waiting(corr).Settled(), true, Late},
		{Waiting(corr + 1<<32), true, Late},
		{Waiting(corr + 1<<32), false, Late},
		{Waiting(corr - 1<<32), true, Late},
		{Waiting(corr).SentTo(MaxAskNode), true, Due},
		{Waiting(corr).SentTo(5).SentTo(6), false, Foreign},
		{Waiting(corr).SentTo(5).Settled(), true, Late},
	} {
		require.Equal(t, c.want, c.state.Judge(corr, c.asked), "%x", uint64(c.state))
	}
	require.True(t, Waiting(corr).Waits())
	require.False(t, Waiting(corr).Settled().Waits())
	require.False(t, AskState(0).Waits())
	require.Equal(t, Late, AskState(0).Judge(0, true), "a tell asks nothing")
	require.Equal(t, uint32(2), AskIndex(corr))
	const last = math.MaxUint32<<32 | 3 // generations touch no number of a node
	require.Equal(t, Waiting(last), Waiting(last).SentTo(MaxAskNode).SentTo(0))
	require.NotEqual(t, Waiting(last), Waiting(last).SentTo(1))
	require.True(t, Waiting(last).SentTo(7).WaitsFor(last))
}

// However waiters are taken and given back: each is used by one ask at a time, no correlation comes twice, and an ask
// that has not been given back is reported once to be over, never before its time and at the first tick after it.
func TestAsksLaw(t *testing.T) {
	type use struct {
		ask  *Ask
		due  int64
		over bool
	}
	rapid.Check(t, func(t *rapid.T) {
		var table Asks
		waiters := make([]Ask, rapid.IntRange(1, 12).Draw(t, "waiters"))
		for i := range waiters {
			table.Add(&waiters[i], uint32(3*i))
		}
		seen, under, tick := map[uint64]bool{}, map[uint64]*use{}, int64(0)
		var order []uint64
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			switch rapid.IntRange(0, 4).Draw(t, "verb") {
			case 0, 1:
				u := &use{due: tick + WheelTicks(time.Duration(rapid.Int64Range(-1, int64(12*time.Second)).Draw(t, "limit")))}
				require.Equal(t, len(under) == len(waiters), table.Full(), "a waiter is found as long as there is one")
				if table.Full() {
					continue
				}
				u.ask = table.Begin(u.due)
				corr := u.ask.Corr()
				require.NotZero(t, corr)
				require.False(t, seen[corr], "a correlation came twice")
				require.Equal(t, u.ask.Index(), AskIndex(corr))
				seen[corr], under[corr] = true, u
				order = append(order, corr)
			case 2, 3:
				if len(order) == 0 {
					continue
				}
				at := rapid.IntRange(0, len(order)-1).Draw(t, "which")
				corr := order[at]
				table.End(under[corr].ask)
				delete(under, corr)
				order = slices.Delete(order, at, at+1)
			default:
				tick += rapid.Int64Range(0, 1500).Draw(t, "ticks")
				for _, corr := range table.Advance(tick, nil) {
					u := under[corr]
					require.NotNil(t, u, "nobody uses it")
					require.False(t, u.over, "told twice")
					require.LessOrEqual(t, u.due, tick, "told early")
					u.over = true
				}
				for _, u := range under {
					require.Equal(t, u.due <= tick, u.over)
				}
			}
			require.Equal(t, len(under), table.Underway())
			require.Equal(t, len(waiters), table.Made())
		}
	})
}

// The time is certainly over after so many ticks, whenever within the first one it began, and not two ticks later.
func TestWheelTicks(t *testing.T) {
	for _, d := range []time.Duration{1, WheelTick - 1, WheelTick, WheelTick + 1, 10 * WheelTick, time.Hour} {
		n := time.Duration(WheelTicks(d)) * WheelTick
		require.GreaterOrEqual(t, n-WheelTick, d-WheelTick+1)
		require.GreaterOrEqual(t, n-(WheelTick-1), d, "begun at the end of a tick")
		require.Less(t, n, d+2*WheelTick)
	}
	require.EqualValues(t, 1, WheelTicks(0))
	require.EqualValues(t, 1, WheelTicks(-time.Second))
}
