// Tests of the bound on visits: its rate, its burst, visits given back, the size of its table; and on sockets.

package transport

import (
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// In any span of time an address gets twice the rate, and what the rate makes of the span, whatever else happens; one
// that keeps below the rate is never refused; visits given back do not count.
func TestVisitsLaw(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := visits{rate: rapid.IntRange(1, 100).Draw(t, "rate")}
		here, there := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")
		now, taken, last := time.Duration(0), 0, -time.Hour
		for range rapid.IntRange(1, 300).Draw(t, "visits") {
			now += time.Duration(rapid.IntRange(0, 50).Draw(t, "ms")) * time.Millisecond
			if rapid.Bool().Draw(t, "proves") {
				if v.come(now, here) {
					v.proved(now, here)
				}
			} else if v.come(now, here) {
				taken++
			}
			require.LessOrEqual(t, taken, 2*v.rate+int(now/v.price())+1)
			if now-last >= v.price() {
				last = now
				require.True(t, v.come(now, there), "below the rate")
			}
		}
	})
}

func TestVisitsBurst(t *testing.T) {
	v := visits{rate: 10}
	from := netip.MustParseAddr("10.0.0.1")
	for i := range 20 {
		require.True(t, v.come(0, from), i)
	}
	require.False(t, v.come(0, from))
	require.True(t, v.come(0, netip.MustParseAddr("10.0.0.2")))
	require.True(t, v.come(100*time.Millisecond, from), "one is paid for")
	require.False(t, v.come(100*time.Millisecond, from))
	v.proved(100*time.Millisecond, from)
	require.True(t, v.come(100*time.Millisecond, from), "one was given back")
	for range 1000 { // nodes that prove themselves come as often as they like
		require.True(t, v.come(time.Hour, from))
		v.proved(time.Hour, from)
	}
	require.Len(t, v.debt, 1, "that of the other address")
}

// Addresses of one IPv6 network are one visitor; so are all that the table has no room for, until it has.
func TestVisitorsAreBounded(t *testing.T) {
	v := visits{rate: 1}
	for _, a := range []string{"2001:db8::1", "2001:db8::2"} {
		require.True(t, v.come(0, netip.MustParseAddr(a)))
	}
	require.False(t, v.come(0, netip.MustParseAddr("2001:db8::3")))
	require.True(t, v.come(0, netip.MustParseAddr("2001:db8:0:1::3")))
	for i := range 3 * maxVisitors {
		v.come(0, netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}))
		require.LessOrEqual(t, len(v.debt), maxVisitors+1)
	}
	require.False(t, v.come(0, netip.MustParseAddr("10.9.9.9")), "all others share an account")
	require.True(t, v.come(3*time.Second, netip.MustParseAddr("10.9.9.9")))
	require.Len(t, v.debt, 1)
}

// A dialler that comes all the time is turned away at once, counted; a node behind the same address gets in beside it.
func TestTooOften(t *testing.T) {
	b := newRider()
	tb := start(t, b, func(c *Config) { c.MaxVisits = 50 })
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-stop:
				return
			case <-time.After(time.Millisecond):
			}
			if nc, err := net.Dial("tcp", tb.Addr().String()); err == nil {
				_, _ = nc.Write([]byte("GET / HTTP/1.1\r\n\r\n"))
				_ = nc.Close()
			}
		}
	}()
	until(t, func() bool { return tb.Stats().OverRate > 10 })
	ta := start(t, newRider(), nil)
	for got := false; !got; { // what cannot be dialled at once is lost: the rider says it again, as its rider does
		require.NoError(t, ta.Send(peer.Mail{To: tb.Self(), Kind: wire.KindStatus}))
		select {
		case <-b.mails:
			got = true
		case <-time.After(20 * time.Millisecond):
		}
	}
	close(stop)
	<-ended
	s := tb.Stats()
	require.Positive(t, s.Refused["magic"]+s.FaultsHello)
}

// Nodes that prove themselves are not bounded by it.
func TestVisitsOfMembersAreGivenBack(t *testing.T) {
	b := newRider()
	tb := start(t, b, func(c *Config) { c.MaxVisits = 1 })
	for range 20 {
		ta := start(t, newRider(), nil)
		require.NoError(t, ta.Send(peer.Mail{To: tb.Self(), Kind: wire.KindStatus}))
		want(t, b.mails)
		until(t, func() bool { // its mail may be faster than the goroutine that said the hello
			tb.mu.Lock()
			defer tb.mu.Unlock()
			return len(tb.visits.debt) == 0
		})
	}
	require.Zero(t, tb.Stats().OverRate)
}

// A node that closes says goodbye, and does not come to its peers' doors once more to see whether they are there.
func TestClosingDialsNobody(t *testing.T) {
	b := newRider()
	tb := start(t, b, nil)
	for range 30 {
		ta := start(t, newRider(), nil)
		require.NoError(t, ta.Send(peer.Mail{To: tb.Self(), Kind: wire.KindStatus}))
		want(t, b.mails)
		ta.Close()
	}
	until(t, func() bool { return tb.Stats().Pending == 0 })
	require.Zero(t, tb.Stats().FaultsHello+tb.Stats().Withdrawn)
}
