// Tests of what is issued: which names it vouches for, for what, for how long, and pairs that do not fit.

package pki

import (
	"crypto/x509"
	"io/fs"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestIssue(t *testing.T) {
	ca, err := NewCA("mine", 24*time.Hour)
	require.NoError(t, err)
	until := time.Now().Add(time.Hour).Truncate(time.Second)
	pair, err := ca.Issue(Request{Name: "n1", URIs: []string{"kith://cluster/market"},
		Hosts: []string{"n1.local", "10.0.0.1", "::1"},
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

func TestFiles(t *testing.T) {
	dir := t.TempDir() + "/certs"
	ca, err := NewCA("mine", time.Hour)
	require.NoError(t, err)
	require.NoError(t, ca.Pair().Write(dir, "ca", false))
	cert, key := Paths(dir, "ca")
	modes := func() {
		for path, mode := range map[string]fs.FileMode{dir: 0o700 | fs.ModeDir, cert: 0o644, key: 0o600} {
			info, err := os.Stat(path)
			require.NoError(t, err)
			require.Equal(t, mode, info.Mode(), path)
		}
	}
	modes()
	other, err := NewCA("other", time.Hour)
	require.NoError(t, err)
	require.ErrorContains(t, other.Pair().Write(dir, "ca", false), "there already")
	back, err := Read(dir, "ca")
	require.NoError(t, err)
	require.Equal(t, ca.Pair(), back)
	require.NoError(t, os.Chmod(key, 0o666))
	require.NoError(t, other.Pair().Write(dir, "ca", true))
	back, err = Read(dir, "ca")
	require.NoError(t, err)
	require.Equal(t, other.Pair(), back)
	modes()
	require.NoError(t, os.Remove(cert))
	require.ErrorContains(t, ca.Pair().Write(dir, "ca", false), "there already", "a key alone is not overwritten either")
	for _, bad := range []string{"", ".hidden", "../up", "a/b", strings.Repeat("x", 65)} {
		require.Error(t, ca.Pair().Write(dir, bad, true), bad)
	}
}

func TestThrowAway(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, ThrowAway(dir, []string{"kith://cluster/x"}, []string{"127.0.0.1"}, "a", "b"))
	text, err := os.ReadFile(dir + "/ca.crt")
	require.NoError(t, err)
	pool := x509.NewCertPool()
	require.True(t, pool.AppendCertsFromPEM(text))
	for _, name := range []string{"a", "b"} {
		p, err := Read(dir, name)
		require.NoError(t, err)
		certs, err := Certificates(p.Cert)
		require.NoError(t, err)
		_, err = certs[0].Verify(x509.VerifyOptions{Roots: pool})
		require.NoError(t, err)
	}
	require.NoFileExists(t, dir+"/ca.key")
}

// A list grows from what it was, its numbers grow also when it was lost, and it is that of its own authority.
func TestRevocations(t *testing.T) {
	ca, err := NewCA("mine", time.Hour)
	require.NoError(t, err)
	dir := t.TempDir()
	sevens, err := Serial("00:07")
	require.NoError(t, err)
	var last *x509.RevocationList
	for step := range 3 {
		r, err := ca.ReadRevocations(dir)
		require.NoError(t, err)
		require.Equal(t, min(step, 1), r.Len())
		require.Equal(t, step == 0, r.Add(sevens))
		require.NoError(t, r.Write(dir, time.Hour))
		text, err := os.ReadFile(CRLPath(dir))
		require.NoError(t, err)
		lists, err := Lists(text)
		require.NoError(t, err)
		require.Len(t, lists, 1)
		if last != nil {
			require.Positive(t, lists[0].Number.Cmp(last.Number))
		}
		last = lists[0]
		require.EqualValues(t, 7, last.RevokedCertificateEntries[0].SerialNumber.Int64())
		require.NoError(t, last.CheckSignatureFrom(ca.cert))
	}
	other, err := NewCA("mine", time.Hour)
	require.NoError(t, err)
	_, err = other.ReadRevocations(dir)
	require.ErrorContains(t, err, "is not one of")
	for _, bad := range []string{"", "0", "-1", "xyz", strings.Repeat("1", 41)} {
		_, err := Serial(bad)
		require.Error(t, err, bad)
	}
	_, err = ca.Revocations([]byte("x"))
	require.ErrorContains(t, err, "no revocation list")
	lists, err := Lists(ca.Pair().Cert)
	require.NoError(t, err)
	require.Empty(t, lists)
}
