// Tests of what a refusal tells the removed (SEC-3, MEM-1).

package transport

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// One that was removed is told how the side stands that removed it, on the wire as any refusal.
func TestRefusalTellsTheStanding(t *testing.T) {
	a, b := newRider(), newRider()
	ta, tb := start(t, a, nil), start(t, b, nil)
	tb.SetStanding(3, tb.Addr())
	tb.Forget(ta.Self())
	require.NoError(t, ta.Send(peer.Mail{To: tb.Self(), Kind: wire.KindStatus}))
	refused := want(t, a.refused)
	require.Equal(t, RefusedRemoved, refused.Reason)
	up, lowest, ok := refused.Standing()
	require.True(t, ok)
	require.Equal(t, uint32(3), up)
	require.Equal(t, tb.Addr(), lowest)
}

// Texts of others, earlier builds among them, tell no standing, and no text breaks anything.
func TestStandingOfOtherTexts(t *testing.T) {
	for text, want := range map[string]bool{
		"removed":                               false,
		"":                                      false,
		"removed: 3 up":                         false,
		"removed: -1 up, lowest 10.0.0.1:1":     false,
		"removed: 5000000000 up, lowest a:1":    false,
		"removed: 3 up, lowest nobody":          false,
		"removed: 3 up, lowest 10.0.0.1:7355":   true,
		"removed: 0 up, lowest [2001:db8::1]:9": true,
	} {
		_, _, ok := (&RefusedError{Reason: RefusedRemoved, Theirs: text}).Standing()
		require.Equal(t, want, ok, text)
	}
	_, _, ok := (&RefusedError{Reason: RefusedBusy, Theirs: "removed: 3 up, lowest 10.0.0.1:7355"}).Standing()
	require.False(t, ok)
}
