// Tests of the event stream's bound.

package driver

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/membership"
)

func changes(n int) []membership.Event {
	list := make([]membership.Event, n)
	for i := range list {
		list[i].Kind = membership.MemberUp
	}
	return list
}

// A reader that falls behind holds a bounded number of events and starts again from a flagged snapshot that contains
// all that was dropped; what comes later follows it.
func TestSlowReaderGetsFreshSnapshot(t *testing.T) {
	b := newBroadcaster(&membership.View{})
	r := b.enter()
	for i := range 10 * MaxPendingEvents {
		b.publish(&membership.View{Seq: uint64(i + 1)}, changes(1))
		require.LessOrEqual(t, len(r.pending), MaxPendingEvents)
	}
	got, more := b.take(r, nil)
	require.True(t, more)
	require.Equal(t, Snapshot, got[0].Kind)
	require.True(t, got[0].Missed)
	require.Equal(t, "snapshot (missed)", got[0].String())
	next := got[0].View.Seq + 1
	for _, e := range got[1:] {
		require.Equal(t, membership.MemberUp, e.Kind)
		require.Equal(t, next, e.View.Seq)
		next++
	}
	require.EqualValues(t, 10*MaxPendingEvents+1, next)

	b.publish(&membership.View{Seq: 1 << 40}, changes(3*MaxPendingEvents))
	got, _ = b.take(r, nil)
	require.LessOrEqual(t, len(got), MaxPendingEvents)
	last := got[len(got)-1]
	require.EqualValues(t, 1<<40, last.View.Seq)
}

func TestReaderThatKeepsUpMissesNothing(t *testing.T) {
	b := newBroadcaster(&membership.View{})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var seqs []uint64
	published := uint64(0)
	for e := range b.stream(ctx) {
		seqs = append(seqs, e.View.Seq)
		if published == 100 {
			break
		}
		published++
		b.publish(&membership.View{Seq: published}, changes(1))
	}
	for i, s := range seqs {
		require.EqualValues(t, i, s)
	}
	require.Len(t, seqs, 101)
	require.Empty(t, b.readers, "a reader that stops leaves")
}
