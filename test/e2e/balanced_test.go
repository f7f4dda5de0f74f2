// Tests of seeds that are one address of several nodes: a service of Kubernetes, a load balancer (JOIN-1).

package e2e_test

import (
	"io"
	"log/slog"
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/internal/base/port"
)

// balancer hands each connection that it takes to one of its backends: to the same one again for each of the first so
// many, and then to the others in turn.
type balancer struct {
	l     net.Listener
	conns sync.WaitGroup

	mu     sync.Mutex
	to     []string
	stays  int
	served int
}

func newBalancer(t *testing.T, stays int) *balancer {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	b := &balancer{l: l, stays: stays}
	b.conns.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			b.conns.Go(func() { b.serve(c) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		b.conns.Wait()
	})
	return b
}

// lead adds backends.
func (b *balancer) lead(to ...string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.to = append(b.to, to...)
}

// next returns the address that gets the next connection, "" when there is none.
func (b *balancer) next() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.to) == 0 {
		return ""
	}
	b.served++
	return b.to[max(0, b.served-b.stays)%len(b.to)]
}

func (b *balancer) taken() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.served
}

func (b *balancer) serve(c net.Conn) {
	defer c.Close()
	o, err := net.Dial("tcp", b.next())
	if err != nil {
		return
	}
	defer o.Close()
	go func() {
		_, _ = io.Copy(o, c)
		_ = o.(*net.TCPConn).CloseWrite()
	}()
	_, _ = io.Copy(c, o)
}

// A seed behind which several nodes stand is dialled anew while the one that answers is in no cluster: another one may
// be. The connection to it would stand for ever.
func TestSeedsBehindOneAddress(t *testing.T) {
	t.Parallel()
	l := logger(t)
	log := func(who string) *slog.Logger {
		return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug})).With("node", who)
	}
	b := newBalancer(t, 2) // to the one that waits itself, with its first connection and the next one
	seed := b.l.Addr().String()
	waits := start(t, l, kith.Config{Logger: log("waits"), Seeds: []string{port.Keep(t)}})
	b.lead(waits.Addr().String())
	joins := start(t, l, kith.Config{Logger: log("joins"), Seeds: []string{seed}})
	eventually(t, func() bool { return b.taken() > 0 }, "it asks")
	first := start(t, l, kith.Config{Logger: log("first")})
	require.NoError(t, first.Ready(within(t)))
	b.lead(first.Addr().String())
	require.NoError(t, joins.Ready(within(t)))
	require.Greater(t, b.taken(), 2)
	require.Equal(t, 1, l.Count("several nodes answer at a contact point"))
}
