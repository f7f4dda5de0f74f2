// The marker of a move before a link that is full.

package plane

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/core/flow"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

// marking is a slot of a shard that moves, and a link without credit in which messages wait for it and for another
// shard.
func marking(t *testing.T, flags uint8, park int, pool flow.Budget) (*flow.Slot, *flow.Link) {
	l := flow.NewLinkWithin(flow.Bounds{Buffer: 64 << 10, Window: 100})
	l.Reconnected(1)
	for i, shard := range []uint32{9, 2, 9, 2, 2, 9} {
		e := wire.Envelope{Type: 1, Shard: shard, Payload: []byte{byte(i)}, Corr: uint64(i)}
		if e.Flags = wire.FlagAsk; i == 4 {
			e.Flags |= flags
		}
		room, err := l.Reserve(wire.SizeEnvelope(1, 1))
		require.NoError(t, err)
		l.Put(room, &e, "a")
	}
	require.NotEmpty(t, l.Take())
	require.LessOrEqual(t, l.Credit(), 0)
	slot := flow.MakeSlot(flow.NewParking(0, park, time.Hour, pool))
	s := &slot
	require.Equal(t, Rest, Move(s, Home{Moving: true}))
	_, err := Park(s, 0, &wire.Envelope{Type: 1, Shard: 2, Payload: []byte{100}}, "a")
	require.NoError(t, err)
	return s, l
}

var theMarker = wire.Marker{Type: 1, Shard: 2, Term: 3, Seq: 4}

// What waits for the shard waits in its slot from then on, in order, and the marker goes at once, however full the slot
// and the budget are (SHD-9).
func TestMarkOvertakesTheBacklog(t *testing.T) {
	size := wire.SizeEnvelope(1, 1) + flow.ParkOverhead
	for name, c := range map[string]struct {
		park int
		pool flow.Budget
	}{
		"room":             {1 << 16, nil},
		"the slot is full": {size, nil},
		"no budget":        {1 << 16, &flow.Pool{Limit: size}},
	} {
		t.Run(name, func(t *testing.T) {
			s, l := marking(t, 0, c.park, c.pool)
			asks, _, err := Mark(s, l, 0, theMarker)
			require.NoError(t, err)
			require.NotEmpty(t, asks)
			b := l.Take()
			require.Equal(t, wire.KindMarker, wire.KindOf(b))
			require.Len(t, b, flow.MarkerSize)
			frames, _, _ := l.Waiting(1, 2)
			require.Zero(t, frames)
			frames, _, _ = l.Waiting(1, 9)
			require.NotZero(t, frames, "of the other shard nothing is touched")
			require.True(t, s.Resolve(true, peer.ID{}, route.MakeFence(9, 3, 4)))
			var got []byte
			Drain(s, func(e *wire.Envelope, _ []byte) Step {
				got = append(got, e.Payload[0])
				return Sent
			})
			require.Len(t, got, len(asks)+1)
			require.IsIncreasing(t, got)
			for i, corr := range asks {
				require.EqualValues(t, got[i], corr)
			}
			require.EqualValues(t, 100, got[len(got)-1])
		})
	}
}

// Behind a large message the marker stands behind what waits.
func TestMarkBehindWhatCannotWait(t *testing.T) {
	s, l := marking(t, wire.FlagBulk, 1<<16, nil)
	before, _, _ := l.Waiting(1, 2)
	asks, next, err := Mark(s, l, 0, theMarker)
	require.NoError(t, err)
	require.Empty(t, asks)
	require.Equal(t, Rest, next)
	after, _, _ := l.Waiting(1, 2)
	require.Equal(t, before, after)
	require.Nil(t, l.Take())
}
