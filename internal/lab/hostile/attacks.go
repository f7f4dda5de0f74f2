// The table of attacks, and the counter of the node that each must raise.

package hostile

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// Attack is what one connection does.
type Attack struct {
	Name   string
	Counts string            // the counter that rises, see Count
	Closes bool              // the node closes the connection, without being asked to
	Slow   bool              // it takes the time of a hello
	Hello  *Hello            // said, and taken, before; nil: none
	Bytes  []byte            // what is said then
	Do     func(*Conn) error // what is done instead
	Alone  bool              // Do makes its own connections
}

// Throw carries an attack out on a new connection, up to the node's end of it.
func (a *Attack) Throw(t *Target) error {
	if a.Alone {
		return a.Do(nil)
	}
	c, err := t.Dial()
	if err != nil {
		return err
	}
	defer c.Close()
	if a.Hello != nil {
		if err := c.Greet(*a.Hello); err != nil {
			return err
		}
	}
	if a.Do != nil {
		err = a.Do(c)
	} else if _, err = c.Write(a.Bytes); err != nil && a.Closes {
		err = nil // it may be closed before all is written
	}
	if err == nil && a.Closes {
		err = c.Closed()
	}
	return err
}

func frame(k wire.Kind, body []byte) []byte { return wire.AppendFrame(nil, k, 0, 0, body) }

func header(size uint32, k wire.Kind) []byte {
	return append(binary.LittleEndian.AppendUint32(nil, size), byte(k), 0, 0, 0)
}

func join(parts ...[]byte) []byte { return slices.Concat(parts...) }

// Garbage is n random bytes, the same each time.
func Garbage(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{7}).Read(b)
	return b
}

// NonMembers are the attacks of clients with a hello that is never taken.
func (t *Target) NonMembers() (list []Attack) {
	add := func(name, counts string, b []byte) {
		list = append(list, Attack{Name: name, Counts: counts, Closes: true, Bytes: b})
	}
	good := Hello{}.Append(nil, t)
	add("random bytes", "refused/magic", Garbage(4096))
	if t.TLS == nil {
		add("a TLS handshake at a port without TLS", "refused/tls", clientHello())
	}
	add("http", "refused/magic", []byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"))
	for _, size := range []uint32{0, 7, 64 << 10, 1 << 31, 1<<32 - 1} {
		add("a hello of impossible size", "refused/magic", header(size, wire.KindHello))
	}
	for k := range wire.Kind(255) {
		if k.Known() && k != wire.KindHello {
			add(k.String()+" before a hello", "refused/magic", frame(k, make([]byte, min(40, k.MaxBody()))))
		}
	}
	for _, cut := range []int{1, 7, 8, 12, 16, 17, 27, 43, 50, len(good) - 1} {
		b := good[:cut]
		list = append(list, Attack{Name: "a hello that is cut", Counts: "hello", Closes: true, Do: func(c *Conn) error {
			_, err := c.Write(b)
			c.Ends()
			return err
		}})
		if cut > wire.HeaderSize {
			add("a hello whose body is cut", "refused/"+map[bool]string{false: "malformed", true: "magic"}[cut < 12],
				frame(wire.KindHello, b[wire.HeaderSize:]))
		}
	}
	add("a hello with a tail", "refused/malformed", frame(wire.KindHello, append(good[wire.HeaderSize:], 0)))
	long := slices.Clone(good[wire.HeaderSize:])
	long[43-wire.HeaderSize] = 255 // the length of the name
	add("a length beyond the end", "refused/malformed", frame(wire.KindHello, long))
	for reason, h := range map[string]Hello{
		"magic": {Magic: "HTTP"}, "wire-version": {Newest: wire.Version + 1, Oldest: wire.Version + 1},
		"cluster-name": {Name: "other"},
		"cluster-id":   {Cluster: t.Cluster + 1}, "incarnation": {To: peer.ID{Addr: t.Node.Addr, Inc: t.Node.Inc + 1}},
		"self": {From: t.Node}, "setting": {Lane: wire.LaneData, Window: 1 << 31}, "malformed": {Lane: 3},
	} {
		add("a hello: "+reason, "refused/"+reason, h.Append(nil, t))
	}
	add("the highest generation", "refused/malformed", Hello{Generation: 1<<32 - 1}.Append(nil, t))
	add("connection 16", "refused/malformed", Hello{Lane: wire.LaneData, Number: 16}.Append(nil, t))
	slices.SortStableFunc(list, func(a, b Attack) int { return bytes.Compare([]byte(a.Name), []byte(b.Name)) })
	return append(list, t.slow(good)...)
}

// slow are the attacks that take their time.
func (t *Target) slow(good []byte) []Attack {
	nothing := "silent"
	if t.TLS != nil {
		nothing = "hello" // the handshake has been heard
	}
	silent := func(b []byte) func(*Conn) error {
		return func(c *Conn) error { _, err := c.Write(b); return err }
	}
	return []Attack{
		{Name: "silence", Counts: nothing, Closes: true, Slow: true, Do: silent(nil)},
		{Name: "half a hello, then silence", Counts: "hello", Closes: true, Slow: true, Do: silent(good[:len(good)/2])},
		{Name: "a hello that drips", Counts: "hello", Closes: true, Slow: true, Do: func(c *Conn) error {
			for i := range len(good) - 1 { // the last byte never comes, however fast the others do
				if _, err := c.Write(good[i : i+1]); err != nil {
					return nil
				}
				time.Sleep(100 * time.Millisecond)
			}
			return nil
		}},
	}
}
