// Tests of loading: files that are not whole, are no files, or hold what no node can use (SEC-1).

//go:build unix

package trust

import (
	"crypto/x509"
	"encoding/pem"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/kith-io/kith/internal/base/files"
	"github.com/kith-io/kith/internal/base/pki"
)

// credentials writes those of a node of the cluster "test" into a directory.
func credentials(t *testing.T, ca *pki.CA) (TLS, pki.Pair) {
	dir := t.TempDir()
	p, err := ca.Issue(pki.Request{Name: "node", URIs: []string{ClusterURI("test")}, Until: time.Now().Add(time.Minute)})
	require.NoError(t, err)
	c := TLS{CertFile: filepath.Join(dir, "c"), KeyFile: filepath.Join(dir, "k"), CAFile: filepath.Join(dir, "ca")}
	put(t, c.CertFile, p.Cert)
	put(t, c.KeyFile, p.Key)
	put(t, c.CAFile, ca.Pair().Cert)
	return c, p
}

func put(t *testing.T, name string, text []byte) {
	t.Helper()
	require.NoError(t, os.WriteFile(name, text, 0o600))
}

func store(c TLS) (*Store, error) {
	return New(Config{TLS: c, Cluster: "test", Now: time.Now, HandshakeBytes: 16 << 10, Handshakes: 1})
}

// A file that is not whole, of two authorities of which one would be taken, is refused at the start and when it is
// loaded anew: the old credentials stay, and what the node believes is what its figures say.
func TestNothingIsTakenInPart(t *testing.T) {
	ca, next := authority(t), named(t, "next")
	c, p := credentials(t, ca)
	old, more := string(ca.Pair().Cert), string(next.Pair().Cert)
	s, err := store(c)
	require.NoError(t, err)
	before := s.State()
	require.Len(t, before.Authorities(), 1)
	require.Equal(t, pki.Fingerprint(before.Certificate.Leaf), colons(before.Fingerprint()))
	for name, bad := range map[string]string{"cut": old + more[:len(more)/2], "indented": old + "  " + more,
		"a byte order mark": "\ufeff" + old + more, "damaged": old + strings.Replace(more, "MI", "*I", 1),
		"no end": old + more[:len(more)-10], "der": string(derOf(t, ca.Pair().Cert)), "empty": "",
		"a key in it": old + string(p.Key)} {
		put(t, c.CAFile, []byte(bad))
		_, err := store(c)
		require.ErrorContains(t, err, c.CAFile, name)
		require.ErrorContains(t, s.Reload(), c.CAFile, name)
		require.Same(t, before, s.State(), name)
	}
	_, failed := s.Figures()
	require.EqualValues(t, 8, failed)
	put(t, c.CAFile, []byte("# the old one\n"+old+"\n# the new one\n"+more))
	require.NoError(t, s.Reload())
	require.Len(t, s.State().Authorities(), 2)
	put(t, c.CertFile, p.Cert[:len(p.Cert)-9])
	require.ErrorContains(t, s.Reload(), "does not end")
	put(t, c.CertFile, append(p.Cert, p.Key...)) // one file for both
	c.KeyFile = c.CertFile
	_, err = store(c)
	require.NoError(t, err)
}

// colons writes a fingerprint as people compare it.
func colons(hex string) string {
	var parts []string
	for ; hex != ""; hex = hex[2:] {
		parts = append(parts, strings.ToUpper(hex[:2]))
	}
	return strings.Join(parts, ":")
}

// What stands in place of a file is named, and nobody waits for it.
func TestWhatIsNoFile(t *testing.T) {
	c, _ := credentials(t, authority(t))
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	require.NoError(t, unix.Mkfifo(pipe, 0o600))
	for _, trap := range []string{pipe, "/dev/zero", dir} {
		for n := range 4 {
			bad := c
			*[]*string{&bad.CertFile, &bad.KeyFile, &bad.CAFile, &bad.CRLFile}[n] = trap
			_, err := store(bad)
			require.ErrorIs(t, err, files.ErrNotRegular, "%s as file %d", trap, n)
			require.ErrorContains(t, err, trap)
		}
	}
	data := filepath.Join(dir, "..data") // as Kubernetes mounts a secret
	require.NoError(t, os.Mkdir(data, 0o700))
	for _, name := range []*string{&c.CertFile, &c.KeyFile, &c.CAFile} {
		base := filepath.Base(*name)
		require.NoError(t, os.Rename(*name, filepath.Join(data, base)))
		*name = filepath.Join(dir, base)
		require.NoError(t, os.Symlink(filepath.Join("..data", base), *name))
	}
	_, err := store(c)
	require.NoError(t, err, "links are followed where nothing is written")
}

// Keys with a passphrase, certificates that lack a usage, and those that are not valid yet are called so.
func TestWhatIsWrongIsNamed(t *testing.T) {
	ca := authority(t)
	c, p := credentials(t, ca)
	for _, block := range []*pem.Block{{Type: "ENCRYPTED PRIVATE KEY", Bytes: []byte{1}},
		{Type: "RSA PRIVATE KEY", Headers: map[string]string{"Proc-Type": "4,ENCRYPTED", "DEK-Info": "AES-256-CBC,00"},
			Bytes: []byte{1}}} {
		put(t, c.KeyFile, pem.EncodeToMemory(block))
		_, err := store(c)
		require.ErrorIs(t, err, errEncrypted, block.Type)
	}
	now := time.Now()
	for why, r := range map[string]pki.Request{
		"not for clients":   {Usages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, Until: now.Add(time.Minute)},
		"not for servers":   {Usages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}, Until: now.Add(time.Minute)},
		"not valid yet":     {From: now.Add(time.Minute), Until: now.Add(2 * time.Minute)},
		"ended at":          {From: now.Add(-2 * time.Minute), Until: now.Add(-time.Minute)},
		"unknown authority": {},
	} {
		r.Name, r.URIs = "node", []string{ClusterURI("test")}
		by := ca
		if r.Until.IsZero() {
			by, r.Until = named(t, "another"), now.Add(time.Minute)
		}
		bad, err := by.Issue(r)
		require.NoError(t, err)
		put(t, c.CertFile, bad.Cert)
		put(t, c.KeyFile, bad.Key)
		_, err = store(c)
		require.ErrorContains(t, err, why)
	}
	put(t, c.CertFile, p.Cert)
	put(t, c.KeyFile, p.Key)
	_, err := store(c)
	require.NoError(t, err)
}

// A node with a certificate of another authority shows it, whatever authorities it is asked for: so the other end says
// which authority it does not know, and not that there was no certificate.
func TestUnknownAuthorityIsNamed(t *testing.T) {
	ca, other := authority(t), named(t, "other")
	here, _ := credentials(t, ca)
	there, _ := credentials(t, other)
	accepts, err := store(here)
	require.NoError(t, err)
	dials, err := store(there)
	require.NoError(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	refused := make(chan *TLSError, 1)
	go func() {
		nc, err := l.Accept()
		if err != nil {
			return
		}
		s := accepts.Accept(nc)
		defer s.Close()
		refused <- s.Failed(s.Shake(nil))
	}()
	nc, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	d := dials.Dial(nc, "127.0.0.1")
	// It believes the other end: its own check would end it first.
	d.creds = &State{Credentials: Credentials{Certificate: dials.State().Certificate, CAs: accepts.State().CAs},
		uri: ClusterURI("test")}
	_ = d.Shake(nil)
	e := <-refused
	_ = d.Close()
	require.Equal(t, TLSUnknownCA, e.Reason, "%v", e)
	require.ErrorContains(t, e, "unknown authority")
}
