// TLS: the names that a node's credentials have for the packages above, and their reload.

package driver

import (
	"crypto/x509"
	"fmt"

	"github.com/kith-io/kith/internal/runtime/trust"
)

// What protects the connections (package trust).
type (
	// TLS configures mutual TLS 1.3; the zero value is none.
	TLS = trust.TLS
	// Credentials are a certificate with its key, and the authorities that are believed.
	Credentials = trust.Credentials
)

// ClusterURI is the URI among the alternative names of a certificate that makes it one of the cluster's nodes.
func ClusterURI(name string) string { return trust.ClusterURI(name) }

// RevocationLists reads revocation lists, PEM or DER, for Credentials.
func RevocationLists(text []byte) ([]*x509.RevocationList, error) { return trust.ParseCRLs(text) }

// ReloadTLS loads the credentials anew; an error leaves the old ones.
func (d *Driver) ReloadTLS() error {
	if err := d.wires.ReloadTLS(); err != nil {
		return fmt.Errorf("kith: reload: %w", err)
	}
	return nil
}
