// Tests of what connections are answered: the decision is that of package hello (CARD-3).

package world

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/core/hello"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/sim/setup"
	"github.com/kith-io/kith/wire"
)

// A node that may not talk on sockets may not talk here, for the same reason: what waits for the connection is void,
// and an incarnation is never tried again.
func TestConnectionsAreJudgedByTheHello(t *testing.T) {
	later := wire.Versions{Newest: wire.Version + 2, Oldest: wire.Version + 1}
	for name, c := range map[string]struct {
		setUp  func(*hello.Acceptor)
		reason hello.Refusal
	}{
		"settings": {func(a *hello.Acceptor) { a.Terms = other(a.Terms) }, hello.RefusedSetting},
		"versions": {func(a *hello.Acceptor) { a.Speaks = later }, hello.RefusedVersion},
		"name":     {func(a *hello.Acceptor) { a.Name = "another" }, hello.RefusedName},
		"cluster":  {func(a *hello.Acceptor) { a.ClusterID++ }, hello.RefusedCluster},
		"window":   {func(a *hello.Acceptor) { a.Window = 1 }, hello.RefusedSetting},
		"same":     {nil, hello.RefusedNone},
	} {
		t.Run(name, func(t *testing.T) {
			w := formed(t, 2, setup.Config{})
			a, b := w.Hosts[0].Process, w.Hosts[1].Process
			b.setUp = c.setUp
			conn := a.link(b.ID, 0).conn
			if c.reason == hello.RefusedNone {
				require.Nil(t, conn.greet(b))
				conn.dial()
				require.True(t, w.Until(time.Minute, func() bool { return conn.state == connUp }))
				return
			}
			why := conn.greet(b)
			require.NotNil(t, why)
			require.Equal(t, c.reason, why.Reason)
			conn.waiting = []packet{{}}
			conn.dial()
			require.True(t, w.Until(time.Minute, func() bool { return conn.state == connRefused }))
			require.Empty(t, conn.waiting)
		})
	}
}

// A hello that means another incarnation is refused, which tells that the one that was meant is gone.
func TestAnotherIncarnationIsRefused(t *testing.T) {
	w := formed(t, 2, setup.Config{})
	a, b := w.Hosts[0].Process, w.Hosts[1].Process
	gone := peer.ID{Addr: b.ID.Addr, Inc: b.ID.Inc + 2}
	conn := a.link(gone, 0).conn
	require.Equal(t, hello.RefusedIncarnation, conn.greet(b).Reason)
	conn.dial()
	require.True(t, w.Until(time.Minute, func() bool { return conn.state == connRefused }))
}

// other returns terms of which the first has another value.
func other(terms []hello.Term) []hello.Term {
	terms = slices.Clone(terms)
	terms[0].Value += "0"
	return terms
}
