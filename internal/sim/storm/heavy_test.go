// Storms for the account: what they meet, and that what is lacking in the equation is named.

package storm

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/base/long"
	"github.com/kith-io/kith/internal/sim/check"
)

// TestAccounts: storms of heavy traffic break no rule and meet every end that a message may have; what is accepted is
// handled, reported, or lost for a reason that has a name, but for what is counted apart (ACC-1).
func TestAccounts(t *testing.T) { accounts(t, 3) }

// TestLongAccounts runs so many that every end comes about.
func TestLongAccounts(t *testing.T) {
	long.Test(t)
	r := accounts(t, 24)
	require.Positive(t, r.Lost[check.ReceiverKilled], "no message was lost with a receiver that was killed")
	require.Len(t, r.Forms, 12, "tells, asks, and large ones, in each mode: not all were accepted")
}

func accounts(t *testing.T, seeds int) Result {
	r := Run(Config{Seeds: seeds, First: 25, Heavy: true, TraceDir: t.TempDir()})
	for _, f := range r.Failures {
		for _, v := range f.Violations {
			t.Errorf("seed %d: %s (%s)", f.Seed, v, f.Replay)
		}
	}
	lost := 0
	for _, n := range r.Lost {
		lost += n
	}
	require.Equal(t, r.Accepted, r.Handled+r.Reported+lost+r.Difference-r.Lacking[check.TooOften],
		"accepted, and handled, reported, lost, or counted apart")
	require.Positive(t, r.Lost[check.SenderEnded], "no message was lost with a sender that ended")
	require.Greater(t, r.Reported, 100*seeds, "fewer than 100 messages a storm were reported to their senders")
	require.Positive(t, r.Moves, "no shard moved")
	return r
}
