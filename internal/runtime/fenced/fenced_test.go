// Three replicas in one process, on a network that loses and doubles: the laws of stores, and durable entities.

package fenced

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/durable"
	"github.com/kith-io/kith/internal/core/quorum"
	"github.com/kith-io/kith/internal/core/quorum/records"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/store"
	"github.com/kith-io/kith/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, goleak.IgnoreCurrent()) }

// process is a node and its goroutine. What is done between two turns waits in the list between.
type process struct {
	*Node
	begin time.Time
	bell  chan struct{}
	end   chan struct{}
	over  chan struct{}

	mu      sync.Mutex
	between []func(now time.Duration)
}

func (p *process) rouse() {
	select {
	case p.bell <- struct{}{}:
	default:
	}
}

// do has f done by the goroutine of the process.
func (p *process) do(f func(now time.Duration)) {
	p.mu.Lock()
	p.between = append(p.between, f)
	p.mu.Unlock()
	p.rouse()
}

// wait is do, and waits for it.
func (p *process) wait(f func(now time.Duration)) {
	done := make(chan struct{})
	p.do(func(now time.Duration) {
		defer close(done)
		f(now)
	})
	<-done
}

func (p *process) run() {
	defer close(p.over)
	defer p.End()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		p.mu.Lock()
		between := p.between
		p.between = nil
		p.mu.Unlock()
		now := time.Since(p.begin)
		for _, f := range between {
			f(now)
		}
		timer.Reset(p.Turn(now))
		select {
		case <-p.end:
			return
		case <-p.bell:
		case <-timer.C:
		}
	}
}

// cluster is some replicas in one process. It is the network between them.
type cluster struct {
	mu    sync.Mutex
	rng   *rand.Rand
	lossy bool
	disks []*quorum.MemoryEngine
	nodes []*process
	opens atomic.Uint64
}

// begin starts replicas and founds the store on them.
func begin(t *testing.T, n int, lossy bool) *cluster {
	c := &cluster{rng: rand.New(rand.NewPCG(1, 2)), lossy: lossy}
	for range n {
		c.disks = append(c.disks, quorum.Memory())
		c.nodes = append(c.nodes, nil)
	}
	var all peer.Set
	for i := range n {
		c.start(t, i)
		all.Add(c.node(i).ID())
	}
	c.tell()
	var err error
	c.node(0).wait(func(now time.Duration) {
		err = c.node(0).Found(now, records.FoundCommand{Groups: []peer.Set{all}})
	})
	require.NoError(t, err)
	t.Cleanup(func() {
		for i := range n {
			c.stop(i)
		}
	})
	for i := range n {
		require.Eventually(t, func() (is bool) {
			c.node(i).wait(func(time.Duration) { is = c.node(i).Founded() })
			return is
		}, 2*time.Minute, time.Millisecond)
	}
	return c
}

func (c *cluster) node(i int) *process {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.nodes[i]
}

// carrier is the network as one node has it.
type carrier struct {
	c    *cluster
	from peer.ID
}

// Send implements Carrier.
func (x *carrier) Send(to peer.ID, body []byte) {
	c := x.c
	c.mu.Lock()
	times := 1
	if c.lossy {
		switch c.rng.IntN(50) {
		case 0:
			times = 0
		case 1:
			times = 2
		}
	}
	var at *process
	for _, n := range c.nodes {
		if n != nil && n.ID() == to {
			at = n
		}
	}
	c.mu.Unlock()
	for range times {
		if at != nil {
			own := bytes.Clone(body)
			at.do(func(now time.Duration) { at.Handle(now, x.from, own) })
		}
	}
}

// start begins the process of a replica on its disk.
func (c *cluster) start(t *testing.T, i int) {
	self := peer.ID{Addr: peer.MustAddr(fmt.Sprintf("10.0.0.%d:7000", i+1)), Inc: uint64(i) + 1}
	p := &process{begin: time.Now(), bell: make(chan struct{}, 1), end: make(chan struct{}), over: make(chan struct{})}
	var err error
	p.Node, err = Open(Config{Records: records.Config{Again: 10 * time.Millisecond, Timeout: 5 * time.Second}, Name: "c/s",
		Self: self, Disk: c.disks[i], Carrier: &carrier{c, self}, Rouse: p.rouse})
	require.NoError(t, err)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nodes[i] = p
	go p.run()
}

// stop ends it.
func (c *cluster) stop(i int) {
	n := c.node(i)
	if n == nil {
		return
	}
	close(n.end)
	<-n.over
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nodes[i] = nil
}

// tell gives all that run the members.
func (c *cluster) tell() {
	var all, up peer.Set
	for i := range c.nodes {
		id := peer.ID{Addr: peer.MustAddr(fmt.Sprintf("10.0.0.%d:7000", i+1)), Inc: uint64(i) + 1}
		all.Add(id)
		if c.node(i) != nil {
			up.Add(id)
		}
	}
	for i := range c.nodes {
		if n := c.node(i); n != nil {
			n.wait(func(now time.Duration) { n.Members(now, all, up) })
		}
	}
}

// again ends all processes, as a loss of power does, and starts them on their disks.
func (c *cluster) again(t *testing.T) {
	for i := range c.nodes {
		c.stop(i)
	}
	for i := range c.nodes {
		c.start(t, i)
	}
	c.tell()
}

// engine is what the suite tests: each store that it opens is that of the next node.
func (c *cluster) engine() storetest.Engine {
	return storetest.Engine{
		Open: func(*testing.T) store.Store {
			return c.node(int(c.opens.Add(1)) % len(c.nodes)).Store()
		},
		Again: c.again,
	}
}

// TestStore: fenced records on three disks keep the contract of package store (DYN-1).
func TestStore(t *testing.T) {
	storetest.Run(t, begin(t, 3, false).engine())
}

// TestStoreOverABadNetwork: also where messages are lost and doubled (DYN-1).
func TestStoreOverABadNetwork(t *testing.T) {
	storetest.Run(t, begin(t, 3, true).engine())
}

// TestMinority: a majority serves, and what a minority is asked is not known; when it is back, it is served (DYN-1).
func TestMinority(t *testing.T) {
	c := begin(t, 3, false)
	ctx := t.Context()
	sh, f := store.Shard{Type: "t", N: 1}, route.MakeFence(1, 1, 1)
	st := c.node(0).Store()
	_, err := st.Claim(ctx, sh, f)
	require.NoError(t, err)
	c.stop(1)
	require.NoError(t, st.Commit(ctx, sh, f, storetest.Put("a", 1, "1")))
	c.stop(2)
	short, cancel := context.WithCancel(ctx)
	w := storetest.Put("a", 2, "2")
	answer := make(chan error, 1)
	go func() { answer <- st.Commit(short, sh, f, w) }()
	require.Eventually(t, func() bool { return c.node(0).Stats().Requests == 1 }, time.Minute,
		time.Millisecond)
	cancel()
	require.ErrorIs(t, <-answer, store.ErrUnknown)
	c.start(t, 1)
	c.tell()
	for err = st.Commit(ctx, sh, f, w); err != nil; err = st.Commit(ctx, sh, f, w) {
		require.ErrorIs(t, err, store.ErrUnknown)
	}
	list, err := c.node(1).Store().Load(ctx, sh, f, "a")
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.Equal(t, uint64(2), list[0].Version)
}

type purse struct{ Coins int64 }

// TestDurable: durable entities on three replicas and a bad network: what was answered is there for the next node, also
// where a replica was away and where power failed everywhere, and a key has its effect once (DYN-1).
func TestDurable(t *testing.T) {
	c := begin(t, 3, true)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	open := func(replica int) (*kith.Node, *durable.Entities[int64, int64]) {
		node, err := kith.Start(ctx, kith.Config{})
		require.NoError(t, err)
		e, err := durable.Register(node, durable.Type[purse, int64, int64]{Name: "purse",
			Store: c.node(replica).Store(), Shards: 4,
			Handle: func(tx *durable.Tx[purse], add *int64) (int64, error) {
				tx.State.Coins += *add
				return tx.State.Coins, nil
			}})
		require.NoError(t, err)
		require.NoError(t, node.Ready(ctx))
		return node, e
	}
	once := func(e *durable.Entities[int64, int64], key string, want int64) {
		five := int64(5)
		for {
			got, err := e.AskOnce(ctx, key, "anna", &five)
			if err != nil && ctx.Err() == nil { // the key makes it safe to ask again
				continue
			}
			require.NoError(t, err)
			require.Equal(t, want, got)
			return
		}
	}
	node, e := open(0)
	once(e, "first", 5)
	c.stop(2)
	c.tell()
	once(e, "second", 10)
	once(e, "first", 5)
	require.NoError(t, node.Close())
	c.again(t)
	node, e = open(2) // the replica that was away is the owner's own
	once(e, "second", 10)
	once(e, "third", 15)
	require.NoError(t, node.Close())
}
