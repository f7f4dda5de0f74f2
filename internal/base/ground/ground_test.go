// Tests of the real ground, and of crews on it.

package ground

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestRealWaits: a wait ends by its bell, which it takes, by its time, and by its context, and says whether it was the
// first.
func TestRealWaits(t *testing.T) {
	var g Ground = Real{}
	bell := make(chan struct{}, 1)
	g.Ring(bell)
	g.Ring(bell)
	require.True(t, g.Wait(t.Context(), Forever, bell))
	require.False(t, g.Wait(t.Context(), time.Nanosecond, bell), "one was taken, and the second ring was none")
	ctx, end := context.WithCancel(t.Context())
	end()
	require.False(t, g.Wait(ctx, Forever, bell))
	g.Close(bell)
	require.True(t, g.Wait(t.Context(), Forever, bell))
	short, cancel := g.Within(t.Context(), time.Nanosecond)
	defer cancel()
	require.False(t, g.Wait(short, Forever, nil))
	require.ErrorIs(t, short.Err(), context.DeadlineExceeded)
}

// TestCrew: Wait returns when all that was begun before is over, also what a member began; an empty one is not waited
// for.
func TestCrew(t *testing.T) {
	c := Crew{On: Real{}}
	c.Wait()
	var done atomic.Int64
	for range 2 {
		for range 20 {
			c.Go(func() { c.Go(func() { done.Add(1) }); done.Add(1) })
		}
		c.Wait()
	}
	require.EqualValues(t, 80, done.Load())
}
