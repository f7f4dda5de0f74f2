// Benchmark of strangers with certificates: what one connection costs, both ends of it together.

package transport

import (
	"crypto/tls"
	"io"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

// BenchmarkStranger is one connection of a stranger, by what it shows.
func BenchmarkStranger(b *testing.B) {
	ca := authority(b)
	tr := start(b, newRider(), func(c *Config) {
		member(b, ca)(c)
		c.MaxVisits = 1_000_000
	})
	for _, kind := range []struct {
		name  string
		certs []tls.Certificate
	}{
		{"no certificate", nil}, {"1 unknown", []tls.Certificate{tangle(b, 1)}},
		{"4 tangled", []tls.Certificate{tangle(b, 4)}}, {"20 tangled", []tls.Certificate{tangle(b, 20)}},
		{"100 tangled", []tls.Certificate{tangle(b, 100)}},
	} {
		b.Run(kind.name, func(b *testing.B) {
			for b.Loop() {
				nc, err := net.Dial("tcp", tr.Addr().String())
				require.NoError(b, err)
				cfg := &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13}
				if kind.certs != nil { // whatever authorities are asked for
					cfg.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
						return &kind.certs[0], nil
					}
				}
				c := tls.Client(nc, cfg)
				if c.Handshake() == nil {
					_, _ = io.Copy(io.Discard, c)
				}
				_ = nc.Close()
			}
		})
	}
}
