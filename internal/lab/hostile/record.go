// Recorder: a listener that a node takes for a peer and dials, to have something true that can be said again.

package hostile

import (
	"crypto/tls"
	"net"
	"sync"
	"time"

	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// Recorder keeps the versions of membership that a node sends to it.
type Recorder struct {
	target *Target
	self   peer.ID
	ln     net.Listener
	gossip chan []byte
	wait   sync.WaitGroup
	refuse bool

	mu    sync.Mutex
	conns []net.Conn
}

// Record listens on a loopback port.
func Record(t *Target) (*Recorder, error) { return record(t, false) }

// Refuse listens on a loopback port, and answers each hello there that its sender was removed.
func Refuse(t *Target) (*Recorder, error) { return record(t, true) }

func record(t *Target, refuse bool) (*Recorder, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &Recorder{target: t, ln: ln, gossip: make(chan []byte, 16), refuse: refuse}
	r.self = peer.ID{Addr: peer.MustAddr(ln.Addr().String()), Inc: Stranger().Inc}
	r.wait.Go(r.accept)
	return r, nil
}

// Close ends it.
func (r *Recorder) Close() {
	_ = r.ln.Close()
	r.mu.Lock()
	for _, nc := range r.conns {
		_ = nc.Close()
	}
	r.mu.Unlock()
	r.wait.Wait()
}

func (r *Recorder) accept() {
	for {
		nc, err := r.ln.Accept()
		if err != nil {
			return
		}
		if r.target.TLS != nil {
			cfg := r.target.TLS.Clone()
			cfg.ClientAuth = tls.RequestClientCert
			nc = tls.Server(nc, cfg)
		}
		r.mu.Lock()
		r.conns = append(r.conns, nc)
		r.mu.Unlock()
		r.wait.Go(func() { r.read(nc) })
	}
}

func (r *Recorder) read(nc net.Conn) {
	if kind, _, err := readFrame(nc); err != nil || kind != wire.KindHello {
		return
	}
	if r.refuse {
		body := wire.AppendU8(nil, 9) // removed
		for _, s := range []string{"member", r.target.Node.String(), "removed: 100 up, lowest 127.0.0.1:1"} {
			body = wire.AppendString(body, s)
		}
		_, _ = nc.Write(wire.AppendFrame(nil, wire.KindHelloRefuse, 0, 0, body))
		return
	}
	ack := wire.AppendU64(wire.AppendU64(peer.AppendID(nil, r.self), r.target.Cluster), 0)
	ack = wire.AppendString(wire.AppendU16(ack, wire.Version), "")
	if _, err := nc.Write(wire.AppendFrame(nil, wire.KindHelloAck, 0, 0, ack)); err != nil {
		return
	}
	for {
		kind, body, err := readFrame(nc)
		if err != nil {
			return
		}
		if kind == wire.KindGossip {
			select {
			case r.gossip <- body:
			default:
			}
		}
	}
}

// Version asks the node for its version and returns the body that it sent: 16 bytes of its receiver and the cluster,
// then the version. It is nil when none came.
func (r *Recorder) Version() []byte {
	c, err := r.target.Dial()
	if err != nil {
		return nil
	}
	defer c.Close()
	if c.Greet(Hello{From: r.self, Cluster: r.target.Cluster}) != nil {
		return nil
	}
	want := append(r.target.envelope(), make([]byte, 8)...) // of one that holds nothing
	want = append(want, 1, 0)                               // the state is wanted; no clock
	if _, err := c.Write(wire.AppendFrame(nil, wire.KindVersion, 0, 0, want)); err != nil {
		return nil
	}
	select {
	case body := <-r.gossip:
		return body
	case <-time.After(Patience):
		return nil
	}
}

// Lure is an attack: it has the node dial the recorder.
func (r *Recorder) Lure(counts string) Attack {
	return inside("a refusal by a nobody", counts, false, Hello{From: r.self, Cluster: r.target.Cluster},
		frame(wire.KindJoinProbe, wire.AppendU64(nil, 1)))
}

// envelope is what gossip for the target begins with.
func (t *Target) envelope() []byte { return wire.AppendU64(wire.AppendU64(nil, t.Node.Inc), t.Cluster) }
