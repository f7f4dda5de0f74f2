// Secure: one TLS connection. Its handshake and hello run over the socket, in a goroutine; afterwards the same tls.Conn
// runs on the loop, over memory: ciphertext that was read goes in, ciphertext to be written comes out.

package transport

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"github.com/panjf2000/gnet/v2"
)

// Sizes of TLS, in bytes.
const (
	recordHeader = 5
	maxPlain     = 16 << 10       // plaintext of one record
	maxRecord    = maxPlain + 256 // what a header may claim; TLS refuses more
	// preHello bounds what a handshake and a hello may send us: certificate chains are a few KiB.
	preHello = 96 << 10
	// sealChunk is how much plaintext is sealed for one write: few enough bytes to stay in a core's cache.
	sealChunk = 64 << 10
	// keepSealed is the largest buffer of sealed bytes that is pooled.
	keepSealed = sealChunk + (sealChunk/maxPlain+2)*256
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

// errEnded is a TLS connection that its peer closed in order.
var errEnded = errors.New("transport: TLS connection closed by the peer")

// secure is a tls.Conn over a feed. After bare it belongs to its loop.
type secure struct {
	*tls.Conn
	feed  *tlsFeed
	creds *credentials // that it was made with
	host  string       // that was dialled, if the certificate must name it
	old   bool         // the dialler offered no TLS 1.3
	late  bool         // plaintext of the hello's record may be left

	held   []byte // sealed bytes that are being written
	pooled *[]byte
}

// accept makes the acceptor's end over nc; no byte has moved.
func (t *trust) accept(nc net.Conn) *secure {
	s := &secure{feed: newFeed(nc), creds: t.current.Load()}
	cfg := s.config(t)
	// With a certificate, the standard library verifies its chain for clients and sends the fitting alert; without one,
	// our own check gives the reason.
	cfg.ClientAuth, cfg.ClientCAs = tls.VerifyClientCertIfGiven, s.creds.CAs
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

// dial makes the dialler's end over nc.
func (t *trust) dial(nc net.Conn, host string) *secure {
	s := &secure{feed: newFeed(nc), creds: t.current.Load()}
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

func (s *secure) config(t *trust) *tls.Config {
	return &tls.Config{
		MinVersion:   tls.VersionTLS13,
		Certificates: []tls.Certificate{s.creds.Certificate},
		Time:         t.now,
		// Every connection is judged anew, so none is resumed.
		SessionTicketsDisabled:      true,
		DynamicRecordSizingDisabled: true,
		VerifyConnection: func(cs tls.ConnectionState) error {
			return s.creds.judge(cs.PeerCertificates, s.host, t.now())
		},
	}
}

// chain returns the certificates of the peer, leaf first.
func (s *secure) chain() []*x509.Certificate { return s.ConnectionState().PeerCertificates }

// bare ends the part of a connection's life in which it reads and writes its socket itself, and returns that socket. Of
// a connection without TLS it is the connection.
func bare(nc net.Conn) (net.Conn, *secure) {
	s, ok := nc.(*secure)
	if !ok {
		return nc, nil
	}
	sock := s.feed.sock
	s.feed.sock, s.late = nil, true
	return sock, s
}

// unbound lets a connection that stays a blocking one, and never comes to a loop, read on behind its hello.
func unbound(nc net.Conn) {
	if s, ok := nc.(*secure); ok {
		s.feed.free = true
	}
}

// taker takes the plaintext of a connection, valid during the call.
type taker interface{ take(b []byte) error }

// read takes ciphertext that came in, on the loop, and hands on the plaintext in as few pieces as there is room for.
// errEnded: the peer has closed in order.
func (s *secure) read(l *Loop, b []byte, to taker) error {
	if l.plain == nil {
		l.plain = make([]byte, readBuffer+2*maxRecord)
	}
	n := 0
	var err error
	s.feed.in = b
	for err == nil && (s.late || s.feed.next()) {
		var m int
		m, err = s.Read(l.plain[n:])
		n += m
		if errors.Is(err, errDry) {
			s.late, err = false, nil
		}
		if len(l.plain)-n < maxPlain && err == nil {
			err = to.take(l.plain[:n])
			n = 0
		}
	}
	s.feed.in = nil
	if n > 0 {
		if bad := to.take(l.plain[:n]); bad != nil {
			return bad
		}
	}
	if err == io.EOF {
		return errEnded
	}
	return err
}

// seal encrypts b, at most sealChunk bytes, behind what TLS itself had to say. The result is valid until release.
func (s *secure) seal(b []byte) ([]byte, error) {
	if _, err := s.Write(b); err != nil {
		return nil, err
	}
	return s.detach(), nil
}

// detach takes what has gathered to be written, for as long as until release: TLS may say more meanwhile.
func (s *secure) detach() []byte {
	s.held, s.pooled = s.feed.out, s.feed.pooled
	s.feed.out, s.feed.pooled = nil, nil
	return s.held
}

// release gives the buffer of sealed bytes back.
func (s *secure) release() {
	if s.pooled != nil && cap(s.held) <= keepSealed {
		*s.pooled = s.held[:0]
		sealed.Put(s.pooled)
	}
	s.held, s.pooled = nil, nil
}

// flush writes what TLS itself has to say, such as the answer to a change of keys.
func (s *secure) flush(c gnet.Conn) error {
	if len(s.feed.out) == 0 {
		return nil
	}
	_, err := c.Write(s.detach())
	s.release()
	return err
}

// writeTo seals b and writes it, on the loop. After an error the connection is closed.
func (s *secure) writeTo(c gnet.Conn, b []byte) error {
	for len(b) > 0 {
		n := min(len(b), sealChunk)
		out, err := s.seal(b[:n])
		if err != nil {
			_ = c.EventLoop().Close(c)
			return err
		}
		_, err = c.Write(out)
		s.release()
		if err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

// sealed pools the buffers of sealed bytes.
var sealed = sync.Pool{New: func() any {
	b := make([]byte, 0, keepSealed)
	return &b
}}

// tlsFeed is the net.Conn under a tls.Conn: first the socket, of which it reads record by record, so that nothing behind
// the hello's record is taken from it; then memory.
type tlsFeed struct {
	sock net.Conn // nil: memory

	free bool               // the hello is through, and no loop takes over: no bound, no need to stop at a record's end
	left int                // bytes that the socket may still give
	rest int                // of the record under way
	head [recordHeader]byte // of that record, as far as read
	have int

	in    []byte // what one read of the loop brought
	rec   []byte // the record that is being read
	carry []byte // the beginning of a record that a later read ends

	out    []byte
	pooled *[]byte // the pool's handle of out
}

func newFeed(nc net.Conn) *tlsFeed { return &tlsFeed{sock: nc, left: preHello} }

// Read reads from the socket up to the end of a record, or from memory.
func (f *tlsFeed) Read(p []byte) (int, error) {
	if f.sock == nil {
		n := copy(p, f.rec)
		if f.rec = f.rec[n:]; n == 0 {
			return 0, errDry
		}
		return n, nil
	}
	if f.free {
		return f.sock.Read(p)
	}
	if f.rest == 0 {
		f.rest, f.have = recordHeader, 0
	}
	if f.left <= 0 {
		return 0, errHandshakeBytes
	}
	n, err := f.sock.Read(p[:min(len(p), f.rest, f.left)])
	f.rest -= n
	f.left -= n
	if f.have < recordHeader {
		copy(f.head[f.have:], p[:n])
		if f.have += n; f.have == recordHeader {
			f.rest = int(f.head[3])<<8 | int(f.head[4])
		}
	}
	return n, err
}

// next makes the next whole record readable. A record whose header claims more than there may be is readable as far as
// it came: TLS refuses it by its header.
func (f *tlsFeed) next() bool {
	if len(f.rec) > 0 {
		return true
	}
	if len(f.carry) > 0 {
		return f.straddle()
	}
	n := recordSize(f.in)
	if n == 0 {
		f.carry = append(f.carry, f.in...)
		f.in = nil
		return false
	}
	f.rec, f.in = f.in[:n], f.in[n:]
	return true
}

// straddle ends the record that an earlier read began.
func (f *tlsFeed) straddle() bool {
	for {
		if n := recordSize(f.carry); n > 0 {
			f.rec = f.carry[:n]
			f.carry = f.carry[:0]
			return true
		}
		want := recordHeader - len(f.carry)
		if want <= 0 {
			want = recordHeader + (int(f.carry[3])<<8 | int(f.carry[4])) - len(f.carry)
		}
		n := min(want, len(f.in))
		if n == 0 {
			return false
		}
		f.carry = append(f.carry, f.in[:n]...)
		f.in = f.in[n:]
	}
}

// recordSize returns the size of the record that b begins with, zero when it is not whole; of one over the limit,
// what is there.
func recordSize(b []byte) int {
	if len(b) < recordHeader {
		return 0
	}
	n := int(b[3])<<8 | int(b[4])
	if n > maxRecord {
		return len(b)
	}
	if n += recordHeader; n > len(b) {
		return 0
	}
	return n
}

// Write writes to the socket, or gathers in memory.
func (f *tlsFeed) Write(p []byte) (int, error) {
	if f.sock != nil {
		return f.sock.Write(p)
	}
	if f.out == nil {
		f.pooled = sealed.Get().(*[]byte)
		f.out = (*f.pooled)[:0]
	}
	f.out = append(f.out, p...)
	return len(p), nil
}

// Close closes the socket; memory needs none.
func (f *tlsFeed) Close() error {
	if f.sock == nil {
		return nil
	}
	return f.sock.Close()
}

// LocalAddr is the socket's; nil in memory.
func (f *tlsFeed) LocalAddr() net.Addr {
	if f.sock == nil {
		return nil
	}
	return f.sock.LocalAddr()
}

// RemoteAddr is the socket's; nil in memory.
func (f *tlsFeed) RemoteAddr() net.Addr {
	if f.sock == nil {
		return nil
	}
	return f.sock.RemoteAddr()
}

// SetDeadline is the socket's; memory has none.
func (f *tlsFeed) SetDeadline(at time.Time) error {
	if f.sock == nil {
		return nil
	}
	return f.sock.SetDeadline(at)
}

// SetReadDeadline is the socket's; memory has none.
func (f *tlsFeed) SetReadDeadline(at time.Time) error {
	if f.sock == nil {
		return nil
	}
	return f.sock.SetReadDeadline(at)
}

// SetWriteDeadline is the socket's; memory has none.
func (f *tlsFeed) SetWriteDeadline(at time.Time) error {
	if f.sock == nil {
		return nil
	}
	return f.sock.SetWriteDeadline(at)
}
