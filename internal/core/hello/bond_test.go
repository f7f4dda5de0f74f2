// Tests of bonds: which process may speak for an incarnation (SEC-2).

package hello

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// A token is the same in all hellos to one peer, another to every other one, and none to any node at an address.
func TestTokens(t *testing.T) {
	one, two := peer.ID{Addr: peer.MustAddr("a:1"), Inc: 1}, peer.ID{Addr: peer.MustAddr("a:1"), Inc: 2}
	s, other := Secret{1}, Secret{2}
	require.Equal(t, s.TokenFor(one), s.TokenFor(one))
	require.NotEqual(t, s.TokenFor(one), s.TokenFor(two))
	require.NotEqual(t, s.TokenFor(one), other.TokenFor(one))
	require.NotZero(t, s.TokenFor(one))
	require.Zero(t, s.TokenFor(peer.ID{Addr: one.Addr}))
}

// While somebody speaks for an incarnation, and for a minute after, nobody says another token in its name, on any
// connection that matters, whatever the generation; and under TLS never one with a certificate of another name.
func TestBondLaw(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var b Bond
		now, left := time.Duration(0), time.Duration(0)
		var token Token
		name, bound, stands, everBound := "", false, false, false
		named := rapid.Bool().Draw(t, "tls")
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			now += time.Duration(rapid.IntRange(0, 90).Draw(t, "seconds")) * time.Second
			h := exampleHello()
			h.Lane = rapid.SampledFrom([]wire.Lane{wire.LaneControl, wire.LaneData, wire.LaneBulk}).Draw(t, "lane")
			h.Number = uint16(rapid.IntRange(0, 1).Draw(t, "number"))
			h.Token = Token{byte(rapid.IntRange(0, 2).Draw(t, "token"))}
			its := ""
			if named {
				its = rapid.SampledFrom([]string{"n1", "n2"}).Draw(t, "name")
			}
			contact := IsContact(h.Lane, h.Number)
			refused := b.Admits(&h, its, stands, now)
			held := bound && (stands || now < left+bondFor)
			switch {
			case named && everBound && its != name:
				require.NotNil(t, refused)
			case !contact && held && h.Token != token:
				require.NotNil(t, refused)
			default:
				require.Nil(t, refused)
			}
			if refused != nil {
				require.Equal(t, RefusedTaken, refused.Reason)
				continue
			}
			b.Bind(&h, its, named)
			if !everBound {
				name, everBound = its, true
			}
			if !contact {
				token, bound, stands = h.Token, true, true
			}
			if stands && rapid.Bool().Draw(t, "ends") {
				stands, left = false, now
				b.Left(now)
			}
		}
	})
}

// The node that answers at a peer's own address is better known than what hellos say, and is believed once.
func TestBondIsConfirmed(t *testing.T) {
	id := peer.ID{Addr: peer.MustAddr("a:1"), Inc: 1}
	h := exampleHello()
	var b Bond
	b.Bind(&h, "liar", true)
	require.False(t, b.Sure())
	before, displaced, refused := b.Confirm(id, "n1")
	require.Equal(t, []any{"liar", true}, []any{before, displaced})
	require.Nil(t, refused)
	require.True(t, b.Sure())
	require.NotNil(t, b.Admits(&h, "liar", false, 0))
	require.Nil(t, b.Admits(&h, "n1", false, 0))
	_, displaced, refused = b.Confirm(id, "n1")
	require.False(t, displaced)
	require.Nil(t, refused)
	_, displaced, refused = b.Confirm(id, "n2")
	require.False(t, displaced)
	require.Equal(t, &RefusedError{Peer: id, Reason: RefusedTaken, Key: "certificate of a:1#1", Ours: "n1",
		Theirs: "n2"}, refused)
	require.Nil(t, b.Admits(&h, "n1", false, 0))
}

// A connection takes the place of one with a lower generation only.
func TestSucceeds(t *testing.T) {
	h := exampleHello()
	require.True(t, h.Succeeds(h.Generation-1))
	require.False(t, h.Succeeds(h.Generation))
	require.False(t, h.Succeeds(h.Generation+1))
}
