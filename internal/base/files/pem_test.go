// Tests of PEM: what is whole, and each way in which it is not.

package files

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// authority is a certificate in PEM.
func authority(t testing.TB, name string) string {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	c := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, IsCA: true,
		BasicConstraintsValid: true, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	require.NoError(t, err)
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

// What openssl and others write around certificates is passed over, and line ends may be of either kind.
func TestWholeBundles(t *testing.T) {
	a, b := authority(t, "a"), authority(t, "b")
	text := "Certificate:\n    Data:\n        Version: 3 (0x2)\n    Signature Algorithm: ecdsa-with-SHA256\n" +
		"         30:45:02:21:00:ab:cd:ef:30:45:02:21:00:ab:cd:ef:30:45\n"
	for name, bundle := range map[string]string{"two": a + b, "a gap": a + "\n\n" + b, "text before": text + a + text + b,
		"subjects": "subject=CN=a\nissuer=CN=a\n" + a + "Bag Attributes\n    localKeyID: 01 02\n" + b,
		"comments": "# the old one\n" + a + "# the new one\n\nGlobalSign Root CA\n==================\n" + b,
		"windows":  strings.ReplaceAll(a+b, "\n", "\r\n"), "no end of line": a + strings.TrimSpace(b),
		"spaces behind": strings.ReplaceAll(a, "\n", " \n") + b} {
		certs, err := Certificates([]byte(bundle))
		require.NoError(t, err, name)
		require.Len(t, certs, 2, name)
		require.Equal(t, "b", certs[1].Subject.CommonName)
	}
}

// A bundle of which the standard library would silently take a part, or nothing, is refused with the line.
func TestBundlesThatAreNotWhole(t *testing.T) {
	a, b := authority(t, "a"), authority(t, "b")
	lines := strings.SplitAfter(b, "\n")
	pool := x509.NewCertPool()
	require.True(t, pool.AppendCertsFromPEM([]byte(a+b[:len(b)/2])), "this is why")
	for name, c := range map[string]struct{ bundle, why string }{
		"cut in a block":       {a + b[:len(b)/2], "does not end"},
		"cut in the last line": {a + b[:len(b)-8], "does not end"},
		"cut in the first":     {a + b[:12], "does not begin a block"},
		"the next one begins":  {a[:len(a)/2] + "\n" + b, "does not end"},
		"no beginning":         {a + strings.Join(lines[1:], ""), "does not begin"},
		"only the middle":      {a + strings.Join(lines[1:len(lines)-2], ""), "part of a block"},
		"indented":             {a + "  " + strings.ReplaceAll(b, "\n", "\n  "), "does not begin a block"},
		"half indented":        {a + strings.Replace(b, "-----END", " -----END", 1), "does not end"},
		"a byte order mark":    {"\ufeff" + a + b, "byte order mark"},
		"damaged":              {a + strings.Replace(b, lines[2], "*"+lines[2][1:], 1), "damaged"},
		"other dashes":         {a + strings.ReplaceAll(b, "-----", "——"), "part of a block"},
		"no text":              {a + "\x00" + b, "no text"},
		"another end":          {a + strings.Replace(b, "-----END CERTIFICATE", "-----END X509 CRL", 1), "does not end"},
		"a key":                {a + strings.ReplaceAll(b, "CERTIFICATE", "PRIVATE KEY"), "PRIVATE KEY, where only"},
		"changed inside":       {a + strings.Replace(b, lines[1], lines[2], 1), "line "},
		"empty":                {"", "no certificate"}, "comments alone": {"# nothing\n", "no certificate"},
	} {
		_, err := Certificates([]byte(c.bundle))
		require.ErrorContains(t, err, c.why, name)
	}
	_, err := Certificates([]byte(a + "  " + b))
	require.ErrorContains(t, err, "line 1")
	require.ErrorIs(t, err, ErrNotWhole)
}

// No bytes break the reader, and what it takes the standard library takes too, no block less.
func FuzzBlocks(f *testing.F) {
	a := authority(f, "a")
	for _, text := range []string{"", a, a + a[:len(a)/2], " " + a, "x\n" + a, "\ufeff" + a} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		list, err := Blocks(text)
		if err != nil {
			require.Empty(t, list)
			return
		}
		n := 0
		for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
			require.Less(t, n, len(list))
			require.True(t, bytes.Equal(list[n].Bytes, block.Bytes))
			n++
		}
		require.Len(t, list, n)
	})
}
