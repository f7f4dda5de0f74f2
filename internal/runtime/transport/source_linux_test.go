// A test that needs a second loopback address, which Linux has: strangers from one address do not keep others out.

package transport

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// One address that fills its share of the connections without a hello keeps nobody else out.
func TestOneAddressCannotTakeAll(t *testing.T) {
	ca := authority(t)
	b := newRider()
	tb := start(t, b, func(c *Config) {
		member(t, ca)(c)
		c.MaxPending, c.MaxPendingEach = 8, 4
	})
	from := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	for range 20 {
		nc, err := from.Dial("tcp", tb.Addr().String())
		require.NoError(t, err)
		t.Cleanup(func() { nc.Close() })
	}
	until(t, func() bool { return tb.Stats().TooManyEach == 16 })
	require.Equal(t, 4, tb.Stats().Pending)
	ta := start(t, newRider(), member(t, ca))
	require.NoError(t, ta.Send(peer.Mail{To: tb.Self(), Kind: wire.KindGossip}))
	wantMail(t, b, wire.KindGossip)
	require.Zero(t, ta.Stats().DialsFailed)
	until(t, func() bool { return tb.Stats().Pending == 4 })
}
