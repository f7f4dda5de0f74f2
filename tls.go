// TLS: what protects the connections between nodes.

package kith

import (
	"crypto/tls"
	"crypto/x509"

	"github.com/kith-io/kith/internal/runtime/driver"
)

// TLS configures mutual TLS 1.3 between all nodes of a cluster: either files, or Load. The zero value is none.
type TLS struct {
	// CertFile and KeyFile hold this node's certificate chain, leaf first, and its private key, both PEM. The leaf must
	// be for servers and clients both, and carry the URI that ClusterURI returns.
	CertFile, KeyFile string
	// CAFile holds the certificates of the authorities that are trusted, PEM: one, or during a rotation the old and the
	// new one. No other authority is believed, those of the system neither.
	CAFile string
	// CRLFile holds the revocation lists of those authorities, if they have any: PEM or DER, at most 4 MiB. A peer with a
	// certificate on one is refused. Each must be signed by an authority of CAFile, or of CertFile's chain.
	CRLFile string
	// Load returns all of that from memory, instead of the files. It is called at the start and by ReloadTLS, and must
	// not block for long.
	Load func() (Credentials, error)
	// VerifyHost demands also that the certificate of a node that is dialled names the host that it was dialled by.
	VerifyHost bool
}

// Credentials are what a node proves itself with, and the authorities that it believes (TLS.Load). They must not be
// changed afterwards.
type Credentials struct {
	Certificate tls.Certificate
	CAs         *x509.CertPool
	// CRLs are revocation lists (see ParseCRLs), at most 64, and Issuers the certificates of the authorities that
	// signed them, which CAs must vouch for: a pool gives its own certificates away to nobody.
	CRLs    []*x509.RevocationList
	Issuers []*x509.Certificate
}

// Validate returns all faults of the fields joined, or nil; it reads no file. Config.Validate calls it.
func (c TLS) Validate() error { return c.driver().Validate() }

// On reports whether TLS is configured.
func (c TLS) On() bool { return c.driver().On() }

// driver is c as the driver takes it.
func (c TLS) driver() driver.TLS {
	out := driver.TLS{CertFile: c.CertFile, KeyFile: c.KeyFile, CAFile: c.CAFile, CRLFile: c.CRLFile,
		VerifyHost: c.VerifyHost}
	if c.Load != nil {
		out.Load = func() (driver.Credentials, error) {
			loaded, err := c.Load()
			return driver.Credentials(loaded), err
		}
	}
	return out
}

// ClusterURI is the URI among the subject alternative names of a certificate that makes it one of the nodes of the
// cluster of that name.
func ClusterURI(name string) string { return driver.ClusterURI(name) }

// ParseCRLs reads certificate revocation lists, PEM or DER, for Credentials.CRLs: at most 64 of 4 MiB together.
func ParseCRLs(text []byte) ([]*x509.RevocationList, error) { return driver.RevocationLists(text) }

// ReloadTLS loads the credentials anew (Config.TLS), by calling TLS.Load, or reading the files without waiting until a
// change of them is noticed, which takes up to two seconds. An error says what is wrong with them and leaves the old
// ones in use.
func (n *Node) ReloadTLS() error { return n.d.ReloadTLS() }
