// Callers that wait for room of which nobody tells.

package world

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/sim/setup"
)

// TestWaitersPollTogether has many wait for room of which nobody tells. However often they have been woken, all try
// every waitPoll, once: each wake began a series of attempts for ever (storm 1127910771).
func TestWaitersPollTogether(t *testing.T) {
	typ := &EntityType{Type: entity.Type{Name: "full", Shards: 1, Mode: entity.Inline,
		New: func(string, route.Fence) entity.Handler { return handlerFunc(nil) }}}
	w := formed(t, 1, setup.Config{}, typ)
	p := w.Hosts[0].Process
	const waiters, polls = 10, 10
	tries := 0
	for range waiters {
		p.Region(route.TypeOf("full")).TellWait("e0", func() error {
			tries++
			return route.ErrParkFull
		})
	}
	for range 20 {
		w.Advance(waitPoll / 37)
		p.wakeWaiting()
	}
	w.Advance(waitPoll)
	tries = 0
	w.Advance(polls * waitPoll)
	require.Equal(t, waiters*polls, tries)
}
