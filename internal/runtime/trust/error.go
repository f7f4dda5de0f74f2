// TLSError: why a TLS handshake failed, as a reason that is counted and that callers branch on.

package trust

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/kith-io/kith/route"
)

// TLSReason is why a TLS handshake, or a connection that stood, was given up.
type TLSReason uint8

// The reasons.
const (
	TLSOther         TLSReason = iota // anything else: a broken message, no common parameters
	TLSPlain                          // the other end does not speak TLS
	TLSVersion                        // the other end has no TLS 1.3
	TLSNoCertificate                  // no certificate was given
	TLSExpired                        // a certificate of the chain is expired
	TLSUnknownCA                      // the chain ends at no authority that is trusted here
	TLSUsage                          // the certificate is not for clients and servers both
	TLSCluster                        // the certificate does not name this cluster
	TLSHost                           // the certificate does not name the host that was dialled
	TLSRefusedByPeer                  // the other end refused our certificate or parameters, by an alert
	TLSTimeout                        // the handshake did not end in time
	TLSBytes                          // more bytes than a handshake and a hello may have
	TLSGone                           // the other end closed the connection during the handshake
	TLSRevoked                        // a certificate of the chain is on its authority's revocation list
	TLSChain                          // the chain is longer than one may be
	TLSName                           // the certificate names another node than the one that this incarnation is
	TLSEarly                          // a certificate of the chain is not valid yet
	TLSReasons
)

var tlsReasonNames = [TLSReasons]string{
	"other", "not-tls", "tls-version", "no-certificate", "expired", "unknown-ca", "usage", "other-cluster", "other-host",
	"refused-by-peer", "timeout", "bytes", "closed", "revoked", "chain", "other-name",
	"not-valid-yet",
}

// Certificate reports whether a certificate was at fault: the other end's, or this node's in the other end's eyes.
func (r TLSReason) Certificate() bool {
	switch r {
	case TLSNoCertificate, TLSExpired, TLSUnknownCA, TLSUsage, TLSCluster, TLSHost, TLSRefusedByPeer, TLSRevoked, TLSChain,
		TLSName, TLSEarly:
		return true
	}
	return false
}

// String names the reason as logs and counters do.
func (r TLSReason) String() string {
	if r < TLSReasons {
		return tlsReasonNames[r]
	}
	return fmt.Sprintf("tls-reason-%d", uint8(r))
}

// TLSError is a peer that could not be authenticated, or that could not authenticate us. It matches route.ErrPeerLost.
type TLSError struct {
	Reason TLSReason
	Err    error // what the standard library, or our own check, says
}

// Error names the reason and the cause.
func (e *TLSError) Error() string { return fmt.Sprintf("tls: %s: %v", e.Reason, e.Err) }

// Unwrap returns the cause and route.ErrPeerLost.
func (e *TLSError) Unwrap() []error { return []error{e.Err, route.ErrPeerLost} }

// errHandshakeBytes ends a handshake that sends more than one may.
var errHandshakeBytes = errors.New("transport: too many bytes before the hello is through")

// ErrorOf wraps err with its reason; old says that the other end offered no TLS 1.3.
func ErrorOf(err error, old bool) *TLSError {
	if given := (*TLSError)(nil); errors.As(err, &given) {
		return given
	}
	reason := tlsReason(err, time.Now())
	if reason == TLSOther && old {
		reason = TLSVersion
	}
	return &TLSError{Reason: reason, Err: err}
}

func tlsReason(err error, now time.Time) TLSReason {
	var (
		header  tls.RecordHeaderError
		unknown x509.UnknownAuthorityError
		invalid x509.CertificateInvalidError
		host    x509.HostnameError
	)
	switch {
	case errors.Is(err, errHandshakeBytes):
		return TLSBytes
	case errors.Is(err, os.ErrDeadlineExceeded):
		return TLSTimeout
	case errors.As(err, &header):
		return TLSPlain
	case errors.As(err, &invalid) && early(invalid, now):
		return TLSEarly
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return TLSExpired
	case errors.As(err, &invalid) && invalid.Reason == x509.IncompatibleUsage:
		return TLSUsage
	case errors.As(err, &unknown):
		return TLSUnknownCA
	case errors.As(err, &host):
		return TLSHost
	case IsAlert(err):
		return TLSRefusedByPeer
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET),
		errors.Is(err, syscall.EPIPE), errors.Is(err, net.ErrClosed):
		return TLSGone
	}
	return TLSOther
}

// IsAlert reports whether err is an alert that the other end sent.
func IsAlert(err error) bool {
	op := (*net.OpError)(nil)
	return errors.As(err, &op) && op.Op == "remote error"
}

// IsForged reports whether err is TLS that made no sense, on a connection that stood: what came was not sealed by the
// other end.
func IsForged(err error) bool {
	var header tls.RecordHeaderError
	var op *net.OpError
	return errors.As(err, &header) || errors.As(err, &op) && op.Op == "local error"
}

// inWords says what is wrong with a certificate that x509 refuses, where x509 says it in one word for several.
func inWords(err error, usage x509.ExtKeyUsage, now time.Time) error {
	var invalid x509.CertificateInvalidError
	if !errors.As(err, &invalid) {
		return err
	}
	switch {
	case invalid.Reason == x509.IncompatibleUsage && usage == x509.ExtKeyUsageClientAuth:
		return fmt.Errorf("it is not for clients, as a node is one too (extended key usage clientAuth): %w", err)
	case invalid.Reason == x509.IncompatibleUsage:
		return fmt.Errorf("it is not for servers, as a node is one too (extended key usage serverAuth): %w", err)
	case early(invalid, now):
		return fmt.Errorf("%q is not valid yet, but from %s on: %w", invalid.Cert.Subject, invalid.Cert.NotBefore, err)
	case invalid.Reason == x509.Expired && invalid.Cert != nil:
		return fmt.Errorf("%q ended at %s: %w", invalid.Cert.Subject, invalid.Cert.NotAfter, err)
	}
	return err
}

// early reports whether a certificate is refused because its time has not come.
func early(e x509.CertificateInvalidError, now time.Time) bool {
	return e.Reason == x509.Expired && e.Cert != nil && now.Before(e.Cert.NotBefore)
}
