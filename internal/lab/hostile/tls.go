// The attacks at a port with TLS.

package hostile

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/internal/base/pki"
	"github.com/kith-io/kith/wire"
)

// Revoked makes a certificate of the cluster, and the authority's list that it is on, in PEM.
func (t *Target) Revoked(ca *pki.CA) (stolen tls.Certificate, list []byte, err error) {
	r, err := ca.Revocations(nil)
	if err != nil {
		return stolen, nil, err
	}
	pair, err := ca.Issue(pki.Request{Name: "stolen", URIs: []string{kith.ClusterURI(t.Name)},
		Until: time.Now().Add(30 * time.Minute)})
	if err != nil {
		return stolen, nil, err
	}
	if stolen, err = tls.X509KeyPair(pair.Cert, pair.Key); err != nil {
		return stolen, nil, err
	}
	r.Add(stolen.Leaf.SerialNumber)
	list, err = r.Sign(time.Hour)
	return stolen, list, err
}

// Uncertified are the attacks of clients without a certificate of the cluster (its authority is ca), or with a stolen
// one that is revoked.
func (t *Target) Uncertified(ca *pki.CA, stolen tls.Certificate) ([]Attack, error) {
	other, err := pki.NewCA("other", time.Hour)
	if err != nil {
		return nil, err
	}
	list := []Attack{t.certified("no certificate", "tls/no-certificate", nil),
		t.certified("a certificate that is revoked", "tls/revoked", []tls.Certificate{stolen})}
	soon, ago := time.Now().Add(30*time.Minute), time.Now().Add(-time.Hour)
	uri := []string{kith.ClusterURI(t.Name)}
	for _, bad := range []struct {
		name, reason string
		ca           *pki.CA
		request      pki.Request
	}{
		{"an expired certificate", "expired", ca, pki.Request{URIs: uri, From: ago, Until: ago.Add(time.Minute)}},
		{"a certificate of tomorrow", "not-valid-yet", ca, pki.Request{URIs: uri, From: soon.Add(-time.Minute), Until: soon}},
		{"a certificate of another authority", "unknown-ca", other, pki.Request{URIs: uri, Until: soon}},
		{"a certificate of another cluster", "other-cluster", ca,
			pki.Request{URIs: []string{kith.ClusterURI(t.Name + "2")}, Until: soon}},
		{"a certificate of no cluster", "other-cluster", ca, pki.Request{Until: soon}},
		{"a certificate without client usage", "usage", ca,
			pki.Request{URIs: uri, Until: soon, Usages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}},
		{"a certificate without server usage", "usage", ca,
			pki.Request{URIs: uri, Until: soon, Usages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}},
	} {
		bad.request.Name = "stranger"
		pair, err := bad.ca.Issue(bad.request)
		if err != nil {
			return nil, err
		}
		cert, err := tls.X509KeyPair(pair.Cert, pair.Key)
		if err != nil {
			return nil, err
		}
		list = append(list, t.certified(bad.name, "tls/"+bad.reason, []tls.Certificate{cert}))
	}
	tangles, err := t.Tangles()
	if err != nil {
		return nil, err
	}
	list = append(list, tangles...)
	return append(list, t.unencrypted()...), nil
}

// Tangles are the attacks by certificates that are dear to look at, and prove nothing.
func (t *Target) Tangles() (list []Attack, err error) {
	for _, chain := range []struct {
		n      int
		counts string
	}{{4, "tls/unknown-ca"}, {10, "tls/chain"}, {100, "tls/bytes"}} {
		certs, err := pki.Tangle(chain.n)
		if err != nil {
			return nil, err
		}
		list = append(list, t.certified(fmt.Sprintf("a tangle of %d certificates", chain.n), chain.counts,
			[]tls.Certificate{certs}))
	}
	return list, nil
}

// Forgers are the attacks of a client between the nodes without keys: bytes under TLS that nobody sealed.
func (t *Target) Forgers() (list []Attack) {
	for _, lane := range []wire.Lane{wire.LaneControl, wire.LaneData, wire.LaneBulk} {
		for name, b := range map[string][]byte{"garbage": Garbage(4096), "a record": {23, 3, 3, 0, 20, 19: 1, 24: 0},
			"a record too long": {23, 3, 3, 255, 255, 1}} {
			list = append(list, Attack{Name: name + " under TLS, " + lane.String(), Counts: "frames", Closes: true,
				Hello: &Hello{Lane: lane}, Do: func(c *Conn) error {
					_, err := c.Conn.(*tls.Conn).NetConn().Write(b)
					return err
				}})
		}
	}
	return list
}

// certified is a dialler with bad certificates.
func (t *Target) certified(name, counts string, certs []tls.Certificate) Attack {
	return Attack{Name: name, Counts: counts, Alone: true, Do: func(*Conn) error {
		return t.bare(func(nc *Conn) error {
			cfg := &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13}
			if len(certs) > 0 { // whatever authorities the node asks for
				cfg.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &certs[0], nil }
			}
			c := tls.Client(nc, cfg)
			if c.Handshake() == nil { // a dialler of TLS 1.3 learns it later
				_, _ = io.Copy(io.Discard, c)
			}
			return nil
		})
	}}
}

// bare runs f on a connection without TLS, up to the node's end of it.
func (t *Target) bare(f func(*Conn) error) error {
	nc, err := t.Bare()
	if err != nil {
		return err
	}
	defer nc.Close()
	if err := f(nc); err != nil {
		return err
	}
	return nc.Closed()
}

// unencrypted are the attacks that do not speak TLS, or not to its end.
func (t *Target) unencrypted() (list []Attack) {
	add := func(name, counts string, slow bool, do func(*Conn) error) {
		list = append(list, Attack{Name: name, Counts: counts, Slow: slow, Alone: true,
			Do: func(*Conn) error { return t.bare(do) }})
	}
	says := func(b []byte) func(*Conn) error {
		return func(c *Conn) error { _, err := c.Write(b); return err }
	}
	first := clientHello()
	add("random bytes instead of TLS", "tls/not-tls", false, says(Garbage(4096)))
	add("http instead of TLS", "tls/not-tls", false, says([]byte("GET / HTTP/1.1\r\n\r\n")))
	add("a hello in clear text", "tls/not-tls", false, says(Hello{}.Append(nil, t)))
	add("TLS 1.2", "tls/tls-version", false, func(c *Conn) error {
		_ = tls.Client(c, &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12}).Handshake()
		return nil
	})
	add("a handshake with a broken message", "tls/other", false, func(c *Conn) error {
		broken := append([]byte(nil), first...)
		broken[5] = 99
		_, err := c.Write(broken)
		return err
	})
	add("half a handshake, then the end", "tls/closed", false, func(c *Conn) error {
		_, err := c.Write(first[:len(first)/2])
		c.Ends()
		return err
	})
	add("half a handshake, then silence", "tls/timeout", true, says(first[:len(first)/2]))
	add("a whole client hello, then silence", "tls/timeout", true, says(first))
	add("no handshake at all", "silent", true, says(nil))
	add("a handshake that drips", "tls/timeout", true, func(c *Conn) error {
		for i := range len(first) - 1 {
			if _, err := c.Write(first[i : i+1]); err != nil {
				return nil
			}
			time.Sleep(100 * time.Millisecond)
		}
		return nil
	})
	return list
}

// clientHello is what a TLS client begins with.
func clientHello() []byte {
	ours, theirs := net.Pipe()
	go func() { _ = tls.Client(theirs, &tls.Config{InsecureSkipVerify: true}).Handshake() }()
	b := make([]byte, 16<<10)
	n, _ := ours.Read(b)
	_ = ours.Close()
	_ = theirs.Close()
	return b[:n]
}
