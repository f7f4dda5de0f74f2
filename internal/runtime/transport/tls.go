// TLS on connections: the handshake at both ends, what is said and counted when it fails, and the way out to the
// socket.

package transport

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/kith-io/kith/internal/core/hello"
	"github.com/kith-io/kith/internal/runtime/trust"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// Bounds of a leave notice: what is read from a stranger that was refused, so that the refusal arrives before the reset
// that unread bytes cause.
const (
	lingerTime  = 500 * time.Millisecond
	lingerBytes = 96 << 10
)

// accepted makes the TLS handshake of an accepted connection, if there is to be one. After an error it is closed.
func (t *Transport) accepted(g *pendingConn) (net.Conn, error) {
	sock := g.nc
	if t.trust == nil {
		return sock, nil
	}
	t.refreshTrust()
	s := t.trust.Accept(sock)
	s.Hears(entry{t, g}.heard)
	var own *trust.Turn
	if !g.member {
		own = t.trust.Turn()
	}
	err := s.Shake(own)
	if err == nil {
		return s, nil
	}
	e := s.Failed(err)
	first := tls.RecordHeaderError{}
	asked := errors.As(e.Err, &first) && isHTTP(first.RecordHeader[:])
	switch {
	case t.ctx.Err() != nil || g.out.Load():
	case !g.spoke.Load():
		t.mute(g, err)
		_ = sock.Close() // nothing is owed to it
	case asked:
		t.fault("an HTTP request", &t.count.tlsRefused[e.Reason], "remote", sock.RemoteAddr(), "error", e.Err)
	default:
		t.fault("tls: "+e.Reason.String(), &t.count.tlsRefused[e.Reason], "remote", sock.RemoteAddr(), "error", e.Err)
	}
	if asked {
		answerHTTP(sock)
		return nil, e
	}
	if e.Reason == trust.TLSPlain {
		refusal := &hello.RefusedError{Reason: hello.RefusedTLS, Key: "TLS", Ours: "off", Theirs: "required"}
		_, _ = sock.Write(wire.AppendFrame(nil, wire.KindHelloRefuse, 0, 0, hello.AppendRefusal(nil, refusal)))
	}
	linger(sock)
	return nil, e
}

// linger closes a connection so that what was said last arrives.
func linger(sock net.Conn) {
	if half, ok := sock.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
		_ = sock.SetReadDeadline(time.Now().Add(lingerTime))
		_, _ = io.CopyN(io.Discard, sock, lingerBytes)
	}
	_ = sock.Close()
}

// dialled makes the TLS handshake of a dialled connection, if there is to be one.
func (t *Transport) dialled(sock net.Conn, to peer.Addr) (net.Conn, error) {
	if t.trust == nil {
		return sock, nil
	}
	t.refreshTrust()
	s := t.trust.Dial(sock, to.Host())
	return s, s.Shake(nil)
}

// tlsFailed gives the failure of a dialled connection its reason, and counts it, when it is one of TLS: the handshake
// is not through, or the acceptor refuses our certificate, which a dialler learns behind its own handshake.
func (t *Transport) tlsFailed(carrier net.Conn, to peer.Addr, err error) error {
	s, ok := carrier.(*trust.Conn)
	if !ok || s.ConnectionState().HandshakeComplete && !trust.IsAlert(err) {
		return err
	}
	e := trust.ErrorOf(err, false)
	if !errors.Is(err, context.Canceled) {
		t.count.tlsFailed[e.Reason].Add(1)
	}
	return &dialError{to, e}
}

// dialError is a TLSError with the address that was dialled.
type dialError struct {
	to  peer.Addr
	err *trust.TLSError
}

// Error names the address.
func (e *dialError) Error() string { return "connection to " + e.to.String() + ": " + e.err.Error() }

// Unwrap returns the TLSError.
func (e *dialError) Unwrap() error { return e.err }

// refreshTrust loads credentials that have changed.
func (t *Transport) refreshTrust() {
	changed, err := t.trust.Refresh()
	switch {
	case err != nil:
		t.cfg.Logger.Error("tls credentials not reloaded", "error", err) // no peer's fault, and seldom: see Refresh
	case changed:
		t.renewed()
	}
}

// ReloadTLS loads the credentials anew now; an error leaves the old ones.
func (t *Transport) ReloadTLS() error {
	if t.trust == nil {
		return errNoTLS
	}
	err := t.trust.Reload()
	if err == nil {
		t.renewed()
	}
	return err
}

var errSpeaksTLS = fmt.Errorf("%w: a TLS handshake where a hello was due", ErrProtocol)

// errNoTLS refuses a reload of what there is not.
var errNoTLS = errors.New("transport: TLS is not configured")

// renewed is called when the credentials are other ones than before: connections that stand are looked at at once.
func (t *Transport) renewed() {
	c := t.trust.State()
	t.trust.CheckKeyFile(t.cfg.Logger)
	t.cfg.Logger.Info("tls credentials loaded", "number", c.Number(), "subject", c.Subject(),
		"expires", c.Ends(), "serial", c.Serial(), "fingerprint", c.Fingerprint(), "authorities", c.Authorities(),
		"revoked", c.Revoked())
	select {
	case t.kick <- struct{}{}:
	default:
	}
}
