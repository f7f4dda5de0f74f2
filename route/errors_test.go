// Tests of the typed errors: what each matches and says, and which reasons come from a bound.

package route

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/peer"
)

// TestTypedErrors: each names what is full or where it failed, and matches the error of its reason.
func TestTypedErrors(t *testing.T) {
	at, err := peer.ParseAddr("h:1")
	require.NoError(t, err)
	id := peer.ID{Addr: at, Inc: 0xff}
	for _, c := range []struct {
		err  error
		is   error
		says string
	}{
		{&LinkFullError{id, 7}, ErrLinkFull, "7 bytes wait for h:1#ff"},
		{&LinkBudgetError{id, 7}, ErrLinkFull, "the budget of 7 bytes for all links is used up, for h:1#ff"},
		{&ParkFullError{"bytes of the shard", 7}, ErrParkFull, "7 bytes of the shard"},
		{&BulkFullError{"large messages", 7, id}, ErrLinkFull, "7 large messages wait to be sent to h:1#ff"},
		{&BulkFullError{"bytes of large messages", 7, peer.ID{}}, ErrLinkFull, "7 bytes of large messages wait to be sent"},
		{&AsksFullError{7}, ErrAsksFull, "7 on this node"},
		{&RefusedError{id, "x", MailboxFull, 7}, ErrMailboxFull, `7 bytes wait for the entity of type "x" at h:1#ff`},
		{&RefusedError{id, "", Suspended, 0}, ErrSuspended, "at h:1#ff"},
		{&PeerError{id, "x", PeerLost}, ErrPeerLost, `type "x" at h:1#ff`},
		{&UnansweredError{Type: "x", ID: "a", Err: ErrExpired}, ErrTimeout, `: id "a" of type "x"`},
		{&UnansweredError{Type: "x", ID: "a", Owner: id, Lost: true, Err: ErrPeerLost}, ErrPeerLost,
			`of type "x"; h:1#ff, where it lives, is silent: it waits until that is heard again, or an operator downs it`},
		{&UnansweredError{Type: "x", ID: "a", Owner: id, Lost: true, ServedIn: 17 * time.Second, Err: ErrTimeout},
			ErrTimeout, `h:1#ff, where it lived, is silent: it is served again in 17s at the earliest`},
	} {
		require.ErrorIs(t, c.err, c.is)
		require.ErrorContains(t, c.err, c.says)
		require.ErrorContains(t, c.err, c.is.Error())
	}
}

// TestUndeliveredSaysWhy: a bound is reported with its limit, a node with its name, and else the reason alone.
func TestUndeliveredSaysWhy(t *testing.T) {
	id := peer.ID{Inc: 1}
	for r := OK + 1; r.Known(); r++ {
		u := Undelivered{Type: "x", Reason: r, Peer: id, Limit: 7}
		require.ErrorIs(t, u.Err(), r.Err(), r)
		if r.Unit() != "" {
			require.Equal(t, &RefusedError{id, "x", r, 7}, u.Err())
		} else {
			require.Equal(t, &PeerError{id, "x", r}, u.Err())
		}
		u.Peer = peer.ID{}
		require.Equal(t, r.Err(), u.Err(), r)
	}
	require.Empty(t, Reason(reasonCount).Unit())
}
