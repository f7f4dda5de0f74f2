// Certificates of a measurement over TLS: an authority that nobody can use again, in a folder that goes with it.

package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/bench"
	"github.com/kith-io/kith/internal/base/pki"
)

// clusterName is the name of the cluster of the worker processes.
const clusterName = "loadgen"

// tlsFiles names the files of TLS; the zero value is none.
type tlsFiles struct{ Cert, Key, CA string }

func (f tlsFiles) config() kith.TLS { return kith.TLS{CertFile: f.Cert, KeyFile: f.Key, CAFile: f.CA} }

// certs is a folder with one certificate, which all processes of a measurement share, for nodes and for bare links.
type certs string

func newCerts() (certs, error) {
	dir, err := os.MkdirTemp("", "kith-loadgen-")
	if err != nil {
		return "", err
	}
	uris := []string{kith.ClusterURI(clusterName), kith.ClusterURI(bench.LinkCluster)}
	if err := pki.ThrowAway(dir, uris, []string{"127.0.0.1"}, "worker"); err != nil {
		_ = os.RemoveAll(dir)
		return "", fmt.Errorf("certificates: %w", err)
	}
	return certs(dir), nil
}

func (c certs) files() tlsFiles {
	cert, key := pki.Paths(string(c), "worker")
	return tlsFiles{cert, key, filepath.Join(string(c), pki.CAName+pki.CertSuffix)}
}

func (c certs) remove() {
	if c != "" {
		_ = os.RemoveAll(string(c))
	}
}
