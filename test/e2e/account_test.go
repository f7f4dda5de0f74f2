// The account of a node that ends, in every way that a node can end, over real sockets: what it had accepted was
// handled somewhere, or it tells of it before Done closes (SHD-4, MEM-8).

package e2e_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/internal/base/port"
	"github.com/kith-io/kith/internal/core/hello"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

// paths are the ways between nodes that advertise gates: any of them can be shut, for what stands and what comes.
// What is on a way that is shut waits there, as on a network that is cut.
type paths struct {
	mu   sync.Mutex
	cond *sync.Cond
	shut map[[2]string]bool // from one address to another
	over bool
	open []net.Conn
	busy sync.WaitGroup
}

func newPaths(t *testing.T) *paths {
	g := &paths{shut: map[[2]string]bool{}}
	g.cond = sync.NewCond(&g.mu)
	t.Cleanup(func() {
		g.mu.Lock()
		g.over = true
		for _, c := range g.open {
			_ = c.Close()
		}
		g.cond.Broadcast()
		g.mu.Unlock()
		g.busy.Wait()
	})
	return g
}

// gate makes an address that leads to another one.
func (g *paths) gate(t *testing.T) (advertise, listen string) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = ln.Close() })
	advertise, listen = ln.Addr().String(), port.Keep(t)
	g.busy.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			if g.keep(c) {
				g.busy.Go(func() { g.serve(c, advertise, listen) })
			}
		}
	})
	return advertise, listen
}

// keep closes a connection at the end of the test; false when that is over.
func (g *paths) keep(c net.Conn) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.over {
		_ = c.Close()
		return false
	}
	g.open = append(g.open, c)
	return true
}

// serve learns the dialler from the hello, and carries both ways.
func (g *paths) serve(c net.Conn, to, listen string) {
	defer c.Close()
	head := make([]byte, wire.HeaderSize)
	if _, err := io.ReadFull(c, head); err != nil || wire.SizeOf(head) > hello.MaxFrame {
		return
	}
	frame := append(head, make([]byte, wire.SizeOf(head)-wire.HeaderSize)...)
	if _, err := io.ReadFull(c, frame[wire.HeaderSize:]); err != nil {
		return
	}
	h, err := hello.Parse(frame[wire.HeaderSize:], wire.Spoken())
	if err != nil {
		return
	}
	from := h.From.Addr.String()
	o, err := net.Dial("tcp", listen)
	if err != nil || !g.keep(o) {
		return
	}
	defer o.Close()
	if !g.passes(from, to) {
		return
	}
	if _, err := o.Write(frame); err != nil {
		return
	}
	var both sync.WaitGroup
	both.Go(func() { g.carry(c, o, from, to) })
	both.Go(func() { g.carry(o, c, to, from) })
	both.Wait()
}

// passes waits until the way is open; false when the test is over.
func (g *paths) passes(from, to string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.shut[[2]string{from, to}] && !g.over {
		g.cond.Wait()
	}
	return !g.over
}

// carry carries one direction; the end of one end is that of the other, once the way is open.
func (g *paths) carry(in, out net.Conn, from, to string) {
	b := make([]byte, 16<<10)
	for {
		n, err := in.Read(b)
		if !g.passes(from, to) {
			return
		}
		if _, bad := out.Write(b[:n]); bad != nil || err != nil {
			_ = out.(*net.TCPConn).CloseWrite()
			return
		}
	}
}

// set shuts or opens the way from some nodes to others.
func (g *paths) set(shut bool, from, to []*kith.Node) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, a := range from {
		for _, b := range to {
			g.shut[[2]string{a.Addr().String(), b.Addr().String()}] = shut
		}
	}
	g.cond.Broadcast()
}

// theAccount is what becomes of the tells of one node: the last one of the cluster, which is to end.
type theAccount struct {
	g       *paths
	nodes   []*kith.Node
	ender   *kith.Node
	rest    []*kith.Node
	senders sync.WaitGroup

	accepted, handled, told, inFlight, twice atomic.Int64

	mu   sync.Mutex
	seen map[uint64]bool
	why  map[string]uint64
}

func (a *theAccount) undelivered(u kith.Undelivered) {
	a.told.Add(int64(u.Count))
	if u.Reason == route.LostInFlight {
		a.inFlight.Add(int64(u.Count))
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.why[fmt.Sprint(u.Reason)] += u.Count
}

func (a *theAccount) handle(_ *kith.Context, b []byte) error {
	n := binary.LittleEndian.Uint64(b)
	a.mu.Lock()
	again := a.seen[n]
	a.seen[n] = true
	a.mu.Unlock()
	if again {
		a.twice.Add(1)
	}
	a.handled.Add(1)
	return nil
}

// newAccount starts a cluster of three behind gates, and the senders of the last one, which send until it has ended.
func newAccount(t *testing.T, edit func(i int, c *kith.Config)) *theAccount {
	a := &theAccount{g: newPaths(t), seen: map[uint64]bool{}, why: map[string]uint64{}}
	var regions []*kith.Region
	a.nodes = cluster(t, 3, func(i int, c *kith.Config) {
		c.Advertise, c.Listen = a.g.gate(t)
		c.Membership = quick()
		if i == 2 {
			c.Undelivered = a.undelivered
		}
		if edit != nil {
			edit(i, c)
		}
	}, func(_ int, n *kith.Node) {
		regions = regions[:0]
		for _, mode := range []kith.Mode{kith.Inline, kith.Worker, kith.Blocking} {
			r, err := n.Register(kith.EntityType{Name: mode.String(), Shards: 16, Mode: mode,
				New: func(string, kith.Fence) kith.Handler { return &actor{receive: a.handle} }})
			require.NoError(t, err)
			regions = append(regions, r)
		}
	})
	a.ender, a.rest = a.nodes[2], a.nodes[:2]
	var number atomic.Uint64
	for _, r := range regions {
		a.senders.Go(func() {
			pause := time.NewTicker(time.Millisecond)
			defer pause.Stop()
			for i := 0; ; i++ {
				if i%8 == 0 {
					select {
					case <-a.ender.Done():
						return
					case <-pause.C:
					}
				}
				b := binary.LittleEndian.AppendUint64(make([]byte, 0, 200), number.Add(1))
				if r.Tell(fmt.Sprint("e", i%64), b[:200]) == nil {
					a.accepted.Add(1)
				}
			}
		})
	}
	eventually(t, func() bool { return a.handled.Load() > 1000 }, "traffic")
	return a
}

// settled holds the law when the node has ended: nothing is missing, nothing is handled twice, and what was both
// reported and handled was in flight where nobody could say what became of it: exact says that there is none of it.
func (a *theAccount) settled(t *testing.T, exact bool) {
	<-a.ender.Done()
	a.senders.Wait()
	told := a.told.Load()
	a.mu.Lock()
	t.Logf("ended: %v; accepted %d, told %d: %v", a.ender.Err(), a.accepted.Load(), told, a.why)
	a.mu.Unlock()
	last := a.handled.Load()
	eventually(t, func() bool {
		was := last
		last = a.handled.Load()
		return last == was && a.accepted.Load() <= last+told
	}, "every message has an end: %d accepted, %d handled, %d told", a.accepted.Load(), a.handled.Load(), told)
	require.Zero(t, a.twice.Load())
	over := a.handled.Load() + told - a.accepted.Load()
	require.LessOrEqual(t, over, a.inFlight.Load(), "more than was in flight is handled and told")
	if exact {
		require.Zero(t, over, "handled and told")
	}
	require.Equal(t, told, a.told.Load(), "told after Done")
}

// ways are the ways in which a node can end. exact says that its paths are well, so that all is known of each message.
var ways = map[string]struct {
	exact bool
	edit  func(i int, c *kith.Config)
	end   func(t *testing.T, a *theAccount)
}{
	"leave": {true, nil, func(t *testing.T, a *theAccount) { leaves(t, a.ender) }},
	"drain and leave": {true, nil, func(t *testing.T, a *theAccount) {
		require.NoError(t, a.ender.Drain(within(t)))
		leaves(t, a.ender)
	}},
	"close": {true, nil, func(t *testing.T, a *theAccount) { closes(t, a.ender) }},
	"full shutdown": {true, nil, func(t *testing.T, a *theAccount) {
		require.NoError(t, a.ender.PrepareForFullShutdown(within(t)))
		leaves(t, a.ender)
	}},
	"downed by an operator": {true, nil, func(t *testing.T, a *theAccount) {
		require.NoError(t, a.nodes[0].Down(within(t), a.ender.Addr().String()))
	}},
	"downed in a cut": {false, decides, func(t *testing.T, a *theAccount) {
		a.g.set(true, a.rest, []*kith.Node{a.ender})
		a.g.set(true, []*kith.Node{a.ender}, a.rest)
	}},
	"nobody hears it": {false, decides, func(_ *testing.T, a *theAccount) {
		a.g.set(true, []*kith.Node{a.ender}, a.rest)
	}},
	"it hears nobody": {false, decides, func(_ *testing.T, a *theAccount) {
		a.g.set(true, a.rest, []*kith.Node{a.ender})
	}},
	"isolated": {false, func(_ int, c *kith.Config) { c.Membership.TombstoneRetention = 10 * time.Second },
		func(_ *testing.T, a *theAccount) {
			a.g.set(true, a.rest, []*kith.Node{a.ender})
			a.g.set(true, []*kith.Node{a.ender}, a.rest)
		}},
	"removed": {false, nil, func(t *testing.T, a *theAccount) {
		a.g.set(true, a.rest, []*kith.Node{a.ender})
		a.g.set(true, []*kith.Node{a.ender}, a.rest)
		require.NoError(t, a.nodes[0].Down(within(t), a.ender.Addr().String()))
		awaitView(t, a.nodes[0], func(v *kith.View) bool { return len(v.Members) == 2 })
		a.g.set(false, a.rest, []*kith.Node{a.ender})
		a.g.set(false, []*kith.Node{a.ender}, a.rest)
	}},
	"the lease is refused": {false, func(i int, c *kith.Config) {
		decides(i, c)
		c.Resolver.Strategy, c.Lease = kith.LeaseMajority, nobodysLease{}
	}, func(_ *testing.T, a *theAccount) {
		a.g.set(true, a.rest, []*kith.Node{a.ender})
		a.g.set(true, []*kith.Node{a.ender}, a.rest)
	}},
}

// decides makes the resolver decide soon.
func decides(_ int, c *kith.Config) {
	c.Resolver = kith.Resolver{Strategy: kith.KeepMajority, StableAfter: time.Second}
	c.Membership.AcceptablePause = time.Second
}

// leaves leaves; what is left behind is reported.
func leaves(t *testing.T, n *kith.Node) {
	if err := n.Leave(within(t)); err != nil {
		require.ErrorIs(t, err, kith.ErrAbandoned)
	}
}

// Whatever ends a node under load, each message that it had accepted is handled once, or its node tells of it.
func TestEveryEndAccountsForItsTells(t *testing.T) {
	t.Parallel()
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newAccount(t, way.edit)
			way.end(t, a)
			ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
			defer cancel()
			select {
			case <-a.ender.Done():
			case <-ctx.Done():
				require.Fail(t, "the node has not ended")
			}
			a.settled(t, way.exact)
		})
	}
}
