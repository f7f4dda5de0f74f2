// Kit: real nodes with a fake table, which each node sees a little later than the others.

package partition

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/internal/base/port"
	table "github.com/kith-io/kith/internal/core/partition"
	"github.com/kith-io/kith/internal/runtime/driver"
	"github.com/kith-io/kith/internal/runtime/footing"
)

func TestMain(m *testing.M) {
	maxNodes, gaugeEvery = 64, 300*time.Millisecond
	goleak.VerifyTestMain(m, goleak.IgnoreCurrent())
}

func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// world is a table that nodes see, with a leader that plans once all have seen it.
type world struct {
	mu    sync.Mutex
	t     table.Table
	doors []*fakeDoor
	over  bool
}

type fakeDoor struct {
	w    *world
	node *kith.Node
	sees table.Table
	gone bool
}

// changes replaces the table, of which the nodes learn in any order.
func (w *world) changes(f func(t table.Table) (table.Table, error)) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	next, err := f(w.t)
	if err != nil {
		return err
	}
	w.t = next
	w.spread()
	return nil
}

func (w *world) spread() {
	for _, d := range w.doors {
		t := w.t
		if table.Equal(d.sees, t) {
			continue
		}
		time.AfterFunc(time.Duration(rand.IntN(20))*time.Millisecond, func() {
			w.mu.Lock()
			d.sees = table.Merge(d.sees, t)
			w.plan()
			w.mu.Unlock()
			d.ping()
		})
	}
	w.plan()
}

func (w *world) plan() {
	for _, d := range w.doors {
		if !d.gone && !table.Equal(d.sees, w.t) || w.over {
			return
		}
	}
	for _, d := range w.doors {
		if d.gone || d.node.Err() != nil {
			continue
		}
		v := d.node.View()
		if next := w.t.Plan(v.Members, 1, nil); !table.Equal(next, w.t) {
			w.t = next
			w.spread()
		}
		return
	}
}

func (d *fakeDoor) Table() []State {
	d.w.mu.Lock()
	defer d.w.mu.Unlock()
	return d.sees.Live()
}

// ping makes the hub of the node look.
func (d *fakeDoor) ping() {
	o := hubs.opening(driver.Of(d.node))
	if o.once.Do(func() {}); o.hub != nil { // it waits for the one that makes the hub
		o.hub.ping()
	}
}

func (d *fakeDoor) Define(_ context.Context, is Definition) error {
	return d.w.changes(func(t table.Table) (table.Table, error) { return t.Define(is, d.node.ID()) })
}
func (d *fakeDoor) Undefine(_ context.Context, path string) error {
	return d.w.changes(func(t table.Table) (table.Table, error) { return t.Undefine(path, d.node.ID()) })
}
func (d *fakeDoor) Move(_ context.Context, path string, slot int, to kith.ID) error {
	return d.w.changes(func(t table.Table) (table.Table, error) { return t.Move(path, slot, to, d.node.ID()) })
}
func (d *fakeDoor) Complete(_ context.Context, c Change) error {
	return d.w.changes(func(t table.Table) (table.Table, error) { return t.Complete(c), nil })
}

// door gives a node its own.
func (w *world) door() func(footing.Node) door {
	return func(on footing.Node) door {
		n := on.(*realNode).node
		d := &fakeDoor{w: w, node: n}
		w.mu.Lock()
		d.sees = w.t
		w.doors = append(w.doors, d)
		w.mu.Unlock()
		go func() {
			ctx, end := context.WithCancel(context.Background())
			defer end()
			for range n.Events(ctx) {
				w.mu.Lock()
				w.plan()
				w.mu.Unlock()
			}
			w.mu.Lock()
			d.gone = true
			w.plan()
			w.mu.Unlock()
		}()
		return d
	}
}

// begin starts a node that joins the others.
func begin(t *testing.T, cfg kith.Config, others ...*kith.Node) *kith.Node {
	t.Helper()
	cfg.Name, cfg.Listen = "partitions", port.Keep(t)
	cfg.Resolver.Strategy = kith.ResolverOff
	cfg.Sharding.TakeoverTime = 3 * time.Second
	cfg.Membership = kith.MembershipConfig{GossipInterval: 100 * time.Millisecond, LeaderInterval: 50 * time.Millisecond,
		ProbeInterval: 100 * time.Millisecond, SeedTimeout: 2 * time.Second}
	for _, o := range others {
		cfg.Seeds = append(cfg.Seeds, o.Addr().String())
	}
	n, err := kith.Start(within(t), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { _ = n.Close() })
	require.NoError(t, n.Ready(within(t)))
	return n
}

// book is what instances have done, and what came back.
type book struct {
	mu     sync.Mutex
	got    map[string]int
	last   map[[2]byte]uint32 // by sender and slot
	fault  error
	order  int // messages that came behind a later one of their sender
	alive  map[int]int
	most   int // instances of one slot at a time
	back   map[string]error
	states []uint32
	fences []kith.Fence
}

func newBook() *book {
	return &book{got: map[string]int{}, last: map[[2]byte]uint32{}, alive: map[int]int{}, back: map[string]error{}}
}

func numbered(who byte, n uint32) []byte { return binary.LittleEndian.AppendUint32([]byte{who}, n) }

// refused notes a message that came back.
func (b *book) refused(r Refused) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.back[string(r.Payload)] != nil {
		b.fault = errors.Join(b.fault, fmt.Errorf("%x came back twice", r.Payload))
	}
	b.back[string(r.Payload)] = r.Err
}

// instance is a handler that counts its messages and hands the count over.
type counting struct {
	b     *book
	slot  int
	fence kith.Fence
	count uint32
}

func (b *book) made(slot int, f kith.Fence) kith.Handler {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.alive[slot]++
	b.most = max(b.most, b.alive[slot])
	b.fences = append(b.fences, f)
	return &counting{b: b, slot: slot, fence: f}
}

func (h *counting) Receive(c *kith.Context, payload []byte) error {
	h.count++
	h.b.mu.Lock()
	defer h.b.mu.Unlock()
	h.b.got[string(payload)]++
	from, n := [2]byte{payload[0], byte(h.slot)}, binary.LittleEndian.Uint32(payload[1:])
	if n <= h.b.last[from] {
		h.b.order++
	}
	h.b.last[from] = max(n, h.b.last[from])
	if c.ID != fmt.Sprint(h.slot) || c.Fence != h.fence {
		h.b.fault = errors.Join(h.b.fault, fmt.Errorf("its id is %q, its fence %v", c.ID, c.Fence))
	}
	if c.Asked() {
		return c.Reply(fmt.Appendf(nil, "%d", h.slot))
	}
	return nil
}

func (h *counting) Stop(*kith.Context) {
	h.b.mu.Lock()
	defer h.b.mu.Unlock()
	h.b.alive[h.slot]--
}

func (h *counting) HandOver(*kith.Context) ([]byte, error) {
	return binary.LittleEndian.AppendUint32(nil, h.count), nil
}

func (h *counting) TakeUp(_ *kith.Context, state []byte) error {
	h.count = binary.LittleEndian.Uint32(state)
	h.b.mu.Lock()
	defer h.b.mu.Unlock()
	h.b.states = append(h.b.states, h.count)
	return nil
}

// sums returns how many messages were handled, and how many came back.
func (b *book) sums() (got, back int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.got), len(b.back)
}

// same demands that each message was handled once or came back, and not both.
func (b *book) same(t *testing.T, sent int) {
	t.Helper()
	require.Eventually(t, func() bool { got, back := b.sums(); return got+back >= sent }, 20*time.Second, time.Millisecond,
		"sent %d", sent)
	b.mu.Lock()
	defer b.mu.Unlock()
	require.NoError(t, b.fault)
	require.Equal(t, sent, len(b.got)+len(b.back))
	for m, n := range b.got {
		require.Equal(t, 1, n, "%x was handled %d times", m, n)
		require.NoError(t, b.back[m])
	}
}

// opened is a cluster of nodes that have opened a partition.
type opened struct {
	w     *world // nil: the nodes have the table of their cluster
	b     *book
	nodes []*kith.Node
	parts []*Partition
}

func (o *opened) add(t *testing.T, cfg Config) {
	t.Helper()
	n := begin(t, kith.Config{}, o.nodes...)
	o.nodes = append(o.nodes, n)
	if cfg.New == nil {
		cfg.New, cfg.Refused = o.b.made, o.b.refused
	}
	of := doorOf
	if o.w != nil {
		of = o.w.door()
	}
	p, err := open(n, cfg, of)
	require.NoError(t, err)
	o.parts = append(o.parts, p)
}

// opens starts nodes that open a partition, with a fake table.
func opens(t *testing.T, nodes int, cfg Config) *opened {
	w := &world{}
	t.Cleanup(func() { w.mu.Lock(); w.over = true; w.mu.Unlock() })
	return opensWith(t, w, nodes, cfg)
}

func opensWith(t *testing.T, w *world, nodes int, cfg Config) *opened {
	t.Helper()
	o := &opened{w: w, b: newBook()}
	for range nodes {
		o.add(t, cfg)
	}
	for _, p := range o.parts {
		require.NoError(t, p.Known(within(t)))
	}
	return o
}

// send sends from several nodes until end is called, which returns how many messages were accepted.
func (o *opened) send(from []int, send func(p *Partition, b []byte) error) (end func() int) {
	var over atomic.Bool
	var accepted atomic.Int64
	var senders sync.WaitGroup
	for _, i := range from {
		p := o.parts[i]
		senders.Go(func() {
			tick := time.NewTicker(time.Millisecond)
			defer tick.Stop()
			for n := uint32(1); !over.Load(); n++ {
				for send(p, numbered(byte(i), n)) != nil && !over.Load() {
					<-tick.C // not accepted: the same message again
				}
				accepted.Add(1)
				if n%10 == 0 {
					<-tick.C
				}
			}
		})
	}
	return func() int {
		over.Store(true)
		senders.Wait()
		return int(accepted.Load())
	}
}

// host returns which node hosts an instance, as a node sees it.
func (o *opened) host(p *Partition, slot int) int {
	s, _ := p.Table()
	return slices.IndexFunc(o.nodes, func(n *kith.Node) bool { return n.ID() == s.Instances[slot] })
}
