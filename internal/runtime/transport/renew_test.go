// Tests of credentials that change while connections stand: nothing lost over a whole rotation, what happens to peers
// that are believed no more, files that are no good.

package transport

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/base/logs/logstest"
	"github.com/kith-io/kith/internal/base/pki"
	"github.com/kith-io/kith/internal/core/flow"
	"github.com/kith-io/kith/internal/runtime/trust"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

// site is a node's folder with certificates.
type site struct {
	t   *testing.T
	dir string
}

func newSite(t *testing.T, ca *pki.CA) *site {
	s := &site{t, t.TempDir()}
	s.believe(ca)
	s.prove(ca, time.Now().Add(30*time.Minute))
	return s
}

// believe replaces the authorities.
func (s *site) believe(cas ...*pki.CA) {
	var text []byte
	for _, ca := range cas {
		text = append(text, ca.Pair().Cert...)
	}
	require.NoError(s.t, os.WriteFile(filepath.Join(s.dir, "new"), text, 0o600))
	require.NoError(s.t, os.Rename(filepath.Join(s.dir, "new"), filepath.Join(s.dir, "ca.crt")))
}

// prove replaces the node's own certificate and key.
func (s *site) prove(ca *pki.CA, until time.Time) {
	p, err := ca.Issue(pki.Request{Name: "node", URIs: []string{trust.ClusterURI("test")}, Until: until})
	require.NoError(s.t, err)
	require.NoError(s.t, p.Write(s.dir, "node", true))
}

// tls configures a transport that sweeps often.
func (s *site) tls(c *Config) {
	cert, key := pki.Paths(s.dir, "node")
	c.TLS = trust.TLS{CertFile: cert, KeyFile: key, CAFile: filepath.Join(s.dir, "ca.crt")}
	if _, err := os.Stat(s.crl()); err == nil {
		c.TLS.CRLFile = s.crl()
	}
	c.CreditEvery = 2 * time.Millisecond
	c.filesEvery = time.Nanosecond
}

func (s *site) crl() string { return filepath.Join(s.dir, "ca.crl") }

// revoke replaces the revocation lists.
func (s *site) revoke(text []byte) {
	require.NoError(s.t, os.WriteFile(filepath.Join(s.dir, "new"), text, 0o600))
	require.NoError(s.t, os.Rename(filepath.Join(s.dir, "new"), s.crl()))
}

// A whole rotation of authorities while both directions are busy: first both are believed, then certificates of the new
// one are given out, then the old one is dropped. Every frame and every mail comes, once and in order, no connection is
// ever reported broken, and at the end all of them are under the newest credentials.
func TestRotationLosesNothing(t *testing.T) {
	old, young := authority(t), authority(t)
	sites := []*site{newSite(t, old), newSite(t, old)}
	runtimes := []*rider{newRider(), newRider()}
	var got [2]atomic.Uint32
	var trs [2]*Transport
	for i, r := range runtimes {
		r.onData = func(c *InConn, fs []byte) {
			eachFrame(fs, func(f []byte) {
				var e wire.Envelope
				if wire.ParseEnvelope(f, &e) != nil || e.Shard != got[i].Load() {
					t.Errorf("frame %d instead of %d", e.Shard, got[i].Load())
				}
				got[i].Store(e.Shard + 1)
			})
			c.Consumed(len(fs))
		}
		trs[i] = start(t, r, sites[i].tls)
	}
	stop, sent := make(chan struct{}), make(chan uint32, 2)
	for i, tr := range trs {
		go func() {
			link := tr.Link(trs[1-i].Self())
			for n := uint32(0); ; n++ {
				select {
				case <-stop:
					sent <- n
					return
				default:
				}
				if send(t, link, 0, n, int(n%2000), tr.ctx.Done()) != nil {
					return
				}
			}
		}()
		require.NoError(t, tr.Send(peer.Mail{To: trs[1-i].Self(), Kind: wire.KindStatus, Body: []byte{1}}))
	}
	// newest reports whether every connection is under the newest credentials of its node, of a certain number.
	newest := func(number uint64) bool {
		for i, tr := range trs {
			creds, standing := tr.trust.State(), 0
			r, err := tr.remote(trs[1-i].Self())
			require.NoError(t, err)
			r.uplinks(func(u *uplink) {
				if oc := u.standing(); oc != nil && oc.secure.Under(creds) && creds.Number() == number {
					standing++
				}
			})
			if standing != 2 {
				return false
			}
		}
		return true
	}
	until(t, func() bool { return newest(1) })
	for step, change := range []func(s *site){
		func(s *site) { s.believe(old, young) },
		func(s *site) { s.prove(young, time.Now().Add(20*time.Minute)) },
		func(s *site) { s.believe(young) },
	} {
		for _, s := range sites {
			change(s)
		}
		until(t, func() bool { return newest(uint64(step) + 2) })
		before := got[0].Load()
		until(t, func() bool { return got[0].Load() > before })
	}
	close(stop)
	a, b := want(t, sent), want(t, sent)
	until(t, func() bool { return got[0].Load()+got[1].Load() == a+b })
	for i, tr := range trs {
		s := tr.Stats()
		require.Empty(t, runtimes[i].downs)
		require.Empty(t, runtimes[i].lost)
		require.Zero(t, s.LostBytes+s.DroppedBytes)
		require.GreaterOrEqual(t, s.TLSRenewed, uint64(6), "two connections, three times")
		require.Len(t, runtimes[i].ups, 2, "told once of each")
	}
	// A node that the old authority vouches for is a stranger now.
	stranger := start(t, newRider(), member(t, old))
	require.NoError(t, stranger.Send(peer.Mail{To: trs[0].Self(), Kind: wire.KindGossip}))
	until(t, func() bool { return stranger.Stats().TLSFailed["unknown-ca"] > 0 })
}

// A certificate that expires under a standing connection ends it, counted at both ends, and new ones are refused until
// there are new certificates. What was queued meanwhile arrives then.
func TestExpiryOfAStandingConnection(t *testing.T) {
	ca := authority(t)
	a, b := newRider(), newRider()
	sa, sb := newSite(t, ca), newSite(t, ca)
	var late atomic.Int64
	clock := func(s *site) func(*Config) {
		return func(c *Config) {
			s.tls(c)
			c.wall = func() time.Time { return time.Now().Add(time.Duration(late.Load())) }
		}
	}
	got := make(chan struct{}, 16)
	b.onData = func(c *InConn, fs []byte) {
		c.Consumed(len(fs))
		got <- struct{}{}
	}
	ta, tb := start(t, a, clock(sa)), start(t, b, clock(sb))
	link := ta.Link(tb.Self())
	require.NoError(t, send(t, link, 0, 0, 100, nil))
	want(t, got)
	late.Store(int64(31 * time.Minute))
	require.Error(t, want(t, a.downs).err)
	require.NoError(t, send(t, link, 0, 1, 100, nil))
	until(t, func() bool {
		return ta.Stats().TLSFailed["expired"] > 1 && tb.Stats().TLSRefused["refused-by-peer"] > 0
	})
	require.Empty(t, got)
	sa.prove(ca, time.Now().Add(50*time.Minute))
	sb.prove(ca, time.Now().Add(50*time.Minute))
	want(t, got)
	require.EqualValues(t, 2, ta.Stats().TLSReloads)
}

// A connection is made anew when two thirds of its certificates' time have gone by, though nothing has changed.
func TestRenewalBeforeExpiry(t *testing.T) {
	ca := authority(t)
	a, b := newRider(), newRider()
	var late atomic.Int64
	clock := func(c *Config) {
		member(t, ca)(c)
		c.CreditEvery = 2 * time.Millisecond
		c.wall = func() time.Time { return time.Now().Add(time.Duration(late.Load())) }
	}
	ta, tb := start(t, a, clock), start(t, b, clock)
	require.NoError(t, ta.Send(peer.Mail{To: tb.Self(), Kind: wire.KindStatus, Body: []byte{1}}))
	wantMail(t, b, wire.KindStatus)
	link := ta.Link(tb.Self())
	require.NoError(t, send(t, link, 0, 0, 100, nil))
	want(t, a.ups)
	want(t, a.ups)
	late.Store(int64(21 * time.Minute)) // of 30
	until(t, func() bool {
		return ta.Stats().TLSRenewed == 2 && ta.Stats().Control.Out == 1 && ta.Stats().Data.Out == 1
	})
	require.Empty(t, a.downs)
	late.Store(int64(23 * time.Minute))
	require.NoError(t, send(t, link, 0, 0, 100, nil))
	require.NoError(t, ta.Send(peer.Mail{To: tb.Self(), Kind: wire.KindStatus, Body: []byte{1}}))
	wantMail(t, b, wire.KindStatus)
	require.EqualValues(t, 2, ta.Stats().TLSRenewed, "the next one is due at two thirds of the rest")
}

// A bulk connection is on no loop; it ends with its peer's certificate all the same.
func TestExpiryOfABulkConnection(t *testing.T) {
	ca := authority(t)
	var late atomic.Int64
	clock := func(c *Config) {
		member(t, ca)(c)
		c.CreditEvery = 2 * time.Millisecond
		c.wall = func() time.Time { return time.Now().Add(time.Duration(late.Load())) }
	}
	a, b := startBulk(t, clock), startBulk(t, clock)
	require.NoError(t, a.Bulk(b.Self()).Send(&flow.BulkTransfer{Payload: noise(100_000)}))
	want(t, a.whole) // and nobody takes it, so the connection is not made anew before
	require.Equal(t, 1, b.Stats().Bulk.In)
	late.Store(int64(31 * time.Minute))
	until(t, func() bool { return b.Stats().Bulk.In == 0 && a.Stats().Bulk.Out == 0 })
	until(t, func() bool { return a.Stats().TLSRefused["expired"]+b.Stats().TLSRefused["expired"] > 0 })
	require.Equal(t, route.PeerLost, want(t, a.over).reason)
	until(t, func() bool {
		held := 0
		a.trust.EachHeld(func(*trust.Conn) { held++ })
		return held == 0
	})
}

// A peer that consumes nothing puts a renewal off, and loses nothing by it.
func TestRenewalIsPutOff(t *testing.T) {
	ca := authority(t)
	a, b := newRider(), newRider()
	var in atomic.Pointer[InConn]
	var held, got atomic.Int64
	b.onData = func(c *InConn, fs []byte) {
		in.Store(c)
		held.Add(int64(len(fs)))
		eachFrame(fs, func([]byte) { got.Add(1) })
	}
	s := newSite(t, ca)
	ta := start(t, a, func(c *Config) {
		s.tls(c)
		c.renewWait = 50 * time.Millisecond
	})
	tb := start(t, b, newSite(t, ca).tls)
	link := ta.Link(tb.Self())
	require.NoError(t, send(t, link, 0, 0, 100, nil))
	until(t, func() bool { return got.Load() == 1 })
	s.prove(ca, time.Now().Add(20*time.Minute))
	until(t, func() bool { return ta.Stats().TLSReloads == 2 })
	require.NoError(t, send(t, link, 0, 1, 100, nil))
	until(t, func() bool { return got.Load() == 2 }) // it waited, and then went on
	require.Zero(t, ta.Stats().Data.Out-1)
	in.Load().Consumed(int(held.Load()))
	require.Empty(t, a.downs)
}

// Files that are no good, or fit not together, change nothing but a counter; the next good ones are taken.
func TestBadFilesAreNotTaken(t *testing.T) {
	ca := authority(t)
	s := newSite(t, ca)
	tr := start(t, newRider(), func(c *Config) {
		s.tls(c)
		c.filesEvery = time.Hour
	})
	first := tr.trust.State()
	cert, key := pki.Paths(s.dir, "node")
	good, err := os.ReadFile(key)
	require.NoError(t, err)
	require.NoError(t, tr.ReloadTLS(), "nothing has changed")
	for want, spoil := range map[string]func(){
		"not whole":    func() { require.NoError(t, os.WriteFile(key, good[:10], 0o600)) },
		"no such file": func() { require.NoError(t, os.Remove(cert)) },
		": no certificate": func() {
			require.NoError(t,
				os.WriteFile(filepath.Join(s.dir, "ca.crt"), []byte("x"), 0o600))
		},
		"own certificate would be": func() { s.believe(authority(t)) },
		"expired":                  func() { s.prove(ca, time.Now().Add(-time.Second)) },
		"does not match":           func() { require.NoError(t, os.WriteFile(key, keyOf(t, ca), 0o600)) },
	} {
		before := tr.Stats().TLSReloadsBad
		spoil()
		require.ErrorContains(t, tr.ReloadTLS(), want)
		require.Equal(t, before+1, tr.Stats().TLSReloadsBad)
		require.Same(t, first, tr.trust.State())
		s.believe(ca)
		s.prove(ca, time.Now().Add(30*time.Minute))
	}
	require.NoError(t, tr.ReloadTLS())
	require.EqualValues(t, 2, tr.Stats().TLSReloads)
	require.NotSame(t, first, tr.trust.State())
	plain := start(t, newRider(), nil)
	require.Error(t, plain.ReloadTLS())
}

// A node that notices files which are no good says so as an error of its own: no peer and no connection is at fault.
func TestNoticedBadFilesAreAnError(t *testing.T) {
	ca := authority(t)
	s := newSite(t, ca)
	var log logstest.Text
	tr := start(t, newRider(), func(c *Config) {
		s.tls(c)
		c.Logger = slog.New(slog.NewTextHandler(&log, nil))
	})
	_, key := pki.Paths(s.dir, "node")
	require.NoError(t, os.WriteFile(key, []byte("x"), 0o600))
	until(t, func() bool {
		tr.refreshTrust()
		return strings.Contains(log.String(), `level=ERROR msg="tls credentials not reloaded"`)
	})
	require.NotContains(t, log.String(), "connection fault")
}

// A certificate that is about to end, and a key that others can read, are logged.
func TestTLSWarnings(t *testing.T) {
	ca := authority(t)
	s := newSite(t, ca)
	_, key := pki.Paths(s.dir, "node")
	run := func(ends time.Time, mode os.FileMode, told string) string {
		s.prove(ca, ends)
		require.NoError(t, os.Chmod(key, mode))
		var log logstest.Text
		tr := start(t, newRider(), func(c *Config) {
			s.tls(c)
			c.Logger = slog.New(slog.NewTextHandler(&log, nil))
		})
		require.True(t, tr.Stats().CertificateExpiry.Equal(ends.Truncate(time.Second)))
		until(t, func() bool { return strings.Contains(log.String(), told) })
		tr.Close()
		return log.String()
	}
	require.Empty(t, run(time.Now().Add(30*time.Minute), 0o600, ""))
	run(time.Now().Add(30*time.Minute), 0o640, "others can read the private key")
	require.Equal(t, 1, strings.Count(run(time.Now().Add(20*time.Second), 0o600, "certificate ends"), "WARN"))
}

// keyOf returns a key that fits nothing.
func keyOf(t *testing.T, ca *pki.CA) []byte {
	p, err := ca.Issue(pki.Request{Name: "x", Until: time.Now().Add(time.Minute)})
	require.NoError(t, err)
	return p.Key
}
