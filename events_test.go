// Tests of the event stream (MEM-3).

package kith_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
)

// A stream begins with the snapshot, and the changes behind it lead from view to view without a gap.
func TestEventsLeadFromSnapshotOn(t *testing.T) {
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
