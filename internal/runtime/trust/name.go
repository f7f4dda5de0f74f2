// Names: what a certificate calls its node.

package trust

import (
	"crypto/x509"
	"net"
	"strings"
)

// nodeName is the name that a certificate gives to its node: the subject's common name; where there is none the first
// of its other names, URIs before hosts before addresses, that of a cluster aside. It may be empty.
func nodeName(cert *x509.Certificate) string {
	if cert.Subject.CommonName != "" {
		return cert.Subject.CommonName
	}
	for _, u := range cert.URIs {
		if s := u.String(); !strings.HasPrefix(s, ClusterURI("")) {
			return s
		}
	}
	switch {
	case len(cert.DNSNames) > 0:
		return cert.DNSNames[0]
	case len(cert.IPAddresses) > 0:
		return cert.IPAddresses[0].String()
	}
	return ""
}

// NameOf is the name in the certificate that was shown on a connection; empty without TLS.
func NameOf(nc net.Conn) string {
	if s, ok := nc.(*Conn); ok {
		if certs := s.ConnectionState().PeerCertificates; len(certs) > 0 {
			return nodeName(certs[0])
		}
	}
	return ""
}

// DemandHost demands, from now on, that the peer's certificate names a host. The error says that it does not.
func (s *Conn) DemandHost(host string) error {
	s.host = host
	return s.ConnectionState().PeerCertificates[0].VerifyHostname(host)
}
