// Tests of what is issued: who is vouched for, for what, for how long, and pairs that do not fit.

package pki

import (
	"crypto/x509"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestIssue(t *testing.T) {
	ca, err := NewCA("mine", 24*time.Hour)
	require.NoError(t, err)
	until := time.Now().Add(time.Hour).Truncate(time.Second)
	pair, err := ca.Issue(Request{Name: "n1", URIs: []string{"kith://cluster/market"}, Hosts: []string{"n1.local", "10.0.0.1", "::1"},
		Until: until})
	require.NoError(t, err)
	certs, err := Certificates(pair.Cert)
	require.NoError(t, err)
	leaf := certs[0]
	require.Equal(t, "n1", leaf.Subject.CommonName)
	require.Equal(t, "kith://cluster/market", leaf.URIs[0].String())
	require.Equal(t, []string{"n1.local"}, leaf.DNSNames)
	require.Len(t, leaf.IPAddresses, 2)
	require.True(t, leaf.NotAfter.Equal(until))
	require.True(t, leaf.NotBefore.Before(time.Now()))
	require.False(t, leaf.IsCA)
	require.Len(t, Fingerprint(leaf), 32*3-1)
	pool := x509.NewCertPool()
	require.True(t, pool.AppendCertsFromPEM(ca.Pair().Cert))
	for _, usage := range []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth} {
		_, err = leaf.Verify(x509.VerifyOptions{Roots: pool, KeyUsages: []x509.ExtKeyUsage{usage}})
		require.NoError(t, err)
	}
	_, err = ca.Issue(Request{Name: "n1", Until: ca.Expires().Add(time.Second)})
	require.ErrorContains(t, err, "after its authority")
}

func TestParseCA(t *testing.T) {
	ca, err := NewCA("mine", time.Hour)
	require.NoError(t, err)
	other, err := NewCA("other", time.Hour)
	require.NoError(t, err)
	leaf, err := ca.Issue(Request{Name: "n1", Until: time.Now().Add(time.Minute)})
	require.NoError(t, err)
	again, err := ParseCA(ca.Pair())
	require.NoError(t, err)
	require.Equal(t, ca.Expires(), again.Expires())
	for name, bad := range map[string]Pair{
		"is not that of":           {ca.Pair().Cert, other.Pair().Key},
		"no certificate authority": leaf,
		"no private key":           {ca.Pair().Cert, ca.Pair().Cert[:3]},
		"no certificate in PEM":    {leaf.Key, leaf.Key},
	} {
		_, err := ParseCA(bad)
		require.ErrorContains(t, err, name)
	}
}
