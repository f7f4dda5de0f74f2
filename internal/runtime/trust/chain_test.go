// Tests of chains: which certificates behind a leaf are looked at, and which chains are believed.

package trust

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/base/pki"
)

// tangle is pki.Tangle.
func tangle(t testing.TB, n int) tls.Certificate {
	chain, err := pki.Tangle(n)
	require.NoError(t, err)
	return chain
}

// dynasty is authorities that vouch for each other from the top, the last of which vouches for a leaf. change changes
// the certificate at a depth, the top being 0.
func dynasty(t *testing.T, depth int, change func(at int, c *x509.Certificate)) (root *x509.Certificate,
	chain []*x509.Certificate) {
	now := time.Now()
	uri, err := url.Parse(ClusterURI("test"))
	require.NoError(t, err)
	var above *x509.Certificate
	var aboveKey *ecdsa.PrivateKey
	for at := range depth {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		require.NoError(t, err)
		c := &x509.Certificate{SerialNumber: big.NewInt(int64(at) + 1), BasicConstraintsValid: true,
			Subject:   pkix.Name{CommonName: string(rune('a' + at))},
			NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour), IsCA: at < depth-1}
		if c.IsCA {
			c.KeyUsage = x509.KeyUsageCertSign
		} else {
			c.URIs = []*url.URL{uri}
			c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}
		}
		if change != nil {
			change(at, c)
		}
		if above == nil {
			above, aboveKey = c, key
		}
		der, err := x509.CreateCertificate(rand.Reader, c, above, &key.PublicKey, aboveKey)
		require.NoError(t, err)
		cert, err := x509.ParseCertificate(der)
		require.NoError(t, err)
		chain = append([]*x509.Certificate{cert}, chain...)
		above, aboveKey = cert, key
	}
	return chain[depth-1], chain[:depth-1]
}

// Chains by way of other authorities are believed, in whatever order, with the top or without it; those that are too
// long are not, nor those with a link that is missing or expired, each for its reason (SEC-1).
func TestChains(t *testing.T) {
	reason := func(root *x509.Certificate, chain []*x509.Certificate) string {
		c := &State{Credentials: Credentials{CAs: x509.NewCertPool()}, uri: ClusterURI("test")}
		c.CAs.AddCert(root)
		var err error
		c.revoked, err = newRevocations(&c.Credentials)
		require.NoError(t, err)
		if err = c.judge(chain, "", time.Now()); err == nil {
			return ""
		}
		return ErrorOf(err, false).Reason.String()
	}
	root, chain := dynasty(t, 4, nil)
	require.Empty(t, reason(root, chain))
	require.Empty(t, reason(root, []*x509.Certificate{chain[0], chain[2], chain[1], root}), "in another order")
	require.Equal(t, "unknown-ca", reason(root, []*x509.Certificate{chain[0], chain[1]}))
	root, chain = dynasty(t, MaxChain+1, nil)
	require.Empty(t, reason(root, chain))
	require.Equal(t, "chain", reason(root, append(chain, root)))
	for at := range 3 {
		root, chain = dynasty(t, 4, func(i int, c *x509.Certificate) {
			if i == at+1 {
				c.NotAfter = time.Now().Add(-time.Minute)
			}
		})
		require.Equal(t, "expired", reason(root, chain), at)
	}
	root, chain = dynasty(t, 4, func(i int, c *x509.Certificate) {
		if i == 1 {
			c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
		}
	})
	require.Equal(t, "usage", reason(root, chain))
}

// No signature is checked by a key of a stranger's: of certificates that vouch for each other none is an authority's,
// also when they stand beside one that is.
func TestTanglesAreNotFollowed(t *testing.T) {
	root, chain := dynasty(t, 3, nil)
	c := &State{Credentials: Credentials{CAs: x509.NewCertPool()}}
	c.CAs.AddCert(root)
	strange := tangle(t, MaxChain)
	var certs []*x509.Certificate
	for _, der := range strange.Certificate {
		cert, err := x509.ParseCertificate(der)
		require.NoError(t, err)
		certs = append(certs, cert)
	}
	require.Len(t, certs, MaxChain)
	require.True(t, c.between(certs[1:], time.Now()).Equal(x509.NewCertPool()))
	one := x509.NewCertPool()
	one.AddCert(chain[1])
	require.True(t, c.between(append(certs[2:], chain[1], chain[0]), time.Now()).Equal(one))
}
