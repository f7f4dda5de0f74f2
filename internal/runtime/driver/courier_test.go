// Control messages on real sockets: connections that are cut again and again lose none and repeat none (FD-4).

package driver

import (
	"io"
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/base/port"
	"github.com/kith-io/kith/route"
)

// cutter stands before a node: a dialler reaches the node through it, until cut breaks all connections.
type cutter struct {
	ln    net.Listener
	to    string
	wait  sync.WaitGroup
	mu    sync.Mutex
	conns map[net.Conn]struct{}
	stuck chan struct{} // nil, or what bytes wait for
}

// freeze lets nothing through any more until the test ends, and breaks nothing.
func (c *cutter) freeze(t *testing.T) {
	stuck := make(chan struct{})
	c.mu.Lock()
	c.stuck = stuck
	c.mu.Unlock()
	t.Cleanup(func() { close(stuck) })
}

// Write waits while the way is frozen.
func (w way) Write(b []byte) (int, error) {
	w.c.mu.Lock()
	stuck := w.c.stuck
	w.c.mu.Unlock()
	if stuck != nil {
		<-stuck
	}
	return w.to.Write(b)
}

// way is one direction of a connection through a cutter.
type way struct {
	c  *cutter
	to net.Conn
}

func newCutter(t *testing.T, to string) *cutter {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	c := &cutter{ln: ln, to: to, conns: map[net.Conn]struct{}{}}
	c.wait.Add(1)
	go c.accept()
	t.Cleanup(func() {
		_ = ln.Close()
		c.cut()
		c.wait.Wait()
	})
	return c
}

func (c *cutter) accept() {
	defer c.wait.Done()
	for {
		in, err := c.ln.Accept()
		if err != nil {
			return
		}
		out, err := net.Dial("tcp", c.to)
		if err != nil {
			_ = in.Close()
			continue
		}
		c.wait.Add(2)
		go c.pipe(in, out)
		go c.pipe(out, in)
	}
}

func (c *cutter) pipe(from, to net.Conn) {
	defer c.wait.Done()
	c.mu.Lock()
	c.conns[from] = struct{}{}
	c.mu.Unlock()
	_, _ = io.Copy(way{c, to}, from)
	_, _ = from.Close(), to.Close()
	c.mu.Lock()
	delete(c.conns, from)
	c.mu.Unlock()
}

// cut breaks every connection that stands.
func (c *cutter) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for conn := range c.conns {
		_ = conn.Close()
	}
}

// Every connection is cut right after each question for a home. All homes are found, and each node has been delivered
// exactly as many control messages as the other one posted (FD-4).
func TestControlMessagesSurviveCutConnections(t *testing.T) {
	t.Parallel()
	var cutters []*cutter
	p := newPair(t, func(cfg *Config) {
		cfg.Listen = port.Keep(t)
		cutters = append(cutters, newCutter(t, cfg.Listen))
		cfg.Advertise = cutters[len(cutters)-1].ln.Addr().String()
	})
	for m, r := range p.at {
		for sh := range route.ShardID(2) {
			require.NoError(t, r.Tell(idOf(r.shards, sh), []byte(m.String())))
			for _, c := range cutters {
				c.cut()
			}
			opened(t, r, sh)
		}
	}
	eventually(t, func() bool {
		a, b := p.a.Stats().Courier, p.b.Stats().Courier
		return a.Outstanding+b.Outstanding == 0 && a.Delivered == b.Posted && b.Delivered == a.Posted
	})
	require.Positive(t, p.a.Stats().Courier.Posted)
	require.Zero(t, p.a.Stats().Courier.GaveUp+p.b.Stats().Courier.GaveUp)
	require.Zero(t, p.a.Stats().InvalidFrames+p.b.Stats().InvalidFrames)
}

// idOf returns an entity id of a shard.
func idOf(shards uint32, sh route.ShardID) string {
	for i := 0; ; i++ {
		if id := string(rune('a'+i%26)) + string(rune('a'+i/26)); route.ShardOf(id, shards) == sh {
			return id
		}
	}
}
