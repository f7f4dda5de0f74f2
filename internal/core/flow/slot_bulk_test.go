// Tests of a slot with a large message in its queue: order behind it, time limits, a home that changes meanwhile.

package flow

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

func ticket(key uint64) *wire.Envelope {
	return &wire.Envelope{Flags: wire.FlagBulk, Type: 1, Shard: 2, Payload: wire.AppendU64(nil, key)}
}

// head returns the flags and payload of what the slot would send next.
func head(t *testing.T, s *Slot) (uint8, string) {
	frame, ok := s.PeekParked()
	require.True(t, ok)
	var e wire.Envelope
	require.NoError(t, wire.ParseEnvelope(frame, &e))
	return e.Flags, string(e.Payload)
}

// TestSlotHoldsLaterMessagesBehindALargeOne: an open slot parks again, in order, and opens when all of it has gone
// (SHD-9).
func TestSlotHoldsLaterMessagesBehindALargeOne(t *testing.T) {
	s := MakeSlot(NewParking(3, 0, time.Second, nil))
	f := route.MakeFence(1, 2, 3)
	require.True(t, s.Resolve(false, home1, f))
	require.Equal(t, Remote, s.State())
	require.NoError(t, s.Hold(0, ticket(9), "a"))
	require.Equal(t, Draining, s.State())
	require.NoError(t, s.Park(0, &wire.Envelope{Payload: []byte("later")}, "a"))
	require.NoError(t, s.Hold(0, ticket(10), "a"))
	require.ErrorIs(t, s.Hold(0, ticket(11), "a"), route.ErrParkFull, "the bound holds for them too")
	flags, payload := head(t, &s)
	require.Equal(t, wire.FlagBulk|wire.FlagParked, flags)
	require.Equal(t, string(wire.AppendU64(nil, 9)), payload)
	require.False(t, s.OpenIfDrained())
	s.PopParked()
	_, payload = head(t, &s)
	require.Equal(t, "later", payload)
	s.PopParked()
	s.PopParked()
	require.True(t, s.OpenIfDrained())
	require.Equal(t, Remote, s.State())
	require.Equal(t, f, s.Fence(), "the home has not changed")
	require.Equal(t, home1, s.Home())
}

// TestSlotRefusedHoldChangesNothing: an open slot stays open.
func TestSlotRefusedHoldChangesNothing(t *testing.T) {
	s := MakeSlot(NewParking(0, 60, time.Second, nil))
	s.Resolve(true, home1, route.MakeFence(1, 2, 3))
	require.ErrorIs(t, s.Hold(0, ticket(1), "an id that makes it longer than the bound"), route.ErrParkFull)
	require.Equal(t, Local, s.State())
}

// TestSlotDoesNotFailWhatIsOnItsWay: the time limit counts for a large message until it is on its way, and again when
// its home is lost; what waits behind it waits with it.
func TestSlotDoesNotFailWhatIsOnItsWay(t *testing.T) {
	s := MakeSlot(NewParking(0, 0, time.Second, nil))
	require.NoError(t, s.Hold(0, ticket(1), "a"))
	require.NoError(t, s.Park(0, &wire.Envelope{Payload: []byte("later")}, "a"))
	s.Busy()
	deadline, ok := s.Next()
	require.True(t, ok, "it has no home yet")
	require.Equal(t, time.Second, deadline)
	s.Resolve(false, home1, route.MakeFence(1, 2, 3))
	s.Busy()
	_, ok = s.Next()
	require.False(t, ok)
	require.Zero(t, s.Expire(time.Hour, nil))
	s.Reset()
	var failed int
	require.Equal(t, 2, s.Expire(time.Hour, func([]byte) { failed++ }), "nobody takes it any more")
	require.Equal(t, 2, failed)
	s.Resolve(false, home1, route.MakeFence(1, 2, 4))
	s.Busy()
	require.NoError(t, s.Hold(0, ticket(2), "a"))
	require.NoError(t, s.Park(0, &wire.Envelope{Payload: []byte("later")}, "a"))
	s.Busy()
	s.PopParked()
	deadline, ok = s.Next()
	require.True(t, ok, "the one behind it is an ordinary one")
	require.Equal(t, time.Second, deadline)
}
