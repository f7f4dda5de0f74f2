// What comes beyond a suspended node's backlog: it is refused, counted, told to its senders, and its credit comes back.

package driver

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

// A loop of a suspended node keeps what arrives up to a bound. What is beyond it is refused: asks are answered, tells
// are counted and reported to their sender, and the credit of both comes back at once. What was kept is handled when
// others have confirmed the node, and nothing else is (MEM-10).
func TestBeyondTheBacklogIsRefused(t *testing.T) {
	t.Parallel()
	const kept, beyond = 5, 40
	const frame = wire.EnvelopeSize + len("a") + len("000")
	s := newSleepers(t, func(c *Config) { c.backlog = kept*frame + frame/2 })
	here, there := s.here[entity.Worker], s.there[entity.Worker]
	opened(t, there, there.Shard("a"))
	wakeA, wakeB := s.sleep()
	for range kept {
		require.NoError(t, there.Tell("a", []byte("000")))
	}
	large := make([]byte, s.a.cfg.Window/beyond*3) // all of them are three times what may be under way
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for range beyond {
		require.NoError(t, there.TellWait(ctx, "a", large), "the credit comes back")
	}
	refused := func() uint64 { return here.stats().Refused[route.Suspended.String()] }
	eventually(t, func() bool { return refused() == beyond }) // so the link has room for the ask
	_, err := there.AskWithin(patience, "a", []byte("000"), nil)
	require.ErrorIs(t, err, route.ErrSuspended)
	require.EqualValues(t, beyond+1, refused())
	require.Zero(t, s.handled())

	wakeB()
	wakeA()
	eventually(t, func() bool {
		count, _ := s.undelivered(there.typ.Name, there.Shard("a"))
		return count[route.Suspended] == beyond
	})
	require.EqualValues(t, beyond, there.stats().RefusedRemote)
	whenAwake(t, func() error {
		_, err := there.AskWithin(patience, "a", nil, nil) // behind everything else
		return err
	})
	require.Equal(t, kept, s.handled())
	require.Zero(t, s.early.Load(), "a handler was called while the node was held")
}
