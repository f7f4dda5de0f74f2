// Tests of bulk connections that are made anew while large messages stream over them.

package transport

import (
	"crypto/sha256"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/core/flow"
	"github.com/kith-io/kith/internal/runtime/trust"
	"github.com/kith-io/kith/route"
)

// streamBulk sends large messages without a pause until the condition holds, two always under way, and demands that
// every one of them arrives. It returns how many there were.
func streamBulk(t *testing.T, a, b bulkNode, until func() bool) (sent int) {
	payload := noise(600_000)
	sum := sha256.Sum256(payload)
	send := func() {
		require.NoError(t, a.Bulk(b.Self()).Send(&flow.BulkTransfer{Payload: payload}))
		sent++
	}
	send()
	send()
	for begin := time.Now(); sent > 0 && !until(); send() {
		require.Less(t, time.Since(begin), patience)
		arriveBulk(t, a, b, sum)
	}
	arriveBulk(t, a, b, sum)
	arriveBulk(t, a, b, sum)
	return sent
}

// arriveBulk takes the next large message and demands that it is intact.
func arriveBulk(t *testing.T, a, b bulkNode, sum [32]byte) {
	w := want(t, a.whole)
	require.Equal(t, sum, sha256.Sum256(take(t, b, a.Transport, w.ref)))
	over := want(t, a.over)
	require.Equal(t, bulkOver{over.x, route.OK, 0, nil}, over)
}

// Authorities and certificates are replaced, as an operator does it, while large messages stream over one connection
// without a pause: it is made anew between two of them each time, and not one is lost (CARD-3).
func TestStreamOfLargeMessagesIsRenewed(t *testing.T) {
	old, young := authority(t), authority(t)
	sites := [2]*site{newSite(t, old), newSite(t, old)}
	a, b := startBulk(t, sites[0].tls), startBulk(t, sites[1].tls)
	under := func(creds *trust.State) bool {
		x := a.Bulk(b.Self())
		x.mu.Lock()
		defer x.mu.Unlock()
		return x.secure != nil && x.secure.Under(creds)
	}
	step := func(number uint64, change func(s *site)) {
		for i, n := range []bulkNode{a, b} { // one after the other: the connection has the older certificate of the second
			change(sites[i])
			streamBulk(t, a, b, func() bool {
				return n.trust.State().Number() == number && under(a.trust.State())
			})
		}
	}
	step(1, func(*site) {})
	step(2, func(s *site) { s.believe(old, young) })
	step(3, func(s *site) { s.prove(young, time.Now().Add(30*time.Minute)) })
	renewed := a.Stats().TLSRenewed
	step(4, func(s *site) { s.believe(young) })
	require.Greater(t, a.Stats().TLSRenewed, renewed)
	require.Zero(t, a.Stats().Bulk.Sent.Lost)
	require.Empty(t, b.Stats().TLSRefused)
}

// A large message that its receiver does not take puts the renewal off: what comes behind it is not held up for ever.
func TestRenewalOfABulkConnectionIsPutOff(t *testing.T) {
	ca := authority(t)
	s := newSite(t, ca)
	a, b := startBulk(t, func(c *Config) {
		s.tls(c)
		c.renewWait = 50 * time.Millisecond
	}), startBulk(t, newSite(t, ca).tls)
	payload := noise(300_000)
	sum := sha256.Sum256(payload)
	require.NoError(t, a.Bulk(b.Self()).Send(&flow.BulkTransfer{Payload: payload}))
	waits := want(t, a.whole)
	s.prove(ca, time.Now().Add(20*time.Minute))
	until(t, func() bool { return a.Stats().TLSReloads == 2 })
	require.NoError(t, a.Bulk(b.Self()).Send(&flow.BulkTransfer{Payload: payload}))
	arriveBulk(t, a, b, sum)
	require.Zero(t, a.Stats().TLSRenewed)
	require.Equal(t, sum, sha256.Sum256(take(t, b, a.Transport, waits.ref)))
	require.Equal(t, route.OK, want(t, a.over).reason)
}
