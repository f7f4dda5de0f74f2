// A drain that is waited for, of a real node that is marked down meanwhile (SHD-9).

package command

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/admin"
	"github.com/kith-io/kith/internal/cli/env"
)

// stands is an entity with a stop call that stands until it may return.
type stands struct{ until <-chan struct{} }

// Receive answers.
func (stands) Receive(c *kith.Context, _ []byte) error { return c.Reply(nil) }

// Stop waits.
func (s stands) Stop(*kith.Context) { <-s.until }

// When the node is marked down while its drain is waited for, nothing lives there either, but it was not moved: exit
// code 1, and it is said why.
func TestDrainOfADownedNode(t *testing.T) {
	until := make(chan struct{})
	var nodes []*kith.Node
	var seeds []string
	for range 2 {
		// Nothing moves for balance, which would wait for the stop calls, too, and keep the asks below waiting.
		n, err := kith.Start(t.Context(), kith.Config{Seeds: seeds, Sharding: kith.Sharding{RebalanceInterval: -1}})
		require.NoError(t, err)
		t.Cleanup(func() { _ = n.Close() })
		nodes, seeds = append(nodes, n), []string{n.Addr().String()}
		r, err := n.Register(kith.EntityType{Name: "stands", Shards: 4,
			New: func(string, kith.Fence) kith.Handler { return stands{until} }})
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		require.NoError(t, n.Ready(ctx))
		for _, id := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} { // all on the first node
			_, err := r.Ask(ctx, id, nil)
			require.NoError(t, err)
		}
	}
	file := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(file, []byte("0123456789abcdef"), 0o600))
	s, err := admin.Start(nodes[0], admin.Config{Listen: "127.0.0.1:0", Token: "0123456789abcdef"})
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close(context.Background()) })

	ended := make(chan struct{})
	go func() {
		defer close(until) // which lets the node end
		for nodes[0].Stats().Types[0].Stopping == 0 && t.Context().Err() == nil {
			time.Sleep(tick)
		}
		if nodes[1].Down(t.Context(), nodes[0].Addr().String()) == nil {
			select {
			case <-nodes[0].Done():
			case <-t.Context().Done():
			}
		}
		close(ended)
	}()
	code, stdout, stderr := program(t, "drain", "--wait", "--timeout=2m", "--token-file="+file,
		"--admin="+s.Addr().String())
	<-ended
	require.Equal(t, env.ExitFailed, code, stdout)
	require.Contains(t, stderr, "this node was marked down: downed by ")
}
