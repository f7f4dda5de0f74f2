// Package hostile is clients that break the rules at a node's port, for tests and benchmarks: what a stranger may send
// before a hello, and what a client may send after its hello was taken.
package hostile

import (
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"time"

	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

// Patience bounds every wait of an attacker for the node.
const Patience = 2 * time.Minute

// Target is the node that is attacked.
type Target struct {
	Node    peer.ID
	Name    string  // of the cluster
	Cluster uint64  // its id
	Member  peer.ID // another member, that a client speaks for; zero: none
	Type    uint32  // that the node has registered
	// TLS is what a member has, nil without TLS; Stranger's TLS rows bring their own.
	TLS *tls.Config
}

// TypeOf is the number of a type by its name.
func TypeOf(name string) uint32 { return uint32(route.TypeOf(name)) }

// Conn is a connection to the target.
type Conn struct {
	net.Conn
	Target *Target
}

// Dial opens a connection, with TLS if the target has it, on which no hello was said.
func (t *Target) Dial() (*Conn, error) {
	nc, err := net.DialTimeout("tcp", t.Node.Addr.String(), Patience)
	if err != nil {
		return nil, err
	}
	_ = nc.SetDeadline(time.Now().Add(Patience))
	if t.TLS == nil {
		return &Conn{nc, t}, nil
	}
	s := tls.Client(nc, t.TLS)
	if err := s.Handshake(); err != nil {
		_ = nc.Close()
		return nil, err
	}
	return &Conn{s, t}, nil
}

// Bare opens a connection without TLS, whatever the target has.
func (t *Target) Bare() (*Conn, error) {
	plain := *t
	plain.TLS = nil
	return plain.Dial()
}

// strangers numbers clients that are nobody.
var strangers atomic.Uint64

// Stranger is an identity that no node has.
func Stranger() peer.ID {
	return peer.ID{Addr: peer.MustAddr("127.9.9.9:9"), Inc: 1<<40 + strangers.Add(1)}
}

// Hello is what a dialler says first, field by field as docs/contributing/wire.md draws it. The zero value of a field
// that must not be zero means the right one.
type Hello struct {
	Magic          string
	Newest, Oldest uint16
	Lane           wire.Lane
	Number         uint16
	Generation     uint32
	Window         uint32
	Cluster        uint64
	Name           string
	From, To       peer.ID
}

// Append appends the frame of h as t is to get it.
func (h Hello) Append(dst []byte, t *Target) []byte {
	def(&h.Magic, "KITH")
	def(&h.Newest, wire.Version)
	def(&h.Oldest, wire.Version)
	def(&h.Generation, 1)
	def(&h.Window, 64<<10)
	def(&h.Name, t.Name)
	def(&h.From, Stranger())
	def(&h.To, t.Node)
	dst, at := wire.BeginFrame(dst, wire.KindHello, 0, 0)
	dst = append(dst, h.Magic...)
	dst = wire.AppendU16(wire.AppendU16(dst, h.Newest), h.Oldest)
	dst = wire.AppendU16(wire.AppendU8(dst, uint8(h.Lane)), h.Number)
	dst = wire.AppendU32(wire.AppendU32(dst, h.Generation), h.Window)
	dst = wire.AppendU64(wire.AppendU64(dst, h.Cluster), 0)
	dst = peer.AppendID(wire.AppendString(dst, h.Name), h.From)
	dst = wire.AppendU64(peer.AppendAddr(dst, h.To.Addr), h.To.Inc)
	dst = wire.AppendString(wire.AppendUvarint(dst, 0), "")
	wire.EndFrame(dst, at)
	return dst
}

func def[T comparable](v *T, d T) {
	var zero T
	if *v == zero {
		*v = d
	}
}

// errNoAck is a hello that was not taken.
var errNoAck = errors.New("hostile: the hello was not taken")

// Greet says hello and reads the answer, which must be that it was taken.
func (c *Conn) Greet(h Hello) error {
	if _, err := c.Write(h.Append(nil, c.Target)); err != nil {
		return err
	}
	kind, _, err := readFrame(c)
	if err == nil && kind != wire.KindHelloAck {
		err = fmt.Errorf("%w: %s", errNoAck, kind)
	}
	return err
}

// Closed waits until the node has closed the connection.
func (c *Conn) Closed() error {
	_, err := io.Copy(io.Discard, c)
	var late net.Error
	if errors.As(err, &late) && late.Timeout() {
		return fmt.Errorf("hostile: not closed: %w", err)
	}
	return nil
}

// Ends says that nothing more comes.
func (c *Conn) Ends() {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
}

func readFrame(r io.Reader) (wire.Kind, []byte, error) {
	var head [wire.HeaderSize]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, err
	}
	size := binary.LittleEndian.Uint32(head[:])
	if size < wire.HeaderSize || size > 1<<20 {
		return 0, nil, fmt.Errorf("hostile: the node writes a frame of %d bytes", size)
	}
	body := make([]byte, size-wire.HeaderSize)
	_, err := io.ReadFull(r, body)
	return wire.Kind(head[4]), body, err
}
