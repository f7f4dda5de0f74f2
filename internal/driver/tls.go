// TLS: the names that the transport's credentials have for the rooms above, and their reload.

package driver

import (
	"crypto/x509"
	"fmt"

	"github.com/kith-io/kith/internal/transport"
)

// What protects the connections (package transport).
type (
	// TLS configures mutual TLS 1.3; the zero value is none.
	TLS = transport.TLS
	// Credentials are a certificate with its key, and the authorities that are believed.
	Credentials = transport.Credentials
)

// ClusterURI is the URI among the alternative names of a certificate that makes it one of the cluster's nodes.
func ClusterURI(name string) string { return transport.ClusterURI(name) }

// RevocationLists reads revocation lists, PEM or DER, for Credentials.
func RevocationLists(text []byte) ([]*x509.RevocationList, error) { return transport.ParseCRLs(text) }

// ReloadTLS loads the credentials anew; an error leaves the old ones.
func (d *Driver) ReloadTLS() error {
	if err := d.wires.ReloadTLS(); err != nil {
		return fmt.Errorf("kith: reload: %w", err)
	}
	return nil
}
