// Type.Hosted on real nodes: each shard has its goroutine on one of them, through a leave and a node that is closed.

package e2e_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
)

// posts are the shards that are at work, each where and under which fence.
type posts struct {
	t  *testing.T
	mu sync.Mutex
	at map[kith.ShardID]kith.ID
	f  map[kith.ShardID]kith.Fence
}

// begins notes a call of Hosted, until the function that it returns is called.
func (p *posts) begins(node kith.ID, s kith.ShardID, f kith.Fence) (ends func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if at, on := p.at[s]; on || f.Compare(p.f[s]) < 0 {
		p.t.Errorf("shard %d begins at %v under %v, and is at %v under %v", s, node, f, at, p.f[s])
	}
	p.at[s], p.f[s] = node, f
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.at, s)
	}
}

// on returns the nodes that are at work.
func (p *posts) on() (shards int, nodes map[kith.ID]bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	nodes = map[kith.ID]bool{}
	for _, id := range p.at {
		nodes[id] = true
	}
	return len(p.at), nodes
}

// TestHosted: without a message each shard has its goroutine on one node; a leave ends it there before it begins
// elsewhere, and a node that is closed waits until all have returned (SHD-12).
func TestHosted(t *testing.T) {
	t.Parallel()
	const shards = 12
	p := &posts{t: t, at: map[kith.ShardID]kith.ID{}, f: map[kith.ShardID]kith.Fence{}}
	nodes := cluster(t, 3, func(_ int, cfg *kith.Config) { cfg.Sharding.RebalanceInterval = 50 * time.Millisecond },
		func(_ int, node *kith.Node) {
			_, err := node.Register(kith.EntityType{Name: "queue", Shards: shards,
				New: func(string, kith.Fence) kith.Handler { return remembered{} },
				Hosted: func(ctx context.Context, s kith.ShardID, f kith.Fence) {
					defer p.begins(node.ID(), s, f)()
					<-ctx.Done()
				}})
			require.NoError(t, err)
		})
	everywhere := func(on ...*kith.Node) {
		t.Helper()
		eventually(t, func() bool {
			n, at := p.on()
			for _, node := range on {
				if !at[node.ID()] {
					return false
				}
			}
			return n == shards && len(at) == len(on)
		}, "%d nodes", len(on))
	}
	everywhere(nodes...)
	require.NoError(t, nodes[1].Leave(within(t)))
	everywhere(nodes[0], nodes[2])
	require.NoError(t, nodes[2].Leave(within(t)))
	everywhere(nodes[0])
	require.NoError(t, nodes[0].Close())
	n, _ := p.on()
	require.Zero(t, n)
}
