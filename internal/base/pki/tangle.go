// Tangles: certificates of nobody's that are as dear to verify as can be, for tests and benchmarks.

package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"time"
)

// Tangle makes n certificates on P-521, leaf first, that no authority has signed and each of which seems to have signed
// all others: one subject and one key, and different names. A verifier that follows every path through them is busy for
// long.
func Tangle(n int) (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P521(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	chain := tls.Certificate{PrivateKey: key}
	now := time.Now()
	for i := range n {
		c := &x509.Certificate{SerialNumber: big.NewInt(int64(i) + 1), Subject: pkix.Name{CommonName: "tangle"},
			NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour), IsCA: i > 0, BasicConstraintsValid: true,
			KeyUsage: x509.KeyUsageCertSign, DNSNames: []string{fmt.Sprintf("n%d", i)}}
		der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
		if err != nil {
			return tls.Certificate{}, err
		}
		chain.Certificate = append(chain.Certificate, der)
	}
	return chain, nil
}
