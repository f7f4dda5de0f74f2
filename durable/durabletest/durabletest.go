// Kits: durable types in a simulated cluster, with what every node has of them.

// Package durabletest runs durable entities in a simulated cluster (package sim): the code that runs on real nodes, on
// coroutines and virtual time, over a store with calls and answers that are late, get lost, and come again. Seeds
// decide all of it: docs/durable.md.
package durabletest

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/durable"
	"github.com/kith-io/kith/internal/sim/virtual"
	"github.com/kith-io/kith/internal/sim/world"
	"github.com/kith-io/kith/sim"
)

// Kit brings durable types into a simulated cluster. As that, it is for one goroutine, the test's.
type Kit struct {
	c     *sim.Cluster
	w     *world.World
	rand  *rand.Rand
	store *Store
	nodes map[*world.Process]*node
	types []func(*node)
}

const purpose = 0xd0ab1e // of what is drawn here

// New returns a kit for a cluster, with an empty store. The seed decides what is left to chance beside the cluster's
// own: what becomes of calls of the store, and rests.
func New(c *sim.Cluster, seed uint64) *Kit {
	k := &Kit{c: c, w: c.World().(*world.World), nodes: map[*world.Process]*node{}}
	k.rand = rand.New(rand.NewPCG(seed, purpose))
	k.store = newStore(k)
	return k
}

// Store returns the store of the cluster.
func (k *Kit) Store() *Store { return k.store }

// Within returns a context that ends when d of virtual time has passed, for asks of a test.
func (k *Kit) Within(d time.Duration) context.Context {
	return &virtual.Timed{Context: context.Background(), World: k.w, At: k.w.Now + d}
}

// node returns what a process has of the durable types.
func (k *Kit) node(p *world.Process) *node {
	n := k.nodes[p]
	if n == nil {
		n = &node{Ground: virtual.On(p, k.rand), kit: k, p: p}
		k.nodes[p] = n
		for _, open := range k.types {
			open(n)
		}
	}
	return n
}

// Set is a durable type on all nodes of a simulated cluster.
type Set[M, R any] struct {
	k  *Kit
	of map[*node]opened[M, R]
}

// opened is the type on one of them.
type opened[M, R any] struct {
	e *durable.Entities[M, R]
	t kith.EntityType
}

// Register makes a durable type known on all nodes of the cluster, also on those that are restarted later. t.Store may
// be nil: the kit's is taken. Another one, and what the handlers call, must not wait by anything but virtual time.
// Errors are those of durable.Register for what is wrong with t.
func Register[S, M, R any](k *Kit, t durable.Type[S, M, R]) (*Set[M, R], error) {
	return RegisterEach(k, func(int) durable.Type[S, M, R] { return t })
}

// RegisterEach is Register for nodes of several builds, as in a deploy: of says what the type is on a node, and is
// called once for each of its processes, before that uses the type. Name, Shards, Role, ShardBy, IdleAfter, MaxActive
// and MailboxBytes are those that of returns for node 0 first, for all. What is wrong with a later one panics.
func RegisterEach[S, M, R any](k *Kit, of func(node int) durable.Type[S, M, R]) (*Set[M, R], error) {
	with := func(node int) durable.Type[S, M, R] {
		t := of(node)
		if t.Store == nil {
			t.Store = k.store
		}
		return t
	}
	_, typ, err := durable.On(&node{kit: k}, with(0))
	if err != nil {
		return nil, err
	}
	s := &Set[M, R]{k, map[*node]opened[M, R]{}}
	open := func(n *node) {
		e, typ, err := durable.On(n, with(n.p.Index))
		if err != nil {
			panic(err) // it went well just now
		}
		s.of[n] = opened[M, R]{e, typ}
	}
	for _, p := range k.w.Processes { // in the order of their starts
		if n := k.nodes[p]; n != nil {
			open(n)
		}
	}
	k.types = append(k.types, open)
	typ.New = func(id string, f kith.Fence) kith.Handler { return s.here().t.New(id, f) }
	typ.Hosted = func(ctx context.Context, n kith.ShardID, f kith.Fence) { s.here().t.Hosted(ctx, n, f) }
	k.c.Register(typ)
	return s, nil
}

// here is the type on the node that runs handlers now.
func (s *Set[M, R]) here() opened[M, R] { return s.of[s.k.node(s.k.w.Acting)] }

// On returns what asks and tells from node n, as its latest process. A test's Ask lets virtual time pass until the
// answer comes: as long as its context says, if that is one of Kit.Within, else two minutes at most.
func (s *Set[M, R]) On(n int) *durable.Entities[M, R] {
	return s.of[s.k.node(s.k.w.Hosts[n].Process)].e
}
