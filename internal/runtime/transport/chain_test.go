// Tests of chains: which are believed, what strangers' cost, and which handshakes wait for which.

package transport

import (
	"crypto/tls"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/base/pki"
	"github.com/kith-io/kith/internal/runtime/trust"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// tangle is pki.Tangle.
func tangle(t testing.TB, n int) tls.Certificate {
	chain, err := pki.Tangle(n)
	require.NoError(t, err)
	return chain
}

// NonMembers with long chains are refused for it, whatever size they have, at a port and by a dialler (SEC-1).
func TestLongChainsAreRefused(t *testing.T) {
	ca := authority(t)
	tb, check := healthy(t, ca)
	long := leaf(t, ca, nil)
	for range trust.MaxChain {
		long.Certificate = append(long.Certificate, long.Certificate[0])
	}
	for name, certs := range map[string]tls.Certificate{"chain": long, "unknown-ca": tangle(t, 4),
		"bytes": tangle(t, 100)} {
		before := tb.Stats().TLSRefused[name]
		nc, err := net.Dial("tcp", tb.Addr().String())
		require.NoError(t, err)
		require.NoError(t, nc.SetDeadline(time.Now().Add(patience)))
		c := tls.Client(nc, &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13,
			GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &certs, nil }})
		if err = c.Handshake(); err == nil {
			_, err = c.Read(make([]byte, 1))
		}
		require.Error(t, err)
		require.False(t, isTimeout(err))
		until(t, func() bool { return tb.Stats().TLSRefused[name] == before+1 })
		require.NoError(t, nc.Close())
	}
	check()
	for name, certs := range map[string]tls.Certificate{"chain": long, "unknown-ca": tangle(t, 4),
		"bytes": tangle(t, 200)} {
		ln, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{certs},
			ClientAuth: tls.RequestClientCert})
		require.NoError(t, err)
		go func() {
			for {
				nc, err := ln.Accept()
				if err != nil {
					return
				}
				_, _ = io.Copy(io.Discard, nc)
				_ = nc.Close()
			}
		}()
		ta := start(t, newRider(), member(t, ca))
		require.NoError(t, ta.Send(peer.Mail{To: peer.ID{Addr: peer.MustAddr(ln.Addr().String()), Inc: 7},
			Kind: wire.KindStatus}))
		until(t, func() bool { return ta.Stats().TLSFailed[name] > 0 })
		ta.Close()
		require.NoError(t, ln.Close())
	}
}

// Non-members that stop in the middle of a handshake hold no turn: with one turn for all of them, one that goes on
// comes in beside them.
func TestTurnsAreNotHeldByWaiting(t *testing.T) {
	ca := authority(t)
	b := newRider()
	tb := start(t, b, func(c *Config) {
		member(t, ca)(c)
		c.Handshakes, c.HelloTimeout = 1, time.Hour
	})
	first := clientHello(t)
	for range 10 {
		nc, err := net.Dial("tcp", tb.Addr().String())
		require.NoError(t, err)
		defer nc.Close()
		_, err = nc.Write(first)
		require.NoError(t, err)
		require.NoError(t, nc.SetDeadline(time.Now().Add(patience)))
		_, err = nc.Read(make([]byte, 1))
		require.NoError(t, err, "its handshake goes on")
	}
	ta := start(t, newRider(), member(t, ca))
	require.NoError(t, ta.Send(peer.Mail{To: tb.Self(), Kind: wire.KindStatus}))
	wantMail(t, b, wire.KindStatus)
	until(t, func() bool { return tb.Stats().Pending == 10 && tb.trust.Working() == 0 })
}
