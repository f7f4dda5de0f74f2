// Chains: what a stranger's certificates and handshake may cost before anything is proven.

package trust

import (
	"crypto/x509"
	"time"
)

const (
	// MaxChain is the most certificates that a peer may show: a leaf, its authorities, and one to spare.
	MaxChain = 5
	// dialledMore is by how much more a node that was dialled may say in its handshake: it names the authorities that it
	// believes, by all the certificates of CAFile.
	dialledMore = 4
)

// between returns those certificates behind a leaf that an authority we believe vouches for, step by step from the top.
// So no signature is checked by a key that is not an authority's: what strangers sign each other's certificates with
// costs nothing, however many paths lead through them.
func (c *State) between(chain []*x509.Certificate, now time.Time) *x509.CertPool {
	pool := x509.NewCertPool()
	added := make([]bool, len(chain))
	at := now // one that has expired is an authority's nevertheless: what is wrong with it the leaf's judgement says
	for _, cert := range chain {
		if at.After(cert.NotAfter) {
			at = cert.NotAfter
		}
	}
	for _, cert := range chain {
		if at.Before(cert.NotBefore) {
			at = cert.NotBefore
		}
	}
	for range chain {
		more := false
		for i, cert := range chain {
			if added[i] || !cert.IsCA {
				continue
			}
			_, err := cert.Verify(x509.VerifyOptions{Roots: c.CAs, Intermediates: pool, CurrentTime: at,
				KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}})
			if err == nil {
				pool.AddCert(cert)
				added[i], more = true, true
			}
		}
		if !more {
			break
		}
	}
	return pool
}

// Turn is a handshake's right to be worked on, of which there are only so many at a time. A nil one is always there.
type Turn struct {
	places chan struct{}
	held   bool
}

// take waits for a place.
func (t *Turn) take() {
	if t != nil && !t.held {
		t.places <- struct{}{}
		t.held = true
	}
}

// give gives it up.
func (t *Turn) give() {
	if t != nil && t.held {
		<-t.places
		t.held = false
	}
}
