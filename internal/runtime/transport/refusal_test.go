// Tests of what a refusal tells the removed (SEC-3, MEM-1).

package transport

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/core/hello"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// A removed node learns how the side stands that removed it, on the wire as any refusal.
func TestRefusalTellsTheStanding(t *testing.T) {
	a, b := newRider(), newRider()
	ta, tb := start(t, a, nil), start(t, b, nil)
	tb.SetStanding(3, tb.Addr())
	tb.Forget(ta.Self())
	require.NoError(t, ta.Send(peer.Mail{To: tb.Self(), Kind: wire.KindStatus}))
	refused := want(t, a.refused)
	require.Equal(t, hello.RefusedRemoved, refused.Reason)
	up, lowest, ok := refused.Standing()
	require.True(t, ok)
	require.Equal(t, uint32(3), up)
	require.Equal(t, tb.Addr(), lowest)
}
