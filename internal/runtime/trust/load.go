// Loading: the files of credentials, of which nothing is taken that is not whole.

package trust

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/kith-io/kith/internal/base/files"
)

// maxFile bounds a file of certificates or of a key, in bytes.
const maxFile = 1 << 20

// errEncrypted refuses a key that needs a passphrase.
var errEncrypted = errors.New("the key is encrypted, and a node has nobody to ask for its passphrase: " +
	"write it without one (openssl pkey)")

// loadAuthorities reads the certificates of authorities.
func loadAuthorities(file string) ([]*x509.Certificate, error) {
	text, err := files.Read(file, maxFile)
	if err != nil {
		return nil, err
	}
	authorities, err := files.Certificates(text)
	if err != nil {
		return nil, fmt.Errorf("authorities %s: %w", file, err)
	}
	return authorities, nil
}

// loadPair reads a certificate chain and its key. One file may hold both.
func loadPair(certFile, keyFile string) (pair tls.Certificate, err error) {
	chain, err := files.Read(certFile, maxFile)
	if err != nil {
		return pair, fmt.Errorf("certificate: %w", err)
	}
	if _, err := files.Blocks(chain); err != nil {
		return pair, fmt.Errorf("certificate %s: %w", certFile, err)
	}
	key, err := files.Read(keyFile, maxFile)
	if err != nil {
		return pair, fmt.Errorf("key: %w", err)
	}
	blocks, err := files.Blocks(key)
	if err != nil {
		return pair, fmt.Errorf("key %s: %w", keyFile, err)
	}
	for _, b := range blocks {
		if b.Type == "ENCRYPTED PRIVATE KEY" || strings.Contains(b.Headers["Proc-Type"], "ENCRYPTED") {
			return pair, fmt.Errorf("key %s: line %d: %w", keyFile, b.Line, errEncrypted)
		}
	}
	if pair, err = tls.X509KeyPair(chain, key); err != nil {
		err = fmt.Errorf("certificate %s with key %s: %w", certFile, keyFile, err)
	}
	return pair, err
}

// fingerprintsOf returns the fingerprints of those certificates that a pool has, in order.
func fingerprintsOf(pool *x509.CertPool, certs []*x509.Certificate) (list []string) {
	for _, cert := range certs {
		if believes(pool, cert) {
			list = append(list, fingerprint(cert.Raw))
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// believes reports whether a pool has a certificate itself.
func believes(pool *x509.CertPool, cert *x509.Certificate) bool {
	more := pool.Clone()
	more.AddCert(cert)
	return more.Equal(pool)
}

// fingerprint is the SHA-256 of a certificate.
func fingerprint(der []byte) string {
	sum := sha256.Sum256(der)
	return hex.EncodeToString(sum[:])
}
