// Tests of revocation lists: which authority signs them, what is on them, and what is read of them.

package trust

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/base/pki"
	"github.com/kith-io/kith/internal/base/spent"
)

// TestCRLFileNeedsTLS holds that a list alone, or beside Load, is a fault of the configuration.
func TestCRLFileNeedsTLS(t *testing.T) {
	require.ErrorContains(t, TLS{CRLFile: "x"}.Validate(), "CRLFile without certificates")
	load := func() (Credentials, error) { return Credentials{}, nil }
	require.ErrorContains(t, TLS{CRLFile: "x", Load: load}.Validate(), "exclude each other")
	require.NoError(t, TLS{CertFile: "a", KeyFile: "b", CAFile: "c", CRLFile: "d"}.Validate())
}

// Lists that Load returns need the certificates of their signers, and those must be believed.
func TestCRLsFromMemory(t *testing.T) {
	ca, other := authority(t), named(t, "other")
	listOf := func(ca *pki.CA) []*x509.RevocationList {
		lists, err := ParseCRLs(crl(t, ca, big.NewInt(7)))
		require.NoError(t, err)
		return lists
	}
	certOf := func(ca *pki.CA) []*x509.Certificate {
		certs, err := pki.Certificates(ca.Pair().Cert)
		require.NoError(t, err)
		return certs
	}
	c := Credentials{Certificate: leaf(t, ca), CAs: pool(t, ca), CRLs: listOf(ca), Issuers: certOf(ca)}
	load := func() (Credentials, error) { return c, nil }
	tr, err := New(Config{Cluster: "test", TLS: TLS{Load: load}, Now: time.Now})
	require.NoError(t, err)
	require.Equal(t, 1, tr.current.Load().revoked.known())
	require.Nil(t, tr.current.Load().CRLs, "what is known of them is kept, not they")
	c.Issuers = nil
	require.ErrorContains(t, tr.Reload(), "nobody who is believed")
	c.CRLs, c.Issuers = listOf(other), certOf(other)
	require.ErrorContains(t, tr.Reload(), "unknown authority", "nobody vouches for who signed it")
	c.CRLs, c.Issuers = append(listOf(ca), listOf(ca)...), certOf(ca)
	c.CRLs[0].Raw = make([]byte, MaxCRLBytes)
	require.ErrorContains(t, tr.Reload(), "more than")
}

// An authority below another one is revoked with all that it vouches for; a certificate that is believed by another
// chain too is not.
func TestChainsOfRevoked(t *testing.T) {
	root, key := authority(t), &ecdsa.PrivateKey{}
	*key = *newKey(t)
	middle := below(t, root, key)
	node := x509.Certificate{SerialNumber: big.NewInt(9), Subject: pkix.Name{CommonName: "node"}}
	roots, err := pki.Certificates(root.Pair().Cert)
	require.NoError(t, err)
	r, err := newRevocations(&Credentials{CAs: pool(t, root), Issuers: roots,
		CRLs: lists(t, crl(t, root, middle.SerialNumber))})
	require.NoError(t, err)
	long := []*x509.Certificate{&node, middle, roots[0]}
	err = r.judge([][]*x509.Certificate{long})
	require.ErrorContains(t, err, `certificate of "CN=middle", serial 4d, is revoked by "CN=test"`)
	require.NoError(t, r.judge([][]*x509.Certificate{long, {&node, roots[0]}}), "the other chain has nobody revoked")
	require.NoError(t, r.judge([][]*x509.Certificate{{&node, roots[0]}}))
	require.NoError(t, (*revocations)(nil).judge([][]*x509.Certificate{long}))
	// The lower authority's own list is taken by its word and that of the authority that vouches for it.
	template := &x509.RevocationList{Number: big.NewInt(1), ThisUpdate: time.Now(), NextUpdate: time.Now().Add(time.Hour),
		RevokedCertificateEntries: []x509.RevocationListEntry{{SerialNumber: big.NewInt(9), RevocationTime: time.Now()}}}
	der, err := x509.CreateRevocationList(rand.Reader, template, middle, key)
	require.NoError(t, err)
	c := &Credentials{CAs: pool(t, root), Issuers: append(roots, middle), CRLs: lists(t, der)}
	r, err = newRevocations(c)
	require.NoError(t, err)
	require.ErrorContains(t, r.judge([][]*x509.Certificate{long}), `"CN=node", serial 9, is revoked by "CN=middle"`)
	c.CAs = pool(t, authority(t))
	_, err = newRevocations(c)
	require.ErrorContains(t, err, "unknown authority")
}
func lists(t testing.TB, text []byte) []*x509.RevocationList {
	l, err := ParseCRLs(text)
	require.NoError(t, err)
	return l
}
func newKey(t testing.TB) *ecdsa.PrivateKey {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	return key
}

// below makes an authority that another one vouches for.
func below(t testing.TB, ca *pki.CA, key *ecdsa.PrivateKey) *x509.Certificate {
	certs, err := pki.Certificates(ca.Pair().Cert)
	require.NoError(t, err)
	block, _ := pem.Decode(ca.Pair().Key)
	by, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(77), Subject: pkix.Name{CommonName: "middle"},
		NotBefore: time.Now(), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign}
	der, err := x509.CreateCertificate(rand.Reader, template, certs[0], key.Public(), by)
	require.NoError(t, err)
	cert, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	return cert
}

// FuzzParseCRLs: no panic, memory in proportion, and what is read was signed as it stands there.
func FuzzParseCRLs(f *testing.F) {
	ca := authority(f)
	text := crl(f, ca, big.NewInt(7), big.NewInt(8))
	f.Add(text)
	f.Add(derOf(f, text))
	f.Add(append(append([]byte(nil), text...), text...))
	f.Add(ca.Pair().Cert)
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, text []byte) {
		before := spent.Bytes()
		lists, err := ParseCRLs(text)
		spent.Within(t, before, 64*len(text))
		if err == nil && (len(lists) == 0 || len(lists) > MaxCRLs) {
			t.Fatalf("%d lists", len(lists))
		}
	})
}
