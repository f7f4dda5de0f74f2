// Tests of what health checks say of a node while its control goroutine stands still (OPS-1).

package driver

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/membership"
)

// Two seconds without a step, and the node is sent no work; at the limit of its gate it is suspended; behind the
// takeover time waiting does not help any more. The answers come from a node while its control goroutine is held.
func TestHealthOfANodeThatDoesNotStep(t *testing.T) {
	d, err := Start(context.Background(), Config{Name: "test"}.WithDefaults())
	require.NoError(t, err)
	require.NoError(t, d.Ready(t.Context()))
	held, in := make(chan struct{}), make(chan struct{})
	require.True(t, d.inbox.post(func() { close(in); <-held }))
	<-in
	stepped, limit := -d.exec.Gate.StepAge(0), d.exec.Gate.Limit()
	require.Equal(t, 8500*time.Millisecond, limit, "docs/operations.md names twice this")
	for _, c := range []struct {
		age            time.Duration
		state          membership.NodeState
		stalled, stuck bool
	}{
		{stalledAfter - 1, membership.StateReady, false, false},
		{stalledAfter, membership.StateReady, true, false},
		{limit, membership.StateReady, true, false},
		{limit + 1, membership.StateSuspended, true, false},
		{2 * limit, membership.StateSuspended, true, false},
		{2*limit + 1, membership.StateSuspended, true, true},
	} {
		d.health.clock = func() time.Duration { return stepped + c.age }
		h := d.Health()
		require.Equal(t, []any{c.state, c.stalled, c.stuck}, []any{h.State, h.Stalled != 0, h.Stuck}, c.age)
		if c.stalled {
			require.Contains(t, h.Reason, "the control goroutine has not stepped for ")
			require.Equal(t, c.age, h.Stalled)
		}
	}
	d.health.clock = d.now
	close(held)
	require.NoError(t, d.Close())
	require.False(t, d.Health().Stuck)
	require.Equal(t, membership.StateEnded, d.Health().State)
}
