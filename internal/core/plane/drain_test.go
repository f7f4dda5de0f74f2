// Tests of draining: every step, what stays in the slot after it, and what comes of the slot.

package plane

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/core/flow"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

// waiting returns a slot in which messages with the ids 0 to n-1 wait, and which leads to a home.
func waiting(t *testing.T, n int) *flow.Slot {
	s := flow.MakeSlot(flow.NewParking(0, 1<<16, time.Minute, nil))
	for i := range n {
		require.NoError(t, s.Park(0, &wire.Envelope{Type: 1, Shard: 2, Payload: []byte("p")}, strconv.Itoa(i)))
	}
	home := peer.ID{Addr: peer.MustAddr("10.0.0.1:1"), Inc: 1}
	require.True(t, s.Resolve(false, home, route.MakeFence(9, 3, 4)))
	return &s
}

// All goes in order, under the fence of the home, and the slot opens behind the last one (SHD-4).
func TestDrainInOrder(t *testing.T) {
	s := waiting(t, 5)
	var ids []string
	require.Equal(t, Sent, Drain(s, func(e *wire.Envelope, frame []byte) Step {
		require.Equal(t, flow.Draining, s.State(), "it opens behind the last one")
		require.EqualValues(t, 3, e.Term)
		require.EqualValues(t, 4, e.Epoch)
		require.NotZero(t, e.Flags&wire.FlagParked)
		require.Len(t, frame, wire.SizeEnvelope(1, 1))
		ids = append(ids, string(e.ID))
		return Sent
	}))
	require.Equal(t, []string{"0", "1", "2", "3", "4"}, ids)
	require.Equal(t, flow.Remote, s.State())
}

// What the home does not take stays at the head, and comes first the next time.
func TestDrainStops(t *testing.T) {
	for step, want := range map[Step]flow.State{Moving: flow.Draining, NoRoom: flow.Draining, NoHome: flow.Unknown} {
		s := waiting(t, 3)
		taken := 0
		require.Equal(t, step, Drain(s, func(*wire.Envelope, []byte) Step {
			if taken == 1 {
				return step
			}
			taken++
			return Sent
		}))
		require.Equal(t, want, s.State())
		n, _ := s.Parked()
		require.Equal(t, 2, n)
		_, expires := s.Next()
		require.Equal(t, step != Moving, expires, "what is behind a payload on its way does not run out of time")
		if step == NoHome {
			require.True(t, s.Want(), "it is asked for again")
			continue
		}
		require.Equal(t, Sent, Drain(s, func(e *wire.Envelope, _ []byte) Step {
			require.Equal(t, strconv.Itoa(taken), string(e.ID))
			taken++
			return Sent
		}))
		require.Equal(t, 3, taken)
	}
}
