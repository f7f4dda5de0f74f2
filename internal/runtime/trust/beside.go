// Beside: configurations for connections beside those of the members, which the standard library makes itself.

package trust

import "crypto/tls"

// Configs returns what a server, and a client of a server at a host, want of TLS so that both ends are nodes of this
// cluster. Credentials are those of the time of each handshake.
func (t *Store) Configs() (server *tls.Config, client func(host string) *tls.Config) {
	server = &tls.Config{MinVersion: tls.VersionTLS13, NextProtos: []string{"http/1.1"},
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			c := t.beside("")
			c.ClientAuth = tls.RequireAnyClientCert // judged by VerifyConnection
			return c, nil
		}}
	return server, func(host string) *tls.Config {
		if !t.cfg.VerifyHost {
			host = ""
		}
		c := t.beside(host)
		c.InsecureSkipVerify = true // VerifyConnection checks more than what is switched off here
		return c
	}
}

func (t *Store) beside(host string) *tls.Config {
	creds := t.current.Load()
	return &tls.Config{MinVersion: tls.VersionTLS13, NextProtos: []string{"http/1.1"},
		Certificates: []tls.Certificate{creds.Certificate},
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return &creds.Certificate, nil
		}, Time: t.now, SessionTicketsDisabled: true,
		VerifyConnection: func(cs tls.ConnectionState) error {
			return creds.judge(cs.PeerCertificates, host, t.now())
		}}
}
