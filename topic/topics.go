// Topics of a node: what they share, how messages come and go, which nodes hear of subscribers that do.

package topic

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/base/ground"
	"github.com/kith-io/kith/internal/runtime/driver"
	"github.com/kith-io/kith/internal/runtime/footing"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/shard/strategy"
)

// MaxNodes is how many nodes of a cluster get messages of others at most.
const MaxNodes = 1024

// typeName is the type of the entities, one for each node, that hand on what comes there.
const typeName = "kith.topics"

// Topics are the topics of one node. All methods are safe for concurrent use.
type Topics struct {
	shared
	stray atomic.Uint64

	lock sync.Mutex
	open map[string]*Topic
}

// Start makes topics known on a node, once; every node that publishes or subscribes does so. Its goroutines end with
// the node. Errors: those of Node.Register.
func Start(node *kith.Node) (*Topics, error) {
	ctx, end := context.WithCancel(context.Background())
	ts, err := start(ctx, &realNode{node: node, d: driver.Of(node)})
	if err != nil {
		end()
		return nil, err
	}
	go func() {
		<-node.Done()
		end()
		for _, t := range ts.list() {
			t.over()
		}
	}()
	return ts, nil
}

// On is Start on a node that is none of package kith's: one of a simulated cluster, as this module's own tests run
// them. Errors are those of Start.
func On(node any) (*Topics, error) {
	n, ok := node.(footing.Topics)
	if !ok {
		return nil, fmt.Errorf("topic: %T is no node", node)
	}
	return start(context.Background(), n)
}

func start(ctx context.Context, node footing.Topics) (ts *Topics, err error) {
	ts = &Topics{shared: shared{node: node, self: node.ID(), wake: make(chan struct{}, 1)}, open: map[string]*Topic{}}
	ts.crew, err = node.Crew(entity.Type{Name: typeName, Shards: MaxNodes, Mode: entity.Worker,
		Strategy: strategy.LeastShards{Absolute: MaxNodes, Percent: 100},
		New:      func(string, route.Fence) entity.Handler { return ear{ts} }})
	if err != nil {
		return nil, fmt.Errorf("topic: %w", err)
	}
	spawn(node, func() { ts.declare(ctx) })
	spawn(node, func() { ts.follow(ctx) })
	return ts, nil
}

// spawn runs f beside its caller, which may hold locks.
func spawn(on footing.Topics, f func()) { on.Begin(f) }

// Open makes a topic known on this node, which then may publish and subscribe. It does not wait. Opening it again gives
// the same one. Each topic is one of the node's replicated values, named topic: and its name. Errors: ErrBadName, those
// of replicated.Open, and why the node has ended.
func (ts *Topics) Open(name string) (*Topic, error) {
	if len(name) < 1 || len(name) > MaxName {
		return nil, fmt.Errorf("%w: this one has %d", ErrBadName, len(name))
	}
	v, err := ts.node.Nodes("topic:" + name) // the same one again where it is open
	if err != nil {
		return nil, fmt.Errorf("topic: %q: %w", name, err)
	}
	ts.lock.Lock()
	defer ts.lock.Unlock()
	if t := ts.open[name]; t != nil {
		return t, nil
	}
	t := &Topic{shared: &ts.shared, name: name, interest: value{v}, sent: map[kith.ID]uint64{},
		streams: map[kith.ID]*stream{}}
	t.nodes.Store(&[]kith.ID{})
	ts.open[name] = t
	spawn(ts.node, t.watch)
	return t, nil
}

// Stray returns how many messages of others came that nobody here reads: they were for the node that had this one's
// place before, or for a topic that is not open here.
func (ts *Topics) Stray() uint64 { return ts.stray.Load() }

// ear takes what comes from other nodes.
type ear struct{ ts *Topics }

// Receive implements Handler.
func (e ear) Receive(_ *entity.Context, payload []byte) error {
	f, err := parseFrame(payload)
	if err != nil || f.to != e.ts.self.Inc {
		e.ts.stray.Add(1)
		return err
	}
	e.ts.lock.Lock()
	t := e.ts.open[f.name]
	e.ts.lock.Unlock()
	if t == nil {
		e.ts.stray.Add(1)
		return nil
	}
	t.receive(&f)
	return nil
}

// Stop implements Handler.
func (ear) Stop(*entity.Context) {}

// declare tells the other nodes which topics have subscribers here.
func (ts *Topics) declare(ctx context.Context) {
	for ts.node.Wait(ctx, ground.Forever, ts.wake) {
		ts.mu.Lock()
		list := ts.changed
		ts.changed = nil
		ts.mu.Unlock()
		for _, t := range list {
			if err := t.interest.change(ctx, false, t.declared); err != nil && ctx.Err() == nil {
				// Other values leave it no room now.
				spawn(ts.node, func() {
					ts.node.Wait(ctx, time.Second, nil)
					ts.tell(t)
				})
			}
		}
	}
}

// list returns the topics that are open.
func (ts *Topics) list() []*Topic {
	ts.lock.Lock()
	defer ts.lock.Unlock()
	list := make([]*Topic, 0, len(ts.open))
	for _, t := range ts.open { // sorted below
		list = append(list, t)
	}
	slices.SortFunc(list, func(a, b *Topic) int { return strings.Compare(a.name, b.name) })
	return list
}

// follow forgets nodes that are no members any more: each node what it keeps of them, the leader what all do.
func (ts *Topics) follow(ctx context.Context) {
	for v := range ts.node.Views(ctx) {
		for _, t := range ts.list() {
			t.forget(ctx, v)
		}
	}
}
