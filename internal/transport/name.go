// Names: who may speak for an incarnation. With TLS it is bound to the name in its certificate, which survives renewal;
// and, with TLS or without, to a token that its node says to this one alone.

package transport

import (
	"crypto/x509"
	"net"
	"strings"

	"github.com/kith-io/kith/internal/hello"
	"github.com/kith-io/kith/peer"
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

// shownName is the name in the certificate that was shown on a connection; empty without TLS.
func shownName(nc net.Conn) string {
	if s, ok := nc.(*secure); ok {
		if certs := s.ConnectionState().PeerCertificates; len(certs) > 0 {
			return nodeName(certs[0])
		}
	}
	return ""
}

// isAt returns a refusal when the certificate of a dialler must name the host that it says it is at, and does not. It
// is asked again as long as the connection stands.
func (t *Transport) isAt(nc net.Conn, h *hello.Hello) *hello.RefusedError {
	s, ok := nc.(*secure)
	if !ok || !t.trust.cfg.VerifyHost {
		return nil
	}
	s.host = h.From.Addr.Host()
	if err := s.ConnectionState().PeerCertificates[0].VerifyHostname(s.host); err != nil {
		return &hello.RefusedError{Reason: hello.RefusedHost, Key: "host of the certificate", Ours: s.host,
			Theirs: err.Error()}
	}
	return nil
}

// stands reports whether somebody speaks for r now. The transport's lock is held.
func (r *remote) stands() bool {
	for key := range r.in {
		if !hello.IsContact(key.lane, key.number) {
			return true
		}
	}
	return r.bulkIn != nil
}

// left notes that a connection of r has ended. The transport's lock is held.
func (r *remote) left() {
	if !r.stands() {
		r.bond.Left(r.t.cfg.Now())
	}
}

// confirm notes the name of whoever answers at a peer's own address as this incarnation. That is better known than what
// hellos say: connections of somebody with another name end. An error says that it has another name than before.
func (t *Transport) confirm(id peer.ID, name string) error {
	if t.trust == nil || id.Inc == 0 {
		return nil
	}
	t.mu.Lock()
	r := t.remotes[id]
	if r == nil {
		t.mu.Unlock()
		return nil
	}
	before, displaced, refused := r.bond.Confirm(id, name)
	if refused != nil {
		t.mu.Unlock()
		t.count.tlsFailed[TLSName].Add(1)
		return refused
	}
	var strangers []*InConn
	var bulkIn *bulkConn
	if displaced {
		for _, c := range r.in {
			strangers = append(strangers, c)
		}
		bulkIn, r.bulkIn = r.bulkIn, nil
		clear(r.in)
	}
	t.mu.Unlock()
	if len(strangers) > 0 || bulkIn != nil {
		t.fault("connections in another node's name", &t.count.tlsRefused[TLSName], "peer", id, "certificate", before,
			"at its address", name)
	}
	for _, c := range strangers {
		c.loop.post(c)
	}
	if bulkIn != nil {
		_ = bulkIn.nc.Close()
	}
	return nil
}

// inquire dials the address of somebody in whose name two others come, unless who answers there is known.
func (t *Transport) inquire(id peer.ID) {
	t.mu.Lock()
	r := t.remotes[id]
	known := r == nil || r.bond.Sure()
	t.mu.Unlock()
	if known {
		return
	}
	c := r.control()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conn == nil && !c.dialing {
		c.inquires = true
		c.ensure()
	}
}
