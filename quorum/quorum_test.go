// Tests on real sockets: nodes of one process, their disks outlive them.

package quorum_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/internal/base/port"
	"github.com/kith-io/kith/quorum"
	"github.com/kith-io/kith/quorum/disk"
)

// cluster is a few nodes with a store on each.
type cluster struct {
	t      *testing.T
	ctx    context.Context
	store  quorum.Store
	addrs  []string
	disks  []disk.Engine
	nodes  []*kith.Node
	values []*quorum.Values
}

func newCluster(t *testing.T, s quorum.Store, n int) *cluster {
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Minute)
	t.Cleanup(cancel)
	s.Name, s.Round = "values", 100*time.Millisecond
	if s.Timeout == 0 {
		s.Timeout = 30 * time.Second // a busy machine
	}
	c := &cluster{t: t, ctx: ctx, store: s, nodes: make([]*kith.Node, n), values: make([]*quorum.Values, n)}
	for range n {
		c.addrs, c.disks = append(c.addrs, port.Keep(t)), append(c.disks, quorum.Memory())
	}
	for i := range n {
		c.start(i)
	}
	c.ready()
	return c
}

// start starts a node on its disk.
func (c *cluster) start(i int) {
	cfg := kith.Config{Name: "test", Listen: c.addrs[i], LeaveTimeout: 3 * time.Minute,
		Resolver: kith.Resolver{Strategy: kith.ResolverOff},
		Membership: kith.MembershipConfig{GossipInterval: 100 * time.Millisecond, LeaderInterval: 50 * time.Millisecond,
			ReaperInterval: 100 * time.Millisecond, HeartbeatInterval: 200 * time.Millisecond,
			ProbeInterval: 100 * time.Millisecond, SeedTimeout: 2 * time.Second, AcceptablePause: 2 * time.Second}}
	for j, a := range c.addrs {
		if j != i && c.nodes[j] != nil {
			cfg.Seeds = append(cfg.Seeds, a)
		}
	}
	n, err := kith.Start(c.ctx, cfg)
	require.NoError(c.t, err)
	c.t.Cleanup(func() { _ = n.Close() })
	s := c.store
	s.Engine = c.disks[i]
	v, err := quorum.Open(n, s)
	require.NoError(c.t, err)
	c.nodes[i], c.values[i] = n, v
}

// kill ends a node at once.
func (c *cluster) kill(i int) {
	require.NoError(c.t, c.nodes[i].Close())
	_, err := c.values[i].Get(c.ctx, []byte("k"))
	require.ErrorIs(c.t, err, quorum.ErrClosed)
	require.NoError(c.t, c.values[i].Close())
	c.nodes[i], c.values[i] = nil, nil
}

func (c *cluster) ready() {
	c.t.Helper()
	for i, v := range c.values {
		if v != nil {
			require.NoError(c.t, v.Ready(c.ctx), "node %d: %+v", i, v.Stats())
		}
	}
}

func (c *cluster) put(i int, key, data string, on quorum.Version) quorum.Reading {
	c.t.Helper()
	r, err := c.values[i].Put(c.ctx, []byte(key), []byte(data), on)
	require.NoError(c.t, err)
	return r
}

func (c *cluster) get(i int, key string) (list []string, on quorum.Version) {
	c.t.Helper()
	r, err := c.values[i].Get(c.ctx, []byte(key))
	require.NoError(c.t, err)
	for _, v := range r.Values {
		list = append(list, string(v))
	}
	return list, r.Version
}

// eventually waits for a condition.
func (c *cluster) eventually(what string, is func() bool) {
	c.t.Helper()
	require.Eventually(c.t, is, 4*time.Minute, 10*time.Millisecond, what)
}

// TestValues: writes, siblings, a resolver, deletions, bounds, on three nodes (DYN-1, DYN-2, DYN-4).
func TestValues(t *testing.T) {
	t.Parallel()
	c := newCluster(t, quorum.Store{MaxValue: 200 << 10}, 3)
	first := c.put(0, "k", "one", nil)
	got, on := c.get(1, "k")
	require.Equal(t, []string{"one"}, got)
	require.Equal(t, first.Version, on)
	c.put(1, "k", "two", on)
	c.put(2, "k", "three", on) // the second knows nothing of the first
	got, on = c.get(0, "k")
	require.ElementsMatch(t, []string{"two", "three"}, got)
	require.Positive(t, c.nodes[0].Stats().Values[0].Conflicted)
	c.put(0, "k", "four", on)
	got, on = c.get(2, "k")
	require.Equal(t, []string{"four"}, got)
	_, err := c.values[2].Delete(c.ctx, []byte("k"), on)
	require.NoError(t, err)
	got, on = c.get(1, "k")
	require.Empty(t, got)
	require.NotEmpty(t, on)

	long := string(make([]byte, 200<<10)) // travels in pieces
	c.put(0, "long", long, nil)
	got, _ = c.get(1, "long")
	require.Equal(t, []string{long}, got)
	_, err = c.values[0].Put(c.ctx, []byte("long"), []byte(long+"x"), nil)
	require.ErrorIs(t, err, quorum.ErrTooLarge)
	_, err = c.values[0].Put(c.ctx, []byte("k"), nil, quorum.Version("nonsense"))
	require.ErrorIs(t, err, quorum.ErrVersion)
	gone, cancel := context.WithCancel(c.ctx)
	cancel()
	_, err = c.values[0].Get(gone, []byte("k"))
	require.ErrorIs(t, err, context.Canceled)
	s := c.store
	s.Engine = quorum.Memory()
	_, err = quorum.Open(c.nodes[0], s)
	require.ErrorIs(t, err, quorum.ErrName)
	require.NoError(t, c.values[0].Close())
	_, err = c.values[0].Get(c.ctx, []byte("k"))
	require.ErrorIs(t, err, quorum.ErrClosed)
}

// TestResolve: the function of the store makes one value of several, and one that fails leaves them as they are.
func TestResolve(t *testing.T) {
	t.Parallel()
	no := errors.New("no")
	c := newCluster(t, quorum.Store{Resolve: func(key []byte, values [][]byte) ([]byte, error) {
		switch string(key) {
		case "fails":
			return nil, no
		case "panics":
			panic("no")
		}
		n := 0
		for _, v := range values {
			n = max(n, len(v))
			clear(v) // they are its own
		}
		return fmt.Append(nil, n), nil
	}}, 3)
	for _, key := range []string{"k", "fails", "panics"} {
		c.put(0, key, "a", nil)
		c.put(1, key, "bbb", nil)
	}
	got, on := c.get(2, "k")
	require.Equal(t, []string{"3"}, got)
	c.put(2, "k", got[0], on)
	got, _ = c.get(0, "k")
	require.Equal(t, []string{"3"}, got)
	for _, key := range []string{"fails", "panics"} {
		r, err := c.values[0].Get(c.ctx, []byte(key))
		require.ErrorContains(t, err, "no")
		require.ElementsMatch(t, [][]byte{[]byte("a"), []byte("bbb")}, r.Values)
	}
}

// TestKilledNodes: what W replicas acknowledged is read while nodes die, come back with their disks, and lose them;
// hints and comparisons bring a replica what it has missed (DYN-1, DYN-3, DYN-4).
func TestKilledNodes(t *testing.T) {
	t.Parallel()
	c := newCluster(t, quorum.Store{Mode: quorum.Register, Timeout: 2 * time.Second}, 5)
	wrote := map[string]string{}
	write := func(from int, round string) {
		for k := range 20 {
			key, data := fmt.Sprint("key", k), fmt.Sprint(round, k)
			c.eventually("a write", func() bool {
				_, err := c.values[from].Put(c.ctx, []byte(key), []byte(data), nil)
				return err == nil
			})
			wrote[key] = data
		}
	}
	reads := func(from int) {
		for key, data := range wrote {
			var got []string
			c.eventually("a read", func() bool {
				r, err := c.values[from].Get(c.ctx, []byte(key))
				got = nil
				for _, v := range r.Values {
					got = append(got, string(v))
				}
				return err == nil
			})
			require.Equal(t, []string{data}, got, key)
		}
	}
	write(0, "all")
	reads(4)
	c.kill(3)
	write(1, "four")
	reads(2)
	hinted := func() (n uint64) {
		for _, v := range c.values {
			if v != nil {
				n += uint64(v.Stats().Hints)
			}
		}
		return n
	}
	c.eventually("writes wait for the replica that is away", func() bool { return hinted() > 0 })
	c.start(3)
	c.ready()
	reads(3)
	c.eventually("they are brought", func() bool { return hinted() == 0 })

	for i := range c.nodes {
		c.kill(i)
	}
	for i := range c.nodes {
		c.start(i)
	}
	c.ready()
	reads(2)
	c.kill(1)
	c.disks[1] = quorum.Memory()
	c.start(1)
	c.ready()
	require.Positive(t, c.values[1].Stats().Exchanged)
	reads(1)
	write(1, "new")
	reads(0)
}

// TestTooFew: with fewer replicas than asked for a request fails, and says how many there were; a disk of another node
// is refused.
func TestTooFew(t *testing.T) {
	t.Parallel()
	c := newCluster(t, quorum.Store{W: 3, Timeout: time.Second}, 3)
	c.put(0, "k", "v", nil)
	c.kill(2)
	_, err := c.values[0].Put(c.ctx, []byte("k"), []byte("w"), nil)
	var few *quorum.TooFewError
	require.ErrorAs(t, err, &few)
	require.ErrorIs(t, err, quorum.ErrTooFew)
	require.Equal(t, 3, few.Need)
	require.Less(t, few.Have, 3)
	c.eventually("a read", func() bool {
		r, err := c.values[1].Get(c.ctx, []byte("k"))
		return err == nil && len(r.Values) > 0
	})

	c.kill(1)
	c.disks[1] = c.disks[2]
	s := c.store
	s.Engine = c.disks[2]
	n, err := kith.Start(c.ctx, kith.Config{Name: "test", Listen: port.Keep(t)})
	require.NoError(t, err)
	defer n.Close()
	_, err = quorum.Open(n, s)
	require.ErrorIs(t, err, quorum.ErrDisk)
	err = quorum.Store{N: 10, Founders: -1}.Validate()
	for _, text := range []string{"N is 10", "name", "Engine", "Founders is -1"} {
		require.ErrorContains(t, err, text)
	}
}

// TestManyCallers: requests beside each other share commits; over the bound they are refused, and none is forgotten.
func TestManyCallers(t *testing.T) {
	t.Parallel()
	c := newCluster(t, quorum.Store{MaxRequests: 8}, 3)
	var done sync.WaitGroup
	var mu sync.Mutex
	counts := map[bool]int{}
	for k := range 64 {
		done.Go(func() {
			_, err := c.values[k%3].Put(c.ctx, fmt.Append(nil, "key", k), []byte("v"), nil)
			mu.Lock()
			counts[err == nil]++
			mu.Unlock()
			if err != nil && !errors.Is(err, quorum.ErrBusy) && !errors.Is(err, quorum.ErrUnable) {
				t.Errorf("key %d: %v", k, err)
			}
		})
	}
	done.Wait()
	require.Equal(t, 64, counts[true]+counts[false])
	require.Positive(t, counts[true])
	c.eventually("no request is left", func() bool { return c.values[0].Stats().Requests == 0 })
}
