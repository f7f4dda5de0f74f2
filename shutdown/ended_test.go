// Tests of the error that a node leaves behind.

package shutdown

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
)

// TestEndedError: it says what happened, why, and which node said so, and counts as the node being stopped (MEM-8).
func TestEndedError(t *testing.T) {
	at, err := peer.ParseAddr("h:1")
	require.NoError(t, err)
	id := peer.ID{Addr: at, Inc: 0xff}
	for want, e := range map[string]*EndedError{
		"kith: this node was closed":                            {Kind: EndClosed},
		"kith: this node was removed: too late, says h:1#ff":    {Kind: membership.EndRemoved, Reason: "too late", By: id},
		"kith: this node ended (99)":                            {Kind: 99},
		"kith: this node was not admitted in time: nobody came": {Kind: membership.EndJoinTimeout, Reason: "nobody came"},
	} {
		require.EqualError(t, e, want)
		require.ErrorIs(t, e, route.ErrStopped)
	}
}
