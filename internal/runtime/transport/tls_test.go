// Tests of TLS over sockets: every lane, every certificate that must be refused, in both directions, and diallers that
// speak something else.

package transport

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/base/pki"
	"github.com/kith-io/kith/internal/core/hello"
	"github.com/kith-io/kith/internal/runtime/trust"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

// authority makes a certificate authority.
func authority(t testing.TB) *pki.CA {
	ca, err := pki.NewCA("test", time.Hour)
	require.NoError(t, err)
	return ca
}

// pool holds the authorities that are trusted.
func pool(t testing.TB, cas ...*pki.CA) *x509.CertPool {
	p := x509.NewCertPool()
	for _, ca := range cas {
		require.True(t, p.AppendCertsFromPEM(ca.Pair().Cert))
	}
	return p
}

// leaf issues a certificate of a node of the cluster "test", changed at will.
func leaf(t testing.TB, ca *pki.CA, change func(*pki.Request)) tls.Certificate {
	r := pki.Request{Name: "node", URIs: []string{trust.ClusterURI("test")}, Until: time.Now().Add(30 * time.Minute)}
	if change != nil {
		change(&r)
	}
	p, err := ca.Issue(r)
	require.NoError(t, err)
	cert, err := tls.X509KeyPair(p.Cert, p.Key)
	require.NoError(t, err)
	return cert
}

// withTLS configures TLS from memory.
func withTLS(c trust.Credentials) func(*Config) {
	return func(cfg *Config) { cfg.TLS = trust.TLS{Load: func() (trust.Credentials, error) { return c, nil }} }
}

// member returns what makes a transport a node that ca vouches for.
func member(t testing.TB, ca *pki.CA) func(*Config) {
	return withTLS(trust.Credentials{Certificate: leaf(t, ca, nil), CAs: pool(t, ca)})
}

// Both lanes, both directions, credit and answers to heartbeats, over TLS; every frame once and in order (CARD-3).
func TestTLSCarriesAllLanes(t *testing.T) {
	const frames = 20_000
	ca := authority(t)
	a, b := newRider(), newRider()
	var next [2]atomic.Uint32
	for i, r := range []*rider{a, b} {
		r.onData = func(c *InConn, fs []byte) {
			eachFrame(fs, func(f []byte) {
				var e wire.Envelope
				if wire.ParseEnvelope(f, &e) != nil || e.Shard != next[i].Load() {
					t.Errorf("frame %d instead of %d", e.Shard, next[i].Load())
				}
				next[i].Add(1)
			})
			c.Consumed(len(fs))
		}
	}
	small := func(member func(*Config)) func(*Config) {
		return func(c *Config) {
			member(c)
			c.Window, c.LinkBuffer, c.MaxFrame = 128<<10, 256<<10, 64<<10
		}
	}
	ta, tb := start(t, a, small(member(t, ca))), start(t, b, small(member(t, ca)))
	require.NoError(t, ta.Send(peer.Mail{To: tb.Self(), Kind: wire.KindGossip, Body: make([]byte, 200_000)}))
	require.Len(t, wantMail(t, b, wire.KindGossip).body, 200_000)
	require.NoError(t, ta.Send(peer.Mail{To: peer.ID{Addr: tb.Addr()}, Kind: wire.KindHeartbeat,
		Body: wire.AppendHeartbeat(nil, wire.Heartbeat{Seq: 7})}))
	ack, err := wire.ParseHeartbeatAck([]byte(wantMail(t, a, wire.KindHeartbeatAck).body))
	require.NoError(t, err)
	require.EqualValues(t, 7, ack.Seq)
	for _, l := range []*Link{ta.Link(tb.Self()), tb.Link(ta.Self())} {
		go func() {
			for seq := range uint32(frames) {
				if send(t, l, 0, seq, int(seq%3000), ta.ctx.Done()) != nil {
					return
				}
			}
		}()
	}
	arrives(t, func() (int, bool) {
		x, y := next[0].Load(), next[1].Load()
		return int(x + y), x == frames && y == frames
	})
	require.Empty(t, ta.Stats().TLSFailed)
	require.Empty(t, tb.Stats().TLSRefused)
	require.EqualValues(t, 1, tb.Stats().TLSReloads)
}

// healthy keeps two nodes talking until the returned check: what was sent has arrived, and nobody refused anybody.
func healthy(t *testing.T, ca *pki.CA) (tb *Transport, check func()) {
	a, b := newRider(), newRider()
	var got atomic.Uint32
	b.onData = func(c *InConn, fs []byte) {
		eachFrame(fs, func([]byte) { got.Add(1) })
		c.Consumed(len(fs))
	}
	ta, tb := start(t, a, member(t, ca)), start(t, b, func(c *Config) {
		member(t, ca)(c)
		c.HelloTimeout = 300 * time.Millisecond
	})
	link := ta.Link(tb.Self())
	stop, sent := make(chan struct{}), make(chan uint32, 1)
	go func() {
		for n := uint32(0); ; n++ {
			select {
			case <-stop:
				sent <- n
				return
			case <-time.After(100 * time.Microsecond):
			}
			if send(t, link, 0, n, 100, ta.ctx.Done()) != nil {
				sent <- n
				return
			}
		}
	}()
	until(t, func() bool { return got.Load() > 0 })
	return tb, func() {
		close(stop)
		n := want(t, sent)
		until(t, func() bool { return got.Load() == n })
		require.Empty(t, a.downs)
	}
}

// badNodes are certificates that no node of the cluster may have, and why each is refused.
func badNodes(t *testing.T, ca *pki.CA) []badNode {
	other := authority(t)
	ago := func(r *pki.Request) { r.From, r.Until = time.Now().Add(-time.Hour), time.Now().Add(-time.Minute) }
	return []badNode{
		{"none", trust.TLSNoCertificate, nil},
		{"expired", trust.TLSExpired, []tls.Certificate{leaf(t, ca, ago)}},
		{"not valid yet", trust.TLSEarly, []tls.Certificate{leaf(t, ca, func(r *pki.Request) {
			r.From = time.Now().Add(10 * time.Minute)
		})}},
		{"another authority", trust.TLSUnknownCA, []tls.Certificate{leaf(t, other, nil)}},
		{"another cluster", trust.TLSCluster, []tls.Certificate{leaf(t, ca, func(r *pki.Request) {
			r.URIs = []string{trust.ClusterURI("test2")}
		})}},
		{"no cluster", trust.TLSCluster, []tls.Certificate{leaf(t, ca, func(r *pki.Request) { r.URIs = nil })}},
		{"no client usage", trust.TLSUsage, []tls.Certificate{leaf(t, ca, func(r *pki.Request) {
			r.Usages = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
		})}},
		{"no server usage", trust.TLSUsage, []tls.Certificate{leaf(t, ca, func(r *pki.Request) {
			r.Usages = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
		})}},
	}
}

type badNode struct {
	name   string
	reason trust.TLSReason
	certs  []tls.Certificate
}

// A stranger with a bad certificate dials: it is refused with its counted reason and an alert before its hello is
// looked at, while a healthy pair goes on.
func TestBadCertificatesOfDiallers(t *testing.T) {
	ca := authority(t)
	tb, check := healthy(t, ca)
	for _, bad := range badNodes(t, ca) {
		t.Run(bad.name, func(t *testing.T) {
			before := tb.Stats().TLSRefused[bad.reason.String()]
			nc, err := net.Dial("tcp", tb.Addr().String())
			require.NoError(t, err)
			defer nc.Close()
			require.NoError(t, nc.SetDeadline(time.Now().Add(patience)))
			c := tls.Client(nc, &tls.Config{InsecureSkipVerify: true, Certificates: bad.certs, MinVersion: tls.VersionTLS13})
			err = c.Handshake()
			if err == nil { // a dialler of TLS 1.3 learns it later
				_, err = c.Read(make([]byte, 1))
			}
			require.True(t, trust.IsAlert(err), "%v", err)
			until(t, func() bool { return tb.Stats().TLSRefused[bad.reason.String()] == before+1 })
		})
	}
	check()
	until(t, func() bool { return tb.Stats().Pending == 0 })
	require.Equal(t, 1, tb.Stats().Peers, "no stranger has become a peer")
}

// A listener with a bad certificate at the address of a peer gets no hello.
func TestBadCertificatesOfAcceptors(t *testing.T) {
	ca := authority(t)
	_, check := healthy(t, ca)
	a := newRider()
	ta := start(t, a, member(t, ca))
	for i, bad := range badNodes(t, ca) {
		if bad.certs == nil {
			continue // no server without one
		}
		t.Run(bad.name, func(t *testing.T) {
			ln, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			defer ln.Close()
			got := make(chan error, 64)
			go func() {
				for {
					nc, err := ln.Accept()
					if err != nil {
						return
					}
					s := tls.Server(nc, &tls.Config{Certificates: bad.certs, ClientAuth: tls.RequestClientCert,
						MinVersion: tls.VersionTLS13})
					err = s.Handshake()
					if err == nil {
						_, err = s.Read(make([]byte, 1))
					}
					got <- err
					nc.Close()
				}
			}()
			before := ta.Stats().TLSFailed[bad.reason.String()]
			id := peer.ID{Addr: peer.MustAddr(ln.Addr().String()), Inc: uint64(i) + 1}
			require.NoError(t, ta.Send(peer.Mail{To: id, Kind: wire.KindGossip}))
			require.True(t, trust.IsAlert(want(t, got)))
			until(t, func() bool { return ta.Stats().TLSFailed[bad.reason.String()] > before })
			ta.Forget(id)
		})
	}
	check()
}

// A node with a certificate that others refuse learns why from its own side too, and says it with a typed error.
func TestRefusedByPeer(t *testing.T) {
	ours, theirs := authority(t), authority(t)
	a, b := newRider(), newRider()
	// a believes both authorities, so it gets as far as b, which believes one.
	ta := start(t, a, withTLS(trust.Credentials{Certificate: leaf(t, ours, nil), CAs: pool(t, ours, theirs)}))
	tb := start(t, b, member(t, theirs))
	require.NoError(t, ta.Send(peer.Mail{To: tb.Self(), Kind: wire.KindGossip}))
	until(t, func() bool {
		return ta.Stats().TLSFailed["refused-by-peer"] > 0 && tb.Stats().TLSRefused["unknown-ca"] > 0
	})
}

// The host that was dialled must stand in the certificate when that is asked for.
func TestVerifyHost(t *testing.T) {
	ca := authority(t)
	strict := func(c *Config) {
		member(t, ca)(c)
		c.TLS.VerifyHost = true
	}
	ta := start(t, newRider(), strict)
	nameless, b := newRider(), newRider()
	tn := start(t, nameless, member(t, ca))
	tb := start(t, b, withTLS(trust.Credentials{
		Certificate: leaf(t, ca, func(r *pki.Request) { r.Hosts = []string{"127.0.0.1"} }), CAs: pool(t, ca)}))
	require.NoError(t, ta.Send(peer.Mail{To: tb.Self(), Kind: wire.KindGossip}))
	wantMail(t, b, wire.KindGossip)
	require.Empty(t, ta.Stats().TLSFailed)
	require.NoError(t, ta.Send(peer.Mail{To: tn.Self(), Kind: wire.KindGossip}))
	until(t, func() bool { return ta.Stats().TLSFailed["other-host"] > 0 })
}

// A dialler that has only TLS 1.2 is distinguished.
func TestOldTLS(t *testing.T) {
	ca := authority(t)
	tb := start(t, newRider(), member(t, ca))
	nc, err := net.Dial("tcp", tb.Addr().String())
	require.NoError(t, err)
	defer nc.Close()
	require.NoError(t, nc.SetDeadline(time.Now().Add(patience)))
	c := tls.Client(nc, &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12,
		Certificates: []tls.Certificate{leaf(t, ca, nil)}})
	require.True(t, trust.IsAlert(c.Handshake()))
	until(t, func() bool { return tb.Stats().TLSRefused["tls-version"] == 1 })
}

// A node without TLS at a port with TLS is refused for good, naming both; a node with TLS at a port without gets
// nowhere, and does not believe a refusal in clear text.
func TestPlainMeetsTLS(t *testing.T) {
	ca := authority(t)
	a, b := newRider(), newRider()
	plain, secured := start(t, a, nil), start(t, b, member(t, ca))
	require.NoError(t, plain.Send(peer.Mail{To: secured.Self(), Kind: wire.KindGossip}))
	e := want(t, a.refused)
	require.Equal(t, hello.RefusedTLS, e.Reason)
	require.ErrorContains(t, e, `ours "off", theirs "required"`)
	require.EqualValues(t, 1, secured.Stats().TLSRefused["not-tls"])
	require.NoError(t, secured.Send(peer.Mail{To: plain.Self(), Kind: wire.KindGossip}))
	until(t, func() bool { return secured.Stats().TLSFailed["not-tls"] > 0 && plain.Stats().Refused["tls"] > 0 })
	require.Empty(t, b.refused)
}

// Garbage and plain text of every kind at a TLS port costs a counted refusal each.
func TestGarbageAtATLSPort(t *testing.T) {
	tb, check := healthy(t, authority(t))
	for _, garbage := range []string{
		"GET / HTTP/1.1\r\n\r\n", "\x00", "\x16\x03\x01\xff\xff", "\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00",
		"\x80\x2e\x01\x00\x02", "\x17\x03\x03\x40\x00" + string(make([]byte, 16384)),
	} {
		nc, err := net.Dial("tcp", tb.Addr().String())
		require.NoError(t, err)
		require.NoError(t, nc.SetDeadline(time.Now().Add(patience)))
		_, err = io.WriteString(nc, garbage)
		require.NoError(t, err)
		_, err = io.Copy(io.Discard, nc) // until it is closed, by what was wrong or by the time limit
		require.False(t, errors.Is(err, route.ErrTimeout) || isTimeout(err), "%q: %v", garbage, err)
		nc.Close()
	}
	check()
	s := tb.Stats()
	require.NotZero(t, s.TLSRefused["not-tls"])
	require.NotZero(t, s.TLSRefused["timeout"])
	require.NotZero(t, s.TLSRefused["other"])
	require.Equal(t, 1, s.Peers)
}

func isTimeout(err error) bool {
	n, ok := err.(net.Error)
	return ok && n.Timeout()
}

// A dialler that is through with TLS has proved to be a node; the hello's own bounds stay: a slow one is closed, and
// more bytes than a hello has are not read.
func TestHelloBehindTLS(t *testing.T) {
	ca := authority(t)
	tb, check := healthy(t, ca)
	dial := func() *tls.Conn {
		nc, err := net.Dial("tcp", tb.Addr().String())
		require.NoError(t, err)
		t.Cleanup(func() { nc.Close() })
		require.NoError(t, nc.SetDeadline(time.Now().Add(patience)))
		return tls.Client(nc, &tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{leaf(t, ca, nil)}})
	}
	// On a busy machine the handshake alone may take the time that there is for all of it: then another one tries.
	faults := func() uint64 { return tb.Stats().FaultsHello }
	late := func() uint64 { return tb.Stats().TLSRefused[trust.TLSTimeout.String()] }
	for before := faults(); faults() == before; {
		silent, was := dial(), late()
		if silent.Handshake() == nil {
			_, err := silent.Read(make([]byte, 1))
			require.False(t, err == nil || isTimeout(err), "closed by the node: %v", err)
		}
		until(t, func() bool { return faults() > before || late() > was })
	}
	for {
		long, before := dial(), faults()+late()
		head := binary.LittleEndian.AppendUint32(nil, 1<<20)
		_, _ = long.Write(append(head, byte(wire.KindHello), 0, 0, 0))
		kind, body, err := readFrame(long, hello.MaxAnswer)
		if err != nil {
			require.False(t, isTimeout(err))
			until(t, func() bool { return faults()+late() > before })
			continue
		}
		require.Equal(t, wire.KindHelloRefuse, kind)
		e, err := hello.ParseRefusal(body)
		require.NoError(t, err)
		require.Equal(t, hello.RefusedMagic, e.Reason)
		break
	}
	check()
}
