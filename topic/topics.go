// Topics of a node: what they share, how messages come and go, which nodes hear of subscribers that do.

package topic

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/runtime/driver"
	"github.com/kith-io/kith/replicated"
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
	ts := &Topics{shared: shared{node: node, self: node.ID(), wake: make(chan struct{}, 1)}, open: map[string]*Topic{}}
	ts.pool = driver.NewPool(entity.Type{Name: typeName, Shards: MaxNodes, Mode: entity.Worker,
		Strategy: strategy.LeastShards{Absolute: MaxNodes, Percent: 100},
		New:      func(string, route.Fence) entity.Handler { return ear{ts} }}, 1)
	d := driver.Of(node)
	ts.maxPayload = d.Config().MaxPayload
	if err := ts.pool.Register(d); err != nil {
		return nil, fmt.Errorf("topic: %w", err)
	}
	ctx, end := context.WithCancel(context.Background())
	go func() {
		<-node.Done()
		end()
	}()
	go ts.declare(ctx)
	go ts.follow(ctx)
	return ts, nil
}

// Open makes a topic known on this node, which then may publish and subscribe. It does not wait. Opening it again gives
// the same one. Each topic is one of the node's replicated values, named topic: and its name. Errors: ErrBadName, those
// of replicated.Open, and why the node has ended.
func (ts *Topics) Open(name string) (*Topic, error) {
	if len(name) < 1 || len(name) > MaxName {
		return nil, fmt.Errorf("%w: this one has %d", ErrBadName, len(name))
	}
	ts.lock.Lock()
	defer ts.lock.Unlock()
	if t := ts.open[name]; t != nil {
		return t, nil
	}
	i, err := replicated.Open(ts.node, "topic:"+name, interest{})
	if err != nil {
		return nil, fmt.Errorf("topic: %q: %w", name, err)
	}
	t := &Topic{shared: &ts.shared, name: name, interest: i, sent: map[kith.ID]uint64{}, streams: map[kith.ID]*stream{}}
	t.nodes.Store(&[]kith.ID{})
	ts.open[name] = t
	go t.watch()
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
	for {
		select {
		case <-ts.wake:
		case <-ctx.Done():
			return
		}
		ts.mu.Lock()
		list := ts.changed
		ts.changed = nil
		ts.mu.Unlock()
		for _, t := range list {
			if err := t.interest.Update(ctx, replicated.Local, t.declared); err != nil && ctx.Err() == nil {
				// Other values leave it no room now.
				time.AfterFunc(time.Second, func() { ts.tell(t) })
			}
		}
	}
}

// follow forgets nodes that are no members any more: each node what it keeps of them, the leader what all do.
func (ts *Topics) follow(ctx context.Context) {
	for e := range ts.node.Events(ctx) {
		switch e.Kind {
		case kith.MemberJoined, kith.MemberUp, kith.MemberDowned, kith.MemberRemoved:
		default:
			continue
		}
		ts.lock.Lock()
		list := make([]*Topic, 0, len(ts.open))
		for _, t := range ts.open {
			list = append(list, t)
		}
		ts.lock.Unlock()
		for _, t := range list {
			t.forget(ctx, ts.node.View())
		}
	}
}
