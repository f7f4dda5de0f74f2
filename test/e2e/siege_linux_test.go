// A cluster under siege: silent connections from many addresses at the doors of all nodes keep nobody out. Linux: its
// loopback has the addresses.

package e2e_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/internal/base/pki"
	"github.com/kith-io/kith/internal/base/port"
)

// relay passes bytes on to a node, until it is cut.
type relay struct {
	net.Listener
	to    string
	mu    sync.Mutex
	conns []net.Conn
	wait  sync.WaitGroup
}

func newRelay(t *testing.T, to string) *relay {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	r := &relay{Listener: ln, to: to}
	r.wait.Go(func() {
		for {
			in, err := ln.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", r.to)
			if err != nil {
				_ = in.Close()
				continue
			}
			r.mu.Lock()
			r.conns = append(r.conns, in, out)
			r.mu.Unlock()
			for _, pair := range [][2]net.Conn{{in, out}, {out, in}} {
				r.wait.Go(func() {
					_, _ = io.Copy(pair[0], pair[1])
					_ = pair[0].(*net.TCPConn).CloseWrite()
				})
			}
		}
	})
	t.Cleanup(func() {
		_ = ln.Close()
		r.cut()
		r.wait.Wait()
	})
	return r
}

// cut resets all connections.
func (r *relay) cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, nc := range r.conns {
		_ = nc.(*net.TCPConn).SetLinger(0)
		_ = nc.Close()
	}
	r.conns = nil
}

// besiegers keeps n silent connections to an address, from sixteen addresses, of which the first is where the nodes
// are; a connection that is put out comes again.
func besiegers(t *testing.T, to string, n int) {
	ctx, cancel := context.WithCancel(context.Background())
	var wait sync.WaitGroup
	for i := range n {
		dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(1+i%16))}}
		wait.Go(func() {
			for ctx.Err() == nil {
				if nc, err := dialer.DialContext(ctx, "tcp", to); err == nil {
					stop := context.AfterFunc(ctx, func() { _ = nc.Close() })
					_, _ = nc.Read(make([]byte, 1))
					stop()
					_ = nc.Close()
				}
				select {
				case <-ctx.Done():
				case <-time.After(2 * time.Second):
				}
			}
		})
	}
	t.Cleanup(func() {
		cancel()
		wait.Wait()
	})
}

// While silent connections fill the doors of all nodes, a node joins, every connection to another one breaks, and all
// certificates are renewed; two nodes that talk all the time lose nothing, and nobody is ever taken for unreachable
// (SEC-1). KITH_SILENT is how many connections there are at each node: 500 if not set.
func TestSiege(t *testing.T) {
	silent := 500
	if s := os.Getenv("KITH_SILENT"); s != "" {
		var err error
		silent, err = strconv.Atoi(s)
		require.NoError(t, err)
	}
	ca, err := pki.NewCA("test", time.Hour)
	require.NoError(t, err)
	var current [4]atomic.Pointer[kith.Credentials]
	renew := func(i int) {
		c := issuedTo(t, ca, "test", fmt.Sprintf("n%d", i))
		current[i].Store(&c)
	}
	at := port.Keep(t)
	gate := newRelay(t, at)
	b := &besieged{book: newLedger(), stop: make(chan struct{})}
	prepare := func(i int, cfg *kith.Config) {
		renew(i)
		cfg.TLS.Load = func() (kith.Credentials, error) { return *current[i].Load(), nil }
		cfg.Membership, cfg.Sharding.TakeoverTime = quick(), 20*time.Minute
		cfg.Membership.AcceptablePause = 5 * time.Second // what the machine does to all of them is not looked for
		if i == 0 {
			cfg.Listen, cfg.Advertise = at, gate.Addr().String()
		}
		if i == 1 || i == 2 {
			cfg.Roles = []string{"pair"}
		}
		cfg.Undelivered = func(u kith.Undelivered) { b.fault("undelivered: %+v", u) }
	}
	regions := make([]*kith.Region, 3)
	b.nodes = cluster(t, 3, prepare, func(i int, n *kith.Node) {
		typ := echoType("echo", kith.Worker, b.book, func() *kith.Node { return n })
		typ.Role = "pair"
		var err error
		regions[i], err = n.Register(typ)
		require.NoError(t, err)
	})
	for e := range 16 {
		for _, r := range regions[1:] {
			_, err := r.Ask(within(t), fmt.Sprintf("e%d", e), nil)
			require.NoError(t, err)
		}
	}
	besiegers(t, at, silent)
	for _, n := range b.nodes[1:] {
		besiegers(t, n.Addr().String(), silent)
	}
	for _, n := range b.nodes {
		eventually(t, func() bool {
			s := n.Stats().Transport
			return s.Pending >= 200 && s.OverLimit > 0
		}, "the door is full: %d", n.Stats().Transport.Pending)
	}
	b.converse(t, regions)
	b.join(t, prepare)
	b.breakLinks(t, gate)
	for i, n := range b.nodes {
		renew(i)
		s := n.Stats().Transport
		require.NoError(t, n.ReloadTLS())
		want := s.TLSRenewed + uint64(s.Control.Out+s.Data.Out)
		eventually(t, func() bool { return n.Stats().Transport.TLSRenewed >= want }, "node %d renews", i)
	}
	close(b.stop)
	b.senders.Wait()
	b.book.await(t, b.sent[0]+b.sent[1])
	b.cancel()
	b.events.Wait()
	require.Empty(t, b.faults)
	for i, n := range b.nodes {
		s := n.Stats().Transport
		t.Logf("node %d: %d at the door, %d put out, %d silent, %d dials failed, %d lost", i, s.Pending, s.PutOut, s.Silent,
			s.DialsFailed, s.LostBytes)
		require.Zero(t, s.LostBytes)
		require.Less(t, s.DialsFailed, uint64(4), "nobody is kept out")
		require.Empty(t, n.View().Unreachable)
		require.Equal(t, 4, n.View().CountUp())
	}
	t.Logf("%d messages, every eighth of them an ask too; none lost", b.sent[0]+b.sent[1])
}

// converse makes both of the pair tell and ask all the time, and watches the events of all nodes.
func (b *besieged) converse(t *testing.T, regions []*kith.Region) {
	ctx := b.watch(t)
	for i, r := range regions[1:] {
		b.chat(ctx, i, r)
	}
}

// join makes a node join.
func (b *besieged) join(t *testing.T, prepare func(i int, cfg *kith.Config)) {
	cfg := kith.Config{Seeds: []string{b.nodes[0].Addr().String()}}
	prepare(3, &cfg)
	began := time.Now()
	n := start(t, logger(t), cfg)
	awaitView(t, n, func(v *kith.View) bool { return v.CountUp() == 4 })
	t.Logf("a node joined in %v", time.Since(began).Round(time.Millisecond))
	b.nodes = append(b.nodes, n)
	for _, n := range b.nodes {
		awaitView(t, n, func(v *kith.View) bool { return v.CountUp() == 4 })
	}
}

// breakLinks breaks every connection to the first node.
func (b *besieged) breakLinks(t *testing.T, gate *relay) {
	began := time.Now()
	before := beats(b.nodes[1], b.nodes[0].ID())
	gate.cut()
	eventually(t, func() bool { return beats(b.nodes[1], b.nodes[0].ID()) > before+2 }, "heartbeats come again")
	t.Logf("heartbeats came again in %v", time.Since(began).Round(time.Millisecond))
}
