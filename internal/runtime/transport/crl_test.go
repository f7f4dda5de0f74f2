// Tests of revocation: lists that are no good, which certificate is refused at which end, connections that stand, lists
// that are due.

package transport

import (
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"log/slog"
	"math/big"
	"os"
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
	"github.com/kith-io/kith/wire"
)

// crl returns an authority's list of serial numbers, in PEM, due after an hour.
func crl(t testing.TB, ca *pki.CA, serials ...*big.Int) []byte {
	r, err := ca.Revocations(nil)
	require.NoError(t, err)
	for _, n := range serials {
		r.Add(n)
	}
	text, err := r.Sign(time.Hour)
	require.NoError(t, err)
	return text
}

// serial returns that of the certificate of a site.
func (s *site) serial() *big.Int {
	p, err := pki.Read(s.dir, "node")
	require.NoError(s.t, err)
	certs, err := pki.Certificates(p.Cert)
	require.NoError(s.t, err)
	return certs[0].SerialNumber
}
func derOf(t testing.TB, text []byte) []byte {
	block, _ := pem.Decode(text)
	require.NotNil(t, block)
	return block.Bytes
}

// signed returns a list with whatever it is to say.
func signed(t testing.TB, ca *pki.CA, list *x509.RevocationList) []byte {
	block, _ := pem.Decode(ca.Pair().Key)
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	require.NoError(t, err)
	certs, err := pki.Certificates(ca.Pair().Cert)
	require.NoError(t, err)
	list.ThisUpdate, list.NextUpdate, list.Number = time.Now(), time.Now().Add(time.Hour), big.NewInt(1)
	der, err := x509.CreateRevocationList(rand.Reader, list, certs[0], key.(*ecdsa.PrivateKey))
	require.NoError(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "X509 CRL", Bytes: der})
}

// Lists that are no good are not taken: a node does not start with one, and one that runs keeps what it has, says why
// and counts it. Good ones are taken in every form that they come in.
func TestCRLsThatAreNoGood(t *testing.T) {
	ca, other := authority(t), authority(t)
	s := newSite(t, ca)
	n := big.NewInt(7)
	good := crl(t, ca, n)
	s.revoke(good)
	tr := start(t, newRider(), func(c *Config) {
		s.tls(c)
		c.filesEvery = time.Hour
	})
	first := tr.trust.State()
	require.Equal(t, 1, tr.Stats().TLSRevoked)
	forged := append([]byte(nil), derOf(t, good)...)
	forged[len(forged)-1] ^= 1
	critical := pkix.Extension{Id: asn1.ObjectIdentifier{2, 5, 29, 28}, Critical: true, Value: []byte{0x30, 0}}
	for name, bad := range map[string]struct {
		text []byte
		want string
	}{
		"empty":       {nil, "no revocation list"},
		"no list":     {ca.Pair().Cert, "no revocation list"},
		"garbage":     {[]byte("what is this"), "neither PEM nor DER"},
		"cut PEM":     {good[:len(good)/2], "1 of 1 revocation lists are broken"},
		"second cut":  {append(crl(t, ca, n), good[:len(good)/2]...), "1 of 2 revocation lists are broken"},
		"cut DER":     {derOf(t, good)[:40], "neither PEM nor DER"},
		"tail":        {append(derOf(t, good), 1), "revocation list 2 is neither"},
		"other DER":   {[]byte{0x30, 0}, "revocation list 1"},
		"certificate": {pem.EncodeToMemory(&pem.Block{Type: "X509 CRL", Bytes: derOf(t, ca.Pair().Cert)}), "list 1"},
		"too long":    {make([]byte, trust.MaxCRLBytes+1), "more than 4194304 bytes"},
		"too many":    {[]byte(strings.Repeat(string(good), trust.MaxCRLs+1)), "more than 64"},
		"another CA":  {crl(t, other, n), "ECDSA verification failure"},
		"stranger":    {crl(t, named(t, "stranger"), n), "nobody who is believed"},
		"forged":      {forged, "verification failure"},
		"partial": {signed(t, ca, &x509.RevocationList{ExtraExtensions: []pkix.Extension{critical}}),
			"critical extension 2.5.29.28"},
		"indirect": {signed(t, ca, &x509.RevocationList{RevokedCertificateEntries: []x509.RevocationListEntry{
			{SerialNumber: n, RevocationTime: time.Now(), ExtraExtensions: []pkix.Extension{critical}}}}),
			"serial 7 has the critical extension"},
		"own": {crl(t, ca, s.serial()), "own certificate would be refused: tls: revoked"},
	} {
		before := tr.Stats().TLSReloadsBad
		s.revoke(bad.text)
		require.ErrorContains(t, tr.ReloadTLS(), bad.want, name)
		require.Equal(t, before+1, tr.Stats().TLSReloadsBad, name)
		require.Same(t, first, tr.trust.State(), name)
		_, err := trust.New(tr.cfg.trust())
		require.ErrorContains(t, err, bad.want, name)
	}
	require.NoError(t, os.Remove(s.crl()))
	require.ErrorContains(t, tr.ReloadTLS(), "no such file", "a list is not given up by losing it")

	s.believe(ca, other)
	both := append(crl(t, ca, n, big.NewInt(8)), crl(t, other, n)...)
	s.revoke(both)
	require.NoError(t, tr.ReloadTLS())
	require.Equal(t, 3, tr.Stats().TLSRevoked, "7 and 8 of one authority, 7 of the other")
	changed := tr.Stats().TLSReloads
	require.NoError(t, tr.ReloadTLS())
	require.Equal(t, changed, tr.Stats().TLSReloads, "nothing has changed")
	s.revoke(append(derOf(t, crl(t, ca, n)), derOf(t, crl(t, other))...))
	require.NoError(t, tr.ReloadTLS())
	require.Equal(t, 1, tr.Stats().TLSRevoked)
}

// named makes an authority of that name.
func named(t testing.TB, name string) *pki.CA {
	ca, err := pki.NewCA(name, time.Hour)
	require.NoError(t, err)
	return ca
}

// A node with a revoked certificate is refused where it dials and where it is dialled, each counted at both ends,
// beside a healthy pair of the same authority.
func TestRevokedAreRefusedAtBothEnds(t *testing.T) {
	ca := authority(t)
	_, check := healthy(t, ca)
	good, bad := newSite(t, ca), newSite(t, ca)
	good.revoke(crl(t, ca, bad.serial()))
	a, b := newRider(), newRider()
	ta, tb := start(t, a, good.tls), start(t, b, bad.tls) // the latter knows of nothing
	require.NoError(t, tb.Send(peer.Mail{To: ta.Self(), Kind: wire.KindGossip}))
	until(t, func() bool {
		return ta.Stats().TLSRefused["revoked"] > 0 && tb.Stats().TLSFailed["refused-by-peer"] > 0
	})
	require.NoError(t, ta.Send(peer.Mail{To: tb.Self(), Kind: wire.KindGossip}))
	until(t, func() bool {
		return ta.Stats().TLSFailed["revoked"] > 0 && tb.Stats().TLSRefused["refused-by-peer"] > 0
	})
	require.Empty(t, a.mails)
	require.Empty(t, b.mails)
	bad.prove(ca, time.Now().Add(20*time.Minute)) // it gets another one
	until(t, func() bool {                        // mail is dropped if its receiver could not be dialled
		require.NoError(t, tb.Send(peer.Mail{To: ta.Self(), Kind: wire.KindStatus}))
		return len(a.mails) > 0
	})
	check()
}

// A list that comes while connections stand ends those of the certificates on it, of every lane and direction, and no
// other one: what the others send meanwhile arrives once and in order.
func TestRevocationEndsStandingConnections(t *testing.T) {
	ca := authority(t)
	var sites [3]*site
	var nodes [3]bulkNode
	runtimes := [3]*rider{newRider(), newRider(), newRider()}
	var next atomic.Uint32
	for i, r := range runtimes {
		sites[i] = newSite(t, ca)
		sites[i].revoke(crl(t, ca))
		r.onData = func(c *InConn, fs []byte) {
			eachFrame(fs, func(f []byte) {
				var e wire.Envelope
				if i != 1 || c.From() != nodes[0].Self() {
					return
				}
				if wire.ParseEnvelope(f, &e) != nil || e.Shard != next.Load() {
					t.Errorf("frame %d instead of %d", e.Shard, next.Load())
				}
				next.Add(1)
			})
			c.Consumed(len(fs))
		}
		nodes[i].bulkRider = newBulkRider()
		nodes[i].Transport = start(t, r, func(c *Config) {
			sites[i].tls(c)
			c.Bulk, c.renewWait = nodes[i].bulkRider, 200*time.Millisecond // what nobody takes is waited for so long
		})
	}
	a, b, out := nodes[0], nodes[1], nodes[2]
	for _, pair := range [][2]bulkNode{{a, b}, {a, out}, {out, a}, {b, out}, {out, b}} {
		from, to := pair[0], pair[1]
		require.NoError(t, from.Send(peer.Mail{To: to.Self(), Kind: wire.KindStatus, Body: []byte{1}}))
		if from != a || to != b {
			require.NoError(t, send(t, from.Link(to.Self()), 0, 0, 100, nil))
		}
	}
	for _, pair := range [][2]bulkNode{{a, out}, {out, a}} { // nobody takes it
		require.NoError(t, pair[0].Bulk(pair[1].Self()).Send(&flow.BulkTransfer{Payload: noise(100_000)}))
		want(t, pair[0].whole)
	}
	link, stop, sent := a.Link(b.Self()), make(chan struct{}), make(chan uint32, 1)
	go func() {
		n := uint32(0)
		defer func() { sent <- n }()
		for ; ; n++ {
			select {
			case <-stop:
				return
			default:
			}
			if send(t, link, 0, n, int(n%2000), a.ctx.Done()) != nil {
				return
			}
		}
	}()
	standing := func() bool {
		s := out.Stats()
		return s.Control.Out == 2 && s.Data.Out == 2 && s.Control.In == 2 && s.Data.In == 2 && next.Load() > 0
	}
	until(t, standing)
	list := crl(t, ca, sites[2].serial())
	sites[0].revoke(list)
	sites[1].revoke(list)
	until(t, func() bool {
		s := out.Stats()
		return s.Control.Out+s.Data.Out+s.Control.In+s.Data.In == 0 && s.Bulk.In+s.Bulk.Out == 0
	})
	for _, n := range []bulkNode{a, b} {
		require.NotZero(t, n.Stats().TLSRefused["revoked"], "its own connections were closed")
		until(t, func() bool { return n.Stats().TLSFailed["revoked"] > 0 })
		require.Equal(t, 1, n.Stats().TLSRevoked)
	}
	before := next.Load()
	until(t, func() bool { return next.Load() > before+100 })
	close(stop)
	n := want(t, sent)
	until(t, func() bool { return next.Load() == n })
	for len(runtimes[0].downs) > 0 {
		require.Equal(t, out.Self(), want(t, runtimes[0].downs).id)
	}
}

// A certificate on a list that was due to be replaced is refused, one that is not on it is let in; that is logged once
// an hour, and counted.
func TestOverdueCRL(t *testing.T) {
	ca := authority(t)
	good, bad := newSite(t, ca), newSite(t, ca)
	r, err := ca.Revocations(nil)
	require.NoError(t, err)
	r.Add(bad.serial())
	text, err := r.Sign(5 * time.Minute)
	require.NoError(t, err)
	good.revoke(text)
	var late atomic.Int64
	var log logstest.Text
	a := newRider()
	ta := start(t, a, func(c *Config) {
		good.tls(c)
		c.wall = func() time.Time { return time.Now().Add(time.Duration(late.Load())) }
		c.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))
	})
	require.Zero(t, ta.Stats().TLSStaleCRLs)
	late.Store(int64(6 * time.Minute))
	require.Equal(t, 1, ta.Stats().TLSStaleCRLs)
	until(t, func() bool { return strings.Contains(log.String(), "due to be replaced") })
	revoked, fresh := start(t, newRider(), bad.tls), start(t, newRider(), newSite(t, ca).tls)
	require.NoError(t, revoked.Send(peer.Mail{To: ta.Self(), Kind: wire.KindGossip}))
	until(t, func() bool { return ta.Stats().TLSRefused["revoked"] > 0 })
	require.NoError(t, fresh.Send(peer.Mail{To: ta.Self(), Kind: wire.KindStatus, Body: []byte{1}}))
	wantMail(t, a, wire.KindStatus)
	require.Equal(t, 1, strings.Count(log.String(), "due to be replaced"))
	good.revoke(crl(t, ca, bad.serial()))
	until(t, func() bool { return ta.Stats().TLSStaleCRLs == 0 })
}
