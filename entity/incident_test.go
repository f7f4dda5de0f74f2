// An incident as a line.

package entity

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// What a hook gets can be printed and logged as it is (OPS-1).
func TestIncidentAsALine(t *testing.T) {
	for want, i := range map[string]Incident{
		`panicked: trip "7" (shard 3): no driver (and 2 like it before)`: {Kind: Panicked, Type: "trip", ID: "7", Shard: 3,
			Text: "no driver\ngoroutine 1 [running]:", Missed: 2},
		`slow: trip "7" (shard 3) for 20ms, still running`: {Kind: Slow, Type: "trip", ID: "7", Shard: 3,
			Took: 20 * time.Millisecond, Running: true},
		`gave-up: trip "7" (shard 3), 4 tells dropped, 1 asks answered`: {Kind: GaveUp, Type: "trip", ID: "7", Shard: 3,
			Dropped: 4, Answered: 1},
		`state-lost: trip (shard 0): too large`: {Kind: StateLost, Type: "trip", Err: errors.New("too large")},
		`silent for 1s: 10.0.0.1:1`:             {Kind: Silent, Took: time.Second, Text: "10.0.0.1:1"},
	} {
		require.Equal(t, want, fmt.Sprint(i))
		var log strings.Builder
		slog.New(slog.NewTextHandler(&log, nil)).Warn("incident", "what", i)
		require.Contains(t, strings.ReplaceAll(log.String(), `\"`, `"`), want)
	}
}
