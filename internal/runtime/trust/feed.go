// tlsFeed: what lies under a tls.Conn: first a socket, then memory, cut into whole records.

package trust

import (
	"net"
	"time"
)

// feed is the net.Conn under a tls.Conn: first the socket, of which it reads record by record, so that nothing
// behind the hello's record is taken from it; then memory.
type feed struct {
	sock net.Conn // nil: memory

	turn  *Turn  // of the handshake; nil when it needs none
	heard func() // called when bytes have come from the socket, before the hello is through; may be nil

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

func newFeed(nc net.Conn, most int) *feed { return &feed{sock: nc, left: most} }

// Read reads from the socket up to the end of a record, or from memory.
func (f *feed) Read(p []byte) (int, error) {
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
	f.turn.give() // a goroutine that waits for its peer works on nothing
	n, err := f.sock.Read(p[:min(len(p), f.rest, f.left)])
	f.turn.take()
	if n > 0 && f.heard != nil {
		f.heard()
	}
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

// next makes the next whole record readable. A record with a header that claims more than there may be is readable as
// far as it came: TLS refuses it by its header.
func (f *feed) next() bool {
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
func (f *feed) straddle() bool {
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
func (f *feed) Write(p []byte) (int, error) {
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
func (f *feed) Close() error {
	if f.sock == nil {
		return nil
	}
	return f.sock.Close()
}

// LocalAddr is the socket's; nil in memory.
func (f *feed) LocalAddr() net.Addr {
	if f.sock == nil {
		return nil
	}
	return f.sock.LocalAddr()
}

// RemoteAddr is the socket's; nil in memory.
func (f *feed) RemoteAddr() net.Addr {
	if f.sock == nil {
		return nil
	}
	return f.sock.RemoteAddr()
}

// SetDeadline is the socket's; memory has none.
func (f *feed) SetDeadline(at time.Time) error {
	if f.sock == nil {
		return nil
	}
	return f.sock.SetDeadline(at)
}

// SetReadDeadline is the socket's; memory has none.
func (f *feed) SetReadDeadline(at time.Time) error {
	if f.sock == nil {
		return nil
	}
	return f.sock.SetReadDeadline(at)
}

// SetWriteDeadline is the socket's; memory has none.
func (f *feed) SetWriteDeadline(at time.Time) error {
	if f.sock == nil {
		return nil
	}
	return f.sock.SetWriteDeadline(at)
}
