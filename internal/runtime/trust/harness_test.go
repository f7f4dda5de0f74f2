// Test harness: authorities, certificates and revocation lists that are made for one test.

package trust

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/base/pki"
)

// patience is how long a test waits for what must come.
const patience = 2 * time.Minute

func authority(t testing.TB) *pki.CA { return named(t, "test") }

// named makes an authority of that name.
func named(t testing.TB, name string) *pki.CA {
	ca, err := pki.NewCA(name, time.Hour)
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

// leaf issues a certificate of a node of the cluster "test".
func leaf(t testing.TB, ca *pki.CA) tls.Certificate {
	until := time.Now().Add(30 * time.Minute)
	p, err := ca.Issue(pki.Request{Name: "node", URIs: []string{ClusterURI("test")}, Until: until})
	require.NoError(t, err)
	cert, err := tls.X509KeyPair(p.Cert, p.Key)
	require.NoError(t, err)
	return cert
}

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

func derOf(t testing.TB, text []byte) []byte {
	block, _ := pem.Decode(text)
	require.NotNil(t, block)
	return block.Bytes
}
