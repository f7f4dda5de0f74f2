// The certificates of a fleet with TLS: an authority that nobody can use again, in a folder that goes with the run.

package fleet

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/internal/base/pki"
)

// Files names the files of one node; the zero value is no TLS.
type Files struct{ Cert, Key, CA string }

// TLS returns the settings of a node that uses them.
func (f Files) TLS() kith.TLS { return kith.TLS{CertFile: f.Cert, KeyFile: f.Key, CAFile: f.CA} }

// Certs is a folder of certificates; the empty one has none, and its Files are those of no TLS.
type Certs string

// NewCerts makes certificates of nodes on loopback, which hold in all these clusters.
func NewCerts(nodes []string, clusters ...string) (Certs, error) {
	dir, err := os.MkdirTemp("", "kith-"+clusters[0]+"-")
	if err != nil {
		return "", err
	}
	var uris []string
	for _, c := range clusters {
		uris = append(uris, kith.ClusterURI(c))
	}
	if err := pki.ThrowAway(dir, uris, []string{"127.0.0.1"}, nodes...); err != nil {
		_ = os.RemoveAll(dir)
		return "", fmt.Errorf("certificates: %w", err)
	}
	return Certs(dir), nil
}

// Of returns the files of a node.
func (c Certs) Of(node string) Files {
	if c == "" {
		return Files{}
	}
	cert, key := pki.Paths(string(c), node)
	return Files{cert, key, filepath.Join(string(c), pki.CAName+pki.CertSuffix)}
}

// Remove removes the folder.
func (c Certs) Remove() {
	if c != "" {
		_ = os.RemoveAll(string(c))
	}
}
