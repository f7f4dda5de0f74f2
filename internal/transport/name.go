// Names: who may speak for an incarnation. With TLS it is bound to the name in its certificate, which survives renewal;
// and, with TLS or without, to a token that its node says to this one alone.

package transport

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/x509"
	"net"
	"strings"
	"time"

	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
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
func (t *Transport) isAt(nc net.Conn, h *hello) *RefusedError {
	s, ok := nc.(*secure)
	if !ok || !t.trust.cfg.VerifyHost {
		return nil
	}
	s.host = h.from.Addr.Host()
	if err := s.ConnectionState().PeerCertificates[0].VerifyHostname(s.host); err != nil {
		return &RefusedError{Reason: RefusedHost, Key: "host of the certificate", Ours: s.host, Theirs: err.Error()}
	}
	return nil
}

// bond is who speaks for a peer's incarnation, as far as this node has seen. Under the transport's lock.
type bond struct {
	name  string        // in the certificate
	named bool          // that is known,
	sure  bool          // and from whoever answers at the peer's own address, not from a hello alone
	token token         // of its connections; zero: a node that says none
	until time.Duration // that holds when there is none of them any more
}

// bondFor is how long nobody else may come in the name of a node whose connections have broken: it will be back.
const bondFor = time.Minute

// tokenFor is what this node's hellos say to a peer; none to whoever is at an address.
func (t *Transport) tokenFor(to peer.ID) (k token) {
	if to.Inc == 0 {
		return k
	}
	mac := hmac.New(sha256.New, t.secret[:])
	_, _ = mac.Write(peer.AppendID(nil, to))
	copy(k[:], mac.Sum(nil))
	return k
}

// isContact reports whether a connection is one beside those that matter: a node dials it by the address alone, so it
// cannot say its token there.
func isContact(lane wire.Lane, number uint16) bool { return lane == wire.LaneControl && number != 0 }

// admits returns why a hello, under a certificate of that name, may not speak for r, or nil. The transport's lock is
// held.
func (r *remote) admits(h *hello, name string) *RefusedError {
	if r.t.trust != nil && r.bond.named && r.bond.name != name {
		return &RefusedError{Reason: RefusedTaken, Key: "certificate of " + r.id.String(), Ours: name, Theirs: r.bond.name}
	}
	if !isContact(h.lane, h.number) && (r.stands() || r.t.cfg.Now() < r.bond.until) && r.bond.token != h.token {
		return &RefusedError{Reason: RefusedTaken, Key: "node that says to be " + r.id.String(), Ours: "another",
			Theirs: "connected"}
	}
	return nil
}

// stands reports whether somebody speaks for r now. The transport's lock is held.
func (r *remote) stands() bool {
	for key := range r.in {
		if !isContact(key.lane, key.number) {
			return true
		}
	}
	return r.bulkIn != nil
}

// left notes that a connection of r has ended. The transport's lock is held.
func (r *remote) left() {
	if !r.stands() {
		r.bond.until = r.t.cfg.Now() + bondFor
	}
}

// bind notes who speaks for r from now on: a hello that was let in. The transport's lock is held.
func (r *remote) bind(h *hello, name string) {
	if !isContact(h.lane, h.number) {
		r.bond.token = h.token
	}
	if r.t.trust != nil && !r.bond.named {
		r.bond.name, r.bond.named = name, true
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
	if r == nil || r.bond.sure && r.bond.name == name {
		t.mu.Unlock()
		return nil
	}
	before := r.bond
	if before.sure {
		t.mu.Unlock()
		t.count.tlsFailed[TLSName].Add(1)
		return &RefusedError{Peer: id, Reason: RefusedTaken, Key: "certificate of " + id.String(), Ours: before.name,
			Theirs: name}
	}
	var strangers []*InConn
	var bulkIn *bulkConn
	if before.named && before.name != name {
		for _, c := range r.in {
			strangers = append(strangers, c)
		}
		bulkIn, r.bulkIn = r.bulkIn, nil
		clear(r.in)
		r.bond = bond{}
	}
	r.bond.name, r.bond.named, r.bond.sure = name, true, true
	t.mu.Unlock()
	if len(strangers) > 0 || bulkIn != nil {
		t.fault("connections in another node's name", &t.count.tlsRefused[TLSName], "peer", id, "certificate", before.name,
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
	known := r == nil || r.bond.sure
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
