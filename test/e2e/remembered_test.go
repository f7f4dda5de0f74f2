// Tests of remembered entities over real sockets: a store of the test's own says which there are.

package e2e_test

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
)

// shelf is a store that knows of entities, and which of them live where.
type shelf struct {
	t *testing.T

	mu    sync.Mutex
	known map[string]bool
	lives map[string]kith.ID
	fence map[string]kith.Fence
}

// names lists what is known of a shard.
func (s *shelf) names(shards uint32, of kith.ShardID) iter.Seq2[string, error] {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := slices.Collect(maps.Keys(s.known))
	return func(yield func(string, error) bool) {
		for _, id := range all {
			if kith.ShardOf(id, shards) == of && !yield(id, nil) {
				return
			}
		}
	}
}

// remembered is an entity that is in the store from its begin until it is ordered to go.
type remembered struct {
	s  *shelf
	at kith.ID
	id string
}

func (r remembered) Receive(c *kith.Context, payload []byte) error {
	if string(payload) == "panic" {
		r.end()
		panic("as it was told")
	}
	if string(payload) == "go" {
		r.s.mu.Lock()
		delete(r.s.known, r.id)
		r.s.mu.Unlock()
		c.Passivate()
	}
	return nil
}

func (r remembered) Stop(*kith.Context) { r.end() }

func (r remembered) end() {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	delete(r.s.lives, r.id)
}

// TestRememberedEntities: what the store knows lives, on three nodes and without a message; after a leave and after a
// crash of a handler too; what has forgotten itself does not (SHD-12).
func TestRememberedEntities(t *testing.T) {
	t.Parallel()
	const shards, n = 12, 60
	s := &shelf{t: t, known: map[string]bool{}, lives: map[string]kith.ID{}, fence: map[string]kith.Fence{}}
	for i := range n {
		s.known[fmt.Sprint("e", i)] = true
	}
	regions := make([]*kith.Region, 3)
	nodes := cluster(t, 3, func(_ int, cfg *kith.Config) { cfg.Sharding.RebalanceInterval = 50 * time.Millisecond },
		func(i int, node *kith.Node) {
			r, err := node.Register(kith.EntityType{Name: "r", Shards: shards, RestartBackoff: 10 * time.Millisecond,
				New: func(id string, f kith.Fence) kith.Handler {
					s.mu.Lock()
					defer s.mu.Unlock()
					if at, on := s.lives[id]; on || f.Compare(s.fence[id]) < 0 {
						t.Errorf("%s begins at %v under %v, and lives at %v under %v", id, node.ID(), f, at, s.fence[id])
					}
					s.known[id], s.lives[id], s.fence[id] = true, node.ID(), f
					return remembered{s, node.ID(), id}
				},
				Remembered: func(_ context.Context, shard kith.ShardID, _ kith.Fence) iter.Seq2[string, error] {
					return s.names(shards, shard)
				}})
			require.NoError(t, err)
			regions[i] = r
		})
	alive := func(want int, on ...int) {
		t.Helper()
		eventually(t, func() bool {
			s.mu.Lock()
			defer s.mu.Unlock()
			if len(s.lives) != want {
				return false
			}
			for _, at := range s.lives {
				if !slices.ContainsFunc(on, func(i int) bool { return nodes[i].ID() == at }) {
					return false
				}
			}
			return true
		}, "%d entities live on %v", want, on)
	}
	alive(n, 0, 1, 2)
	require.NoError(t, regions[0].Tell("e7", []byte("panic")))
	require.NoError(t, regions[1].Tell("e8", []byte("go")))
	require.NoError(t, regions[2].Tell("new", nil))
	eventually(t, func() bool { s.mu.Lock(); defer s.mu.Unlock(); return s.known["new"] && !s.known["e8"] }, "known")
	alive(n, 0, 1, 2)
	require.NoError(t, nodes[1].Leave(within(t)))
	alive(n, 0, 2)
	s.mu.Lock()
	defer s.mu.Unlock()
	require.Contains(t, s.lives, "e7")
	require.Contains(t, s.lives, "new")
	require.NotContains(t, s.lives, "e8")
	require.Zero(t, nodes[0].Stats().Types[0].Recalls.Failed)
}
