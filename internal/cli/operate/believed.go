// Believed: whose certificate is taken for that of the node that is asked.

package operate

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"strings"

	"github.com/kith-io/kith/internal/base/files"
)

// maxCA bounds a file of authorities, in bytes.
const maxCA = 1 << 20

// Believed are the flags that say by what the certificate of a node is checked.
type Believed struct {
	CA         string `name:"ca" type:"existingfile" placeholder:"FILE" help:"${adminca_help}"`
	ServerName string `placeholder:"NAME" help:"${servername_help}"`
}

// url returns the URL of an address: one without a scheme is asked over TLS where a flag speaks of a certificate.
func (b *Believed) url(address string) string {
	switch {
	case strings.Contains(address, "://"):
		return address
	case b.CA != "" || b.ServerName != "":
		return "https://" + address
	}
	return "http://" + address
}

// client returns a client of HTTP that believes the authority of the file, or with none those of the machine, and
// demands the name, or with none the host that is asked. It follows no redirects: what it was sent with, a token, is
// for the node that was named.
func (b *Believed) client() (*http.Client, error) {
	stays := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	if b.CA == "" && b.ServerName == "" {
		return &http.Client{CheckRedirect: stays}, nil
	}
	cfg := &tls.Config{ServerName: b.ServerName}
	if b.CA != "" {
		pem, err := files.Read(b.CA, maxCA)
		if err != nil {
			return nil, err
		}
		certs, err := files.Certificates(pem)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", b.CA, err)
		}
		cfg.RootCAs = x509.NewCertPool()
		for _, cert := range certs {
			cfg.RootCAs.AddCert(cert)
		}
		if b.ServerName != "" {
			// A certificate of kith cert issue has the name of its node where the standard library does not look for one. So
			// the chain is verified here, as it would do.
			cfg.InsecureSkipVerify = true
			cfg.VerifyConnection = func(s tls.ConnectionState) error { return b.verify(s.PeerCertificates, cfg.RootCAs) }
		}
	}
	return &http.Client{CheckRedirect: stays, Transport: &http.Transport{TLSClientConfig: cfg}}, nil
}

// verify returns why a chain is none of the node of that name: the common name of its certificate is that, or one of
// its alternative names.
func (b *Believed) verify(chain []*x509.Certificate, roots *x509.CertPool) error {
	between := x509.NewCertPool()
	for _, cert := range chain[1:] {
		between.AddCert(cert)
	}
	leaf := chain[0]
	if _, err := leaf.Verify(x509.VerifyOptions{Roots: roots, Intermediates: between}); err != nil {
		return err
	}
	if leaf.Subject.CommonName == b.ServerName {
		return nil
	}
	return leaf.VerifyHostname(b.ServerName)
}
