// Tests of the event stream (MEM-3).

package e2e_test

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
)

// A stream begins with the snapshot, and the changes behind it lead from view to view without a gap.
func TestEventsLeadFromSnapshotOn(t *testing.T) {
	t.Parallel()
	nodes := cluster(t, 1, nil, nil)
	ctx, cancel := context.WithCancel(within(t))
	defer cancel()
	joined, left := false, false
	var other *kith.Node
	var last *kith.View
	for ev := range nodes[0].Events(ctx) {
		switch {
		case last == nil:
			require.Equal(t, kith.Snapshot, ev.Kind)
			require.False(t, ev.Missed)
			require.Len(t, ev.View.Members, 1)
			other = start(t, nil, kith.Config{Seeds: []string{nodes[0].Addr().String()}})
		case ev.Kind == kith.MemberUp && ev.Member.ID == other.ID():
			joined = true
			go func() { _ = other.Leave(context.Background()) }()
		case ev.Kind == kith.MemberRemoved:
			require.True(t, joined)
			require.Equal(t, other.ID(), ev.Member.ID)
			left = true
		}
		require.NotNil(t, ev.View)
		require.NotEmpty(t, ev.String())
		if last != nil {
			require.GreaterOrEqual(t, ev.View.Seq, last.Seq)
		}
		if last = ev.View; left {
			break
		}
	}
	require.True(t, left)
	<-other.Done()
}

// The stream ends with its context and with the node.
func TestEventsEnd(t *testing.T) {
	t.Parallel()
	n := start(t, nil, kith.Config{})
	over, cancel := context.WithCancel(context.Background())
	cancel()
	for range n.Events(over) {
	}
	ended := make(chan struct{})
	begun := make(chan struct{}, 1)
	go func() {
		defer close(ended)
		for range n.Events(context.Background()) {
			select {
			case begun <- struct{}{}:
			default:
			}
		}
	}()
	<-begun
	require.NoError(t, n.Close())
	<-ended
	for ev := range n.Events(context.Background()) {
		require.Equal(t, kith.Snapshot, ev.Kind, "after the end there is one last look")
	}
}

// What happens in sharding is a stream, too: which node coordinates, which gets which shard, and each phase of a move
// (SHD-7).
func TestShardEvents(t *testing.T) {
	t.Parallel()
	nodes := cluster(t, 2, nil, nil)
	l := newLedger()
	seen := make([]map[kith.ShardEventKind][]kith.ShardEvent, len(nodes))
	var began, ended sync.WaitGroup
	began.Add(len(nodes))
	for i, n := range nodes {
		seen[i] = map[kith.ShardEventKind][]kith.ShardEvent{}
		ended.Go(func() {
			for ev := range n.ShardEvents(context.Background()) {
				if seen[i][ev.Kind] = append(seen[i][ev.Kind], ev); ev.Kind == kith.ShardEventsBegin {
					began.Done()
				}
			}
		})
	}
	began.Wait()
	for i := range nodes { // the one that does not coordinate comes first, and gets a shard before there is another host
		n := nodes[len(nodes)-1-i]
		r, err := n.Register(echoType("bills", kith.Inline, l, func() *kith.Node { return n }))
		require.NoError(t, err)
		_, err = r.Ask(within(t), "a", []byte("x"))
		require.NoError(t, err)
	}
	require.NoError(t, nodes[1].Leave(within(t)))
	require.NoError(t, nodes[0].Close())
	ended.Wait()

	boss, leaver := seen[0], seen[1]
	require.NotEmpty(t, boss[kith.ShardAllocated])
	require.NotEmpty(t, boss[kith.CoordinatorReady])
	moved := boss[kith.MoveDone]
	require.NotEmpty(t, moved)
	require.Len(t, boss[kith.MoveBegan], len(moved))
	require.Len(t, leaver[kith.MoveMarked], len(moved), "the owner tells what it does")
	for _, ev := range moved {
		require.Equal(t, nodes[1].ID(), ev.Home)
		require.Equal(t, nodes[0].ID(), ev.To)
		require.Equal(t, "bills", ev.Name)
		require.False(t, ev.At.IsZero())
		require.Contains(t, ev.String(), "move-done bills/")
	}
}
