// Secure: one TLS connection. Its handshake and hello run over the socket, in a goroutine; afterwards the same tls.Conn
// runs on the loop, over memory: ciphertext that was read goes in, ciphertext to be written comes out.

package trust

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kith-io/kith/internal/core/hello"
)

// Sizes of TLS, in bytes.
const (
	recordHeader = 5
	MaxPlain     = 16 << 10       // plaintext of one record
	maxRecord    = MaxPlain + 256 // what a header may claim; TLS refuses more
	// helloBytes bounds the records of a hello, behind the handshake.
	helloBytes = hello.MaxFrame + 4<<10
	// plainBuffer holds the plaintext of one read of a loop.
	plainBuffer = 128<<10 + 2*maxRecord
	// SealChunk is how much plaintext is sealed for one write: three records, measured best of 16 to 256 KiB
	SealChunk = 48 << 10
	// keepSealed is the largest buffer of sealed bytes that is pooled.
	keepSealed = SealChunk + (SealChunk/MaxPlain+2)*256
)

// dryError is what a read from memory returns when there is no more: temporary, so tls.Conn keeps its state and goes on
// when there is. TestDryReadKeepsState pins that behaviour of the standard library.
type dryError struct{}

// Error says so.
func (dryError) Error() string { return "transport: no ciphertext yet" }

// Timeout makes it a net.Error of the kind that does not end a tls.Conn.
func (dryError) Timeout() bool { return true }

// Temporary is what crypto/tls looks at.
func (dryError) Temporary() bool { return true }

var errDry error = dryError{}

// ErrEnded is a TLS connection that its peer closed in order.
var ErrEnded = errors.New("transport: TLS connection closed by the peer")

// Conn is one TLS connection. One goroutine uses it until Bare or Unbound; after Bare it belongs to its loop, after
// Unbound one goroutine may read while another one writes.
type Conn struct {
	*tls.Conn
	feed  *feed
	creds *State // that it was made with
	trust *Store
	host  string // that was dialled, if the certificate must name it
	old   bool   // the dialler offered no TLS 1.3
	late  bool   // plaintext of the hello's record may be left

	// Of the upkeep, in the sweep.
	peer     []*x509.Certificate // leaf first
	judged   *State              // by which peer was judged last
	judgedAt time.Time
	renewAt  time.Time   // wall time
	putOff   time.Time   // a renewal, until then
	anew     atomic.Bool // a bulk connection that its dialler makes anew rather than have it judged

	held   []byte // sealed bytes that are being written
	pooled *[]byte
}

// Accept makes the acceptor's end over nc, by the credentials of now; no byte has moved.
func (t *Store) Accept(nc net.Conn) *Conn {
	s := &Conn{feed: newFeed(nc, t.handshakeBytes), creds: t.current.Load(), trust: t}
	cfg := s.config(t)
	// The standard library would follow every path that a stranger's certificates can be made to form; our own check
	// does not, gives the reason, and comes before any signature of the stranger's is looked at.
	cfg.ClientAuth, cfg.ClientCAs = tls.RequestClientCert, s.creds.CAs
	cfg.GetConfigForClient = func(h *tls.ClientHelloInfo) (*tls.Config, error) {
		s.old = true
		for _, v := range h.SupportedVersions {
			s.old = s.old && v != tls.VersionTLS13
		}
		return nil, nil
	}
	s.Conn = tls.Server(s.feed, cfg)
	return s
}

// Dial makes the dialler's end over nc.
func (t *Store) Dial(nc net.Conn, host string) *Conn {
	s := &Conn{feed: newFeed(nc, dialledMore*t.handshakeBytes), creds: t.current.Load(), trust: t}
	if t.cfg.VerifyHost {
		s.host = host
	}
	cfg := s.config(t)
	// A peer is known by the cluster that its certificate names, not by a host name: VerifyConnection checks chain,
	// usages and cluster, more than what is switched off here.
	cfg.InsecureSkipVerify = true
	s.Conn = tls.Client(s.feed, cfg)
	return s
}

func (s *Conn) config(t *Store) *tls.Config {
	return &tls.Config{
		MinVersion:   tls.VersionTLS13,
		Certificates: []tls.Certificate{s.creds.Certificate},
		// Whatever authorities the other end names: it is to say that it does not believe this node's, rather than that this
		// node has shown nothing.
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return &s.creds.Certificate, nil
		},
		Time: t.now,
		// Every connection is judged anew, so none is resumed.
		SessionTicketsDisabled:      true,
		DynamicRecordSizingDisabled: true,
		VerifyConnection: func(cs tls.ConnectionState) error {
			return s.creds.judge(cs.PeerCertificates, s.host, t.now())
		},
	}
}

// Shake makes the handshake; what comes behind it may be a hello. own is the turn of an acceptor's end that needs one;
// nil: it waits for nobody. Failed says why it went wrong.
func (s *Conn) Shake(own *Turn) error {
	s.feed.turn = own
	own.take()
	err := s.Handshake()
	own.give()
	s.feed.turn = nil
	s.feed.left = helloBytes
	return err
}

// Bare ends the part of a connection's life in which it reads and writes its socket itself, and returns that socket. Of
// a connection without TLS it is the connection.
func Bare(nc net.Conn) (net.Conn, *Conn) {
	s, ok := nc.(*Conn)
	if !ok {
		return nc, nil
	}
	sock := s.feed.sock
	s.feed.sock, s.late = nil, true
	s.keep(s.trust.now())
	return sock, s
}

// Socket returns the socket of a connection that has not come to a loop: of one without TLS, the connection.
func Socket(nc net.Conn) net.Conn {
	if s, ok := nc.(*Conn); ok {
		return s.feed.sock
	}
	return nc
}

// Hears sets f to be called when bytes have come from the socket, until the hello is through. It comes before Shake.
func (s *Conn) Hears(f func()) { s.feed.heard = f }

// Failed wraps the error of a handshake with its reason.
func (s *Conn) Failed(err error) *TLSError { return ErrorOf(err, s.old) }

// Unbound lets a connection that stays a blocking one, and never comes to a loop, read on behind its hello.
func Unbound(nc net.Conn) {
	if s, ok := nc.(*Conn); ok {
		s.feed.free = true
		s.keep(s.trust.now())
		s.trust.held.Store(s, nil)
	}
}

// Close closes a connection that is not on a loop.
func (s *Conn) Close() error {
	s.trust.held.Delete(s)
	return s.Conn.Close()
}

// Taker takes the plaintext of a connection, valid during the call.
type Taker interface{ Take(b []byte) error }

// Unseal takes ciphertext that came in, on the loop, and hands on the plaintext in as few pieces as there is room for.
// plain is where that gathers: one buffer per loop, made by its first TLS connection. ErrEnded: the peer has closed in
// order.
func (s *Conn) Unseal(plain *[]byte, b []byte, to Taker) error {
	if *plain == nil {
		*plain = make([]byte, plainBuffer)
	}
	room := *plain
	n := 0
	var err error
	s.feed.in = b
	for err == nil && (s.late || s.feed.next()) {
		var m int
		m, err = s.Read(room[n:])
		n += m
		if errors.Is(err, errDry) {
			s.late, err = false, nil
		}
		if len(room)-n < MaxPlain && err == nil {
			err = to.Take(room[:n])
			n = 0
		}
	}
	s.feed.in = nil
	if n > 0 {
		if bad := to.Take(room[:n]); bad != nil {
			return bad
		}
	}
	if err == io.EOF {
		return ErrEnded
	}
	return err
}

// Seal encrypts b, at most SealChunk bytes, behind what TLS itself had to say. The result is valid until Release.
func (s *Conn) Seal(b []byte) ([]byte, error) {
	if _, err := s.Write(b); err != nil {
		return nil, err
	}
	return s.Detach(), nil
}

// Detach takes what has gathered to be written, for as long as until Release: TLS may say more meanwhile.
func (s *Conn) Detach() []byte {
	s.held, s.pooled = s.feed.out, s.feed.pooled
	s.feed.out, s.feed.pooled = nil, nil
	return s.held
}

// Release gives the buffer of sealed bytes back.
func (s *Conn) Release() {
	if s.pooled != nil && cap(s.held) <= keepSealed {
		*s.pooled = s.held[:0]
		sealed.Put(s.pooled)
	}
	s.held, s.pooled = nil, nil
}

// Unsaid is how many bytes TLS itself has to say, such as the answer to a change of keys.
func (s *Conn) Unsaid() int { return len(s.feed.out) }

// sealed pools the buffers of sealed bytes.
var sealed = sync.Pool{New: func() any {
	b := make([]byte, 0, keepSealed)
	return &b
}}
