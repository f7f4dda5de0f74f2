// Tests of the gate: tables of every case.

package plane

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

// No handler is called while the node says so, while a gap has not been judged, and while the last step is too old; a
// step in which the node sees the gap opens the gate again (MEM-10).
func TestGate(t *testing.T) {
	const limit = time.Second
	for _, g := range []Gate{0, GateOrdered, GateNoticed, GateOrdered | GateNoticed, GateEnded} {
		require.Equal(t, g != 0, g.Held(limit, limit), g)
		require.True(t, g.Held(limit+1, limit), g)
		require.Equal(t, g, g.Noticed(limit, limit))
		require.Equal(t, g|GateNoticed, g.Noticed(limit+1, limit))
	}
	for _, c := range []struct{ stepped, limit, lease, until int64 }{
		{5, 10, 100, 15}, {5, 10, 15, 14}, {5, 10, 3, 2}, {0, 10, -1, -2}, {5, 10, 1<<63 - 1, 15},
	} {
		require.Equal(t, c.until, OpenUntil(c.stepped, c.limit, c.lease), "%+v", c)
	}
	require.Zero(t, Judged(false, false))
	require.Equal(t, GateOrdered, Judged(true, false))
	require.Equal(t, GateNoticed, Judged(false, true), "a sleep of which the node has not been told")
	require.Equal(t, GateOrdered|GateNoticed, Judged(true, true))
}

// What comes while the gate is closed is kept within a bound; answers go on, and what is no frame of the data lane is
// never kept.
func TestAtGate(t *testing.T) {
	for kind := range wire.Kind(255) {
		for _, c := range []struct {
			kept int
			want GateDecision
		}{{0, GateQueue}, {90, GateQueue}, {91, GateReject}, {100, GateReject}, {1 << 40, GateReject}} {
			want := Unknown
			switch kind {
			case wire.KindEnvelope, wire.KindMarker:
				want = c.want
			case wire.KindReply, wire.KindCancel, wire.KindParcel:
				want = GatePass
			}
			for _, g := range []Gate{0, GateOrdered, GateNoticed} {
				require.Equal(t, want, g.AtGate(kind, 10, c.kept, 100), "%v, %d kept", kind, c.kept)
				require.Equal(t, GateLeave, (g|GateEnded).AtGate(kind, 10, c.kept, 100), "its sender is to know it as lost")
			}
		}
	}
}

// A node that has ended says so, one that is suspended says that, and a shard that was given up belongs to others.
func TestClosedAndAbandoned(t *testing.T) {
	require.Equal(t, route.Suspended, Closed(false))
	require.Equal(t, route.Stopped, Closed(true))
	require.Equal(t, route.NotOwner, Abandoned(false))
	require.Equal(t, route.Abandoned, Abandoned(true))
	require.True(t, WrongHome(Abandoned(false)), "its sender asks for the home again")
}
