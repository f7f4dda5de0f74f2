// Tests of TLS as an embedder sees it: what Config demands, a cluster over TLS, strangers, new credentials.

package e2e_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/internal/base/pki"
)

// TLS must be whole, and takes the place of Insecure.
func TestTLSConfig(t *testing.T) {
	t.Parallel()
	files := kith.TLS{CertFile: "c", KeyFile: "k", CAFile: "a"}
	load := func() (kith.Credentials, error) { return kith.Credentials{}, errors.New("no luck") }
	require.NoError(t, kith.Config{Listen: "0.0.0.0:1", TLS: files}.Validate())
	require.NoError(t, kith.Config{TLS: kith.TLS{Load: load}}.Validate())
	for want, bad := range map[string]kith.TLS{
		"are needed together": {CertFile: "c", KeyFile: "k"},
		"exclude each other":  {Load: load, CAFile: "a"},
		"without":             {VerifyHost: true},
	} {
		err := kith.Config{TLS: bad}.Validate()
		require.ErrorContains(t, err, want)
		require.ErrorIs(t, err, kith.ErrBadConfig)
	}
	_, err := kith.Start(context.Background(), kith.Config{TLS: files})
	require.ErrorContains(t, err, "certificate: open c")
	_, err = kith.Start(context.Background(), kith.Config{TLS: kith.TLS{Load: load}})
	require.ErrorContains(t, err, "no luck")
	require.Equal(t, "kith://cluster/my%20market%2F1", kith.ClusterURI("my market/1"))
}

// issued makes credentials of a node of a cluster.
func issued(t *testing.T, ca *pki.CA, cluster string) kith.Credentials {
	return issuedTo(t, ca, cluster, "node")
}

// issuedTo makes credentials of the node of that name.
func issuedTo(t *testing.T, ca *pki.CA, cluster, name string) kith.Credentials {
	p, err := ca.Issue(pki.Request{Name: name, URIs: []string{kith.ClusterURI(cluster)},
		Until: time.Now().Add(30 * time.Minute)})
	require.NoError(t, err)
	c := kith.Credentials{CAs: x509.NewCertPool()}
	c.Certificate, err = tls.X509KeyPair(p.Cert, p.Key)
	require.NoError(t, err)
	require.True(t, c.CAs.AppendCertsFromPEM(ca.Pair().Cert))
	return c
}

// A whole rotation of authorities under an application that tells and asks all the time: everything is delivered once
// and in order, no ask fails, no member is ever unreachable (SHD-9).
func TestRotationUnderAnApplication(t *testing.T) {
	t.Parallel()
	old, err := pki.NewCA("old", time.Hour)
	require.NoError(t, err)
	young, err := pki.NewCA("young", time.Hour)
	require.NoError(t, err)
	// now is what every node loads.
	now := func(prove *pki.CA, believe ...*pki.CA) kith.Credentials {
		c := issued(t, prove, "test")
		c.CAs = x509.NewCertPool()
		for _, ca := range believe {
			require.True(t, c.CAs.AppendCertsFromPEM(ca.Pair().Cert))
		}
		return c
	}
	var current atomic.Pointer[kith.Credentials]
	first := now(old, old)
	current.Store(&first)
	book := newLedger()
	regions := make([]*kith.Region, 3)
	nodes := cluster(t, 3, func(i int, cfg *kith.Config) {
		cfg.TLS.Load = func() (kith.Credentials, error) { return *current.Load(), nil }
	}, func(i int, n *kith.Node) {
		r, err := n.Register(echoType("echo", kith.Blocking, book, func() *kith.Node { return n }))
		require.NoError(t, err)
		regions[i] = r
	})
	ctx := within(t)
	stop := make(chan struct{})
	sent := make(chan int, len(regions))
	for i, r := range regions {
		go func() {
			n := 0
			defer func() { sent <- n }()
			for ; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				id := "e" + string(rune('a'+n%16))
				if err := r.TellWait(ctx, id, numbered(i, uint64(n/16))); err != nil {
					t.Errorf("tell: %v", err)
					return
				}
				if _, err := r.Ask(ctx, id, []byte("hello")); err != nil {
					t.Errorf("ask: %v", err)
					return
				}
			}
		}()
	}
	// Nobody's connections are of older credentials than his newest once as many as stood then were made anew: two data,
	// two control, and perhaps one to a contact point.
	for step, c := range []kith.Credentials{now(old, old, young), now(young, old, young), now(young, young)} {
		current.Store(&c)
		for _, n := range nodes {
			s := n.Stats().Transport
			require.Eventually(t, func() bool {
				s = n.Stats().Transport
				return s.Data.Out >= 2 && s.Control.Out >= 2
			}, patience, time.Millisecond)
			require.NoError(t, n.ReloadTLS())
			want := s.TLSRenewed + uint64(s.Data.Out+s.Control.Out)
			require.Eventually(t, func() bool { return n.Stats().Transport.TLSRenewed >= want }, patience, time.Millisecond,
				"step %d", step)
		}
	}
	close(stop)
	total := 0
	for range regions {
		total += <-sent
	}
	book.await(t, total)
	for _, n := range nodes {
		s := n.Stats().Transport
		require.Zero(t, s.LostBytes)
		// A connection that was being dialled with the credentials of the step before may come too late for this one: it is
		// refused, and dialled again with the newest. Nothing is lost by it.
		for reason, count := range s.TLSRefused {
			require.Equal(t, "unknown-ca", reason)
			require.LessOrEqual(t, count, uint64(2))
		}
		require.Empty(t, s.TLSFailed)
		require.Equal(t, 3, n.View().CountUp())
	}
}

// A cluster over TLS tells and asks; a node with another cluster's certificate, of the same authority, is never let in.
func TestClusterOverTLS(t *testing.T) {
	t.Parallel()
	ca, err := pki.NewCA("test", time.Hour)
	require.NoError(t, err)
	var log bytes.Buffer
	book := newLedger()
	regions := make([]*kith.Region, 3)
	nodes := cluster(t, 3, func(i int, cfg *kith.Config) {
		if i == 0 {
			cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
		}
		cfg.TLS.Load = func() (kith.Credentials, error) { return issued(t, ca, "test"), nil }
	}, func(i int, n *kith.Node) {
		r, err := n.Register(echoType("echo", kith.Blocking, book, func() *kith.Node { return n }))
		require.NoError(t, err)
		regions[i] = r
	})
	for i := range 300 {
		id := "e" + string(rune('a'+i/3%25))
		require.NoError(t, regions[i%3].TellWait(within(t), id, numbered(i%3, uint64(i/75))))
	}
	for i, r := range regions {
		reply, err := r.Ask(within(t), string(rune('a'+i)), []byte("hello"))
		require.NoError(t, err)
		require.Equal(t, "re: hello", string(reply))
	}
	book.await(t, 300)
	for _, n := range nodes {
		require.NoError(t, n.ReloadTLS())
		require.EqualValues(t, 2, n.Stats().Transport.TLSReloads)
	}
	stranger := start(t, logger(t), kith.Config{Seeds: []string{nodes[0].Addr().String()}, JoinTimeout: 2 * time.Second,
		Name: "test2", TLS: kith.TLS{Load: func() (kith.Credentials, error) { return issued(t, ca, "test2"), nil }}})
	require.Error(t, stranger.Ready(within(t)))
	require.NotZero(t, nodes[0].Stats().Transport.TLSRefused["refused-by-peer"],
		"each end refuses the other; the dialler comes first")
	require.Equal(t, 3, nodes[0].View().CountUp())
	require.NoError(t, nodes[0].Close())
	require.NotContains(t, log.String(), "neither encrypted")
}
