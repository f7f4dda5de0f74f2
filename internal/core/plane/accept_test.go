// Tests of the decisions about messages that somebody refused or may have to: tables of every case.

package plane

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

// An envelope is for a host only under exactly its fence, and within the bound of a payload (SHD-5).
func TestAccept(t *testing.T) {
	e := &wire.Envelope{Term: 3, Epoch: 4, Payload: make([]byte, 10)}
	require.Equal(t, route.OK, Accept(e, 3, 4, 10))
	require.Equal(t, route.TooLarge, Accept(e, 3, 4, 9))
	for _, f := range [][2]uint32{{2, 4}, {4, 4}, {3, 3}, {3, 5}} {
		require.Equal(t, route.NotOwner, Accept(e, f[0], f[1], 9), "under %v", f)
	}
}

// Only a refusal of the very route that stands, by the node that it leads to, for a reason that means that the home is
// wrong, puts it in doubt (SHD-5).
func TestDoubts(t *testing.T) {
	home, other := peer.ID{Addr: peer.MustAddr("10.0.0.1:1"), Inc: 1}, peer.ID{Addr: peer.MustAddr("10.0.0.2:1"), Inc: 1}
	for why := range route.Reason(route.Reasons) {
		k := RefusalKey{Term: 3, Epoch: 4, Reason: why}
		wrong := why == route.NotOwner || why == route.NotRegistered || why == route.ShardStopping
		require.Equal(t, wrong, WrongHome(why), why)
		require.Equal(t, wrong, k.Doubts(home, home, 3, 4), why)
		require.False(t, k.Doubts(other, home, 3, 4), why)
		require.False(t, k.Doubts(home, home, 2, 4), why)
		require.False(t, k.Doubts(home, home, 3, 5), why)
	}
}

// A large message goes to the next home while nobody can have taken it, and no more than eight times.
func TestAgain(t *testing.T) {
	for why := range route.Reason(route.Reasons) {
		require.Equal(t, WrongHome(why), Again(why, false, 0), why)
		require.Equal(t, WrongHome(why) || why == route.PeerLost, Again(why, true, MaxLargeRefusals-1), why)
		require.False(t, Again(why, true, MaxLargeRefusals), why)
	}
}
