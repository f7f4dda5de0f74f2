// Tests of the door: which guest goes next, by a law and a table; and on sockets, that silent crowds lock nobody out.

package transport

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// knock is a connection that is nothing but itself.
type knock struct{ net.Conn }

// Whatever comes, proves itself and goes: the bounds hold, a guest that has proven itself is never put out, nor one
// from where members are for one from elsewhere; and one that has had its grace always makes room (SEC-1).
func TestAdmissionLaw(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		most := rapid.IntRange(1, 6).Draw(t, "most")
		d := newAdmission(most, rapid.IntRange(1, most).Draw(t, "each"))
		home := netip.MustParseAddr("10.0.0.1")
		d.members = map[netip.Addr]struct{}{home: {}}
		var in []*pendingConn
		proven := map[*pendingConn]bool{}
		now := time.Duration(0)
		leave := func(g *pendingConn) { in = slices.DeleteFunc(in, func(o *pendingConn) bool { return o == g }) }
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			now += time.Duration(rapid.IntRange(0, 15).Draw(t, "ms")) * time.Millisecond
			pick := rapid.IntRange(0, max(0, len(in)-1)).Draw(t, "who")
			switch what := rapid.IntRange(0, 5).Draw(t, "what"); {
			case what == 0 && len(in) > 0:
				d.proved(in[pick])
				proven[in[pick]] = true
			case what == 1 && len(in) > 0:
				d.leave(in[pick])
				d.leave(in[pick])
				leave(in[pick])
			default:
				from := netip.AddrFrom4([4]byte{10, 0, 0, byte(rapid.IntRange(1, 4).Draw(t, "from"))})
				full := len(in) >= most
				g, goes, why := d.come(now, &knock{}, from)
				require.Equal(t, why == noCrush, g != nil && goes == nil)
				require.Equal(t, why == tooMany, full)
				if goes != nil {
					require.False(t, proven[goes])
					require.True(t, goes.out.Load())
					require.True(t, goes.from == from || goes.from != home || from == home)
					for _, o := range in { // the oldest of its kind
						if !proven[o] && o.from == goes.from {
							require.GreaterOrEqual(t, o.since, goes.since)
						}
					}
					leave(goes)
				}
				if g != nil {
					in = append(in, g)
					break
				}
				for _, o := range in { // nobody could have gone
					could := !proven[o] && now-o.since >= admissionGrace && (o.from == from || d.there[from] < d.each)
					require.True(t, !could || o.from == home && from != home, "%v stays for %v", o, from)
				}
			}
			require.Len(t, d.pending, len(in))
			require.LessOrEqual(t, len(in), most)
			for from, n := range d.there {
				require.LessOrEqual(t, n, d.each, from)
			}
			require.Equal(t, d.strangers.Len()+d.fromMembers.Len(), len(in)-count(in, proven))
		}
		for _, g := range slices.Clone(in) {
			d.leave(g)
		}
		require.Zero(t, len(d.pending)+len(d.there)+len(d.unproven)+d.strangers.Len()+d.fromMembers.Len())
	})
}

func count(in []*pendingConn, proven map[*pendingConn]bool) (n int) {
	for _, g := range in {
		if proven[g] {
			n++
		}
	}
	return n
}

// Addresses at which somebody has proven itself are remembered, bounded and for a time.
func TestFamiliarAddresses(t *testing.T) {
	d := newAdmission(1, 1)
	at := func(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}) }
	for i := range maxFamiliar + 1 {
		d.remember(time.Duration(i), at(i))
	}
	require.Len(t, d.familiar, maxFamiliar)
	require.False(t, d.knows(maxFamiliar, at(0)), "the oldest was given up")
	require.True(t, d.knows(maxFamiliar, at(1)))
	require.False(t, d.knows(familiarFor+1, at(1)))
	require.False(t, d.knows(0, netip.MustParseAddr("192.0.2.1")))
	d.members = map[netip.Addr]struct{}{netip.MustParseAddr("192.0.2.1"): {}}
	require.True(t, d.knows(time.Hour, netip.MustParseAddr("192.0.2.1")))
}

// Where members are, as they say themselves: addresses, of IPv6 networks; names say nothing.
func TestExpect(t *testing.T) {
	tr := start(t, newRider(), nil)
	tr.Expect([]peer.ID{{Addr: peer.MustAddr("10.0.0.1:1"), Inc: 1}, {Addr: peer.MustAddr("[2001:db8::9]:1"), Inc: 2},
		{Addr: peer.MustAddr("db.local:1"), Inc: 3}})
	tr.mu.Lock()
	defer tr.mu.Unlock()
	require.Len(t, tr.admission.members, 2)
	require.True(t, tr.admission.knows(0, netip.MustParseAddr("10.0.0.1")))
	require.True(t, tr.admission.knows(0, visitor(netip.MustParseAddr("2001:db8::77"))))
}

// silentCrowd keeps n connections from one address open that say nothing, dialled again whenever one is closed, until
// the test ends.
func silentCrowd(t *testing.T, to peer.Addr, from net.Addr, n int) {
	stop, ended := make(chan struct{}), make(chan struct{}, n)
	for range n {
		go func() {
			defer func() { ended <- struct{}{} }()
			dialer := net.Dialer{LocalAddr: from, Timeout: time.Second}
			for {
				if nc, err := dialer.Dial("tcp", to.String()); err == nil {
					over := make(chan struct{})
					go func() {
						defer close(over)
						_, _ = nc.Read(make([]byte, 1))
					}()
					select {
					case <-over:
					case <-stop:
					}
					_ = nc.Close()
					<-over
				}
				select {
				case <-stop:
					return
				case <-time.After(2 * time.Second):
				}
			}
		}()
	}
	t.Cleanup(func() {
		close(stop)
		for range n {
			<-ended
		}
	})
}

// Silent crowds from everywhere fill the door, and a newcomer comes in at its first try, from an address of its own or
// from that of a crowd (SEC-1).
func TestAdmissionIsNotLocked(t *testing.T) {
	for _, secure := range []bool{false, true} {
		t.Run(fmt.Sprintf("tls %v", secure), func(t *testing.T) {
			ca := authority(t)
			with := func(c *Config) {
				if secure {
					member(t, ca)(c)
				}
				c.HelloTimeout, c.FirstByteTimeout = time.Hour, time.Hour
				c.MaxPending, c.MaxPendingEach = 64, 16
			}
			b := newRider()
			tb := start(t, b, with)
			for i := range crowds {
				silentCrowd(t, tb.Addr(), crowdAddr(i), 100)
			}
			until(t, func() bool { return tb.Stats().PutOut > 200 && tb.Stats().Pending == min(64, 16*crowds) })
			for i := range 20 {
				ta := start(t, newRider(), with)
				until(t, func() bool { // mail that meets a failed dial is lost: its rider says it again
					require.NoError(t, ta.Send(peer.Mail{To: tb.Self(), Kind: wire.KindStatus}))
					return ta.Stats().Control.Out > 0
				})
				for wantMail(t, b, wire.KindStatus).from != ta.Self() {
				}
				require.Less(t, ta.Stats().DialsFailed, uint64(10), "newcomer %d", i)
				ta.Close()
			}
			s := tb.Stats()
			require.NotZero(t, s.TooManyEach)
			require.Zero(t, s.FaultsHello+s.SaidNothing+s.Withdrawn)
		})
	}
}

// A guest that says nothing at all goes before the time of a hello is over; one that has begun to speak has that time.
func TestSilenceEndsSoon(t *testing.T) {
	for _, secure := range []bool{false, true} {
		t.Run(fmt.Sprintf("tls %v", secure), func(t *testing.T) {
			tb := start(t, newRider(), func(c *Config) {
				if secure {
					member(t, authority(t))(c)
				}
				c.HelloTimeout, c.FirstByteTimeout = time.Hour, 50*time.Millisecond
			})
			speaks, err := net.Dial("tcp", tb.Addr().String())
			require.NoError(t, err)
			defer speaks.Close()
			_, err = speaks.Write([]byte{0x16})
			require.NoError(t, err)
			silent, err := net.Dial("tcp", tb.Addr().String())
			require.NoError(t, err)
			defer silent.Close()
			until(t, func() bool { return tb.Stats().SaidNothing == 1 })
			until(t, func() bool { return tb.Stats().Pending == 1 }) // the one that speaks is still there
			require.Zero(t, tb.Stats().FaultsHello)
			require.Empty(t, tb.Stats().TLSRefused)
		})
	}
}

// A dialler that hangs up before a byte, in order or by a reset, has broken no rule; one that has said something has
// (CARD-3).
func TestWithdrawnIsNoFault(t *testing.T) {
	for _, secure := range []bool{false, true} {
		t.Run(fmt.Sprintf("tls %v", secure), func(t *testing.T) {
			tb := start(t, newRider(), func(c *Config) {
				if secure {
					member(t, authority(t))(c)
				}
				c.FirstByteTimeout, c.HelloTimeout = time.Hour, time.Hour
			})
			faults := func() uint64 {
				s := tb.Stats()
				n := s.FaultsHello + s.SaidNothing
				for _, refused := range s.TLSRefused {
					n += refused
				}
				return n
			}
			for i, c := range []struct {
				says  string
				reset bool
			}{{}, {reset: true}, {says: "\x16"}} {
				nc, err := net.Dial("tcp", tb.Addr().String())
				require.NoError(t, err)
				until(t, func() bool { return tb.Stats().Pending == 1 })
				_, err = nc.Write([]byte(c.says))
				require.NoError(t, err)
				if c.reset {
					require.NoError(t, nc.(*net.TCPConn).SetLinger(0))
				}
				require.NoError(t, nc.Close())
				until(t, func() bool { return tb.Stats().Pending == 0 })
				require.EqualValues(t, min(i+1, 2), tb.Stats().Withdrawn)
				require.EqualValues(t, max(i-1, 0), faults())
			}
		})
	}
}
