// The certificates of kith dev --tls: an authority that nobody can use again, in a folder that goes with the cluster.

package command

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/internal/base/pki"
)

// devName is the name of the cluster of kith dev.
const devName = "dev"

// tlsFiles names the files of one node; empty: no TLS.
type tlsFiles struct{ Cert, Key, CA string }

// protect makes the certificates, if there are to be any.
func (d *dev) protect() error {
	if !d.cmd.TLS {
		return nil
	}
	var err error
	if d.certs, err = os.MkdirTemp("", "kith-dev-"); err != nil {
		return err
	}
	var names []string
	for i := range d.cmd.Nodes {
		names = append(names, devNode(i))
	}
	if err := pki.ThrowAway(d.certs, []string{kith.ClusterURI(devName)}, []string{"127.0.0.1"}, names...); err != nil {
		return fmt.Errorf("certificates: %w", err)
	}
	d.progress.Printf("connections are protected by mutual TLS 1.3, certificates in %s", d.certs)
	return nil
}

// devNode names the i-th node.
func devNode(i int) string { return fmt.Sprintf("n%d", i+1) }

// tlsFiles are those of the i-th node.
func (d *dev) tlsFiles(i int) tlsFiles {
	if d.certs == "" {
		return tlsFiles{}
	}
	cert, key := pki.Paths(d.certs, devNode(i))
	return tlsFiles{cert, key, filepath.Join(d.certs, pki.CAName+pki.CertSuffix)}
}

// forget removes the certificates.
func (d *dev) forget() {
	if d.certs != "" {
		_ = os.RemoveAll(d.certs)
	}
}
