// The certificates of a run with TLS: an authority that nobody can use again, in a folder that goes with the run.

package rolling

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/internal/base/pki"
)

// clusterName is the name of the cluster.
const clusterName = "rolling"

// certs is the folder of the certificates; empty: no TLS.
type certs string

// newCerts makes the certificates of nodes.
func newCerts(names []string) (certs, error) {
	dir, err := os.MkdirTemp("", "kith-rolling-")
	if err == nil {
		err = pki.ThrowAway(dir, []string{kith.ClusterURI(clusterName)}, []string{"127.0.0.1"}, names...)
	}
	if err != nil {
		return certs(dir), fmt.Errorf("certificates: %w", err)
	}
	return certs(dir), nil
}

// files are those of a node, by the names that kith.TLS has for them.
type files struct{ Cert, Key, CA string }

func (c certs) of(name string) files {
	if c == "" {
		return files{}
	}
	cert, key := pki.Paths(string(c), name)
	return files{cert, key, filepath.Join(string(c), pki.CAName+pki.CertSuffix)}
}

func (c certs) remove() {
	if c != "" {
		_ = os.RemoveAll(string(c))
	}
}
