// What comes beyond a suspended node's backlog: it is refused, counted, reported to its senders, and its credit comes
// back with that of the backlog.

package driver

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

// A loop of a suspended node keeps what arrives up to a bound. What is beyond it is refused: asks are answered, tells
// are counted and reported to their sender. The credit of both comes back with that of what was kept, which is handled
// when others have confirmed the node, and nothing else is (MEM-10).
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
	large := make([]byte, s.a.cfg.Window/(beyond+4))
	for range beyond {
		require.NoError(t, there.TellWait(t.Context(), "a", large))
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
	for range 3 * beyond { // three times what may be under way
		whenAwake(t, func() error { return there.TellWait(t.Context(), "a", large) })
	}
	require.Zero(t, s.early.Load(), "a handler was called while the node was held")
}

// A node that ends while it is suspended leaves what it keeps. Its sender reports that as lost, exactly: what was
// answered behind it gave no credit, by which it would count as consumed (SHD-4, MEM-10).
func TestBacklogOfOneThatEndsIsReported(t *testing.T) {
	t.Parallel()
	const frame = wire.EnvelopeSize + len("a") + len("000")
	s := newSleepers(t, func(c *Config) { c.backlog = frame + frame/2 })
	there := s.there[entity.Worker]
	e := opened(t, there, there.Shard("a"))
	wakeA, wakeB := s.sleep()
	require.NoError(t, there.Tell("a", []byte("000")))
	_, err := there.AskWithin(patience, "a", make([]byte, s.a.cfg.Window/2), nil) // its credit would be sent at once
	require.ErrorIs(t, err, route.ErrSuspended, "there is no place for it behind the tell")
	closed := make(chan error, 1)
	go func() { closed <- s.b.Close() }()
	wakeB()
	require.NoError(t, <-closed)
	wakeA()
	require.Zero(t, s.handled())
	whenAwake(t, func() error { return s.a.Down(t.Context(), s.b.self.Addr.String()) })
	eventually(t, func() bool { return isForgotten(e.link.Err()) })
	_, told := s.account()
	require.Equal(t, map[route.Reason]uint64{route.LostInFlight: 1}, told)
}
