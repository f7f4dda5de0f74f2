// Tests of the event stream's bound.

package driver

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/base/feed"
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
// all that was dropped; what comes later follows it (MEM-3).
func TestSlowReaderGetsFreshSnapshot(t *testing.T) {
	b := newBroadcaster(&membership.View{})
	r := b.members.Enter(b.snapshot)
	for i := range 10 * feed.MaxPending {
		b.publish(&membership.View{Seq: uint64(i + 1)}, changes(1))
		require.LessOrEqual(t, b.members.Pending(r), feed.MaxPending)
	}
	got, more := b.members.Take(r, nil)
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
	require.EqualValues(t, 10*feed.MaxPending+1, next)

	b.publish(&membership.View{Seq: 1 << 40}, changes(3*feed.MaxPending))
	got, _ = b.members.Take(r, nil)
	require.LessOrEqual(t, len(got), feed.MaxPending)
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
	require.False(t, b.members.Read(), "a reader that stops leaves")
}

// TestManyReaders: readers of every pace, coming and going while views are published, each see a snapshot and then
// every change in order, or a flagged fresh snapshot in their place (MEM-3).
func TestManyReaders(t *testing.T) {
	const readers, last = 64, 4 * feed.MaxPending
	b := newBroadcaster(&membership.View{})
	var started, ended sync.WaitGroup
	started.Add(readers)
	faults := make(chan string, readers)
	for i := range readers {
		ended.Go(func() {
			next, seen := uint64(0), 0
			for e := range b.stream(t.Context()) {
				if seen++; seen == 1 {
					started.Done()
				}
				switch {
				case e.Kind == Snapshot && seen > 1 && !e.Missed:
					faults <- "a second snapshot without a flag"
					return
				case e.Kind == Snapshot:
				case e.View.Seq != next:
					faults <- fmt.Sprintf("reader %d: change %d, expected %d", i, e.View.Seq, next)
					return
				}
				if next = e.View.Seq + 1; e.View.Seq == last {
					return
				}
				for range i % 8 {
					runtime.Gosched() // a slower one
				}
			}
			faults <- "the stream ended early"
		})
	}
	started.Wait()
	for seq := range uint64(last) {
		b.publish(&membership.View{Seq: seq + 1}, changes(1))
	}
	ended.Wait()
	close(faults)
	for f := range faults {
		require.Fail(t, f)
	}
	require.False(t, b.members.Read(), "all have left")
}

// TestViewIsOneLoad: reading the snapshot allocates nothing and takes no lock, also while one is held by a publisher.
// Pins MEM-3.
func TestViewIsOneLoad(t *testing.T) {
	d := &Driver{events: newBroadcaster(&membership.View{Seq: 7})}
	d.events.members.Hand(nil, Event{}, func() { // under the lock
		var v *membership.View
		require.Zero(t, testing.AllocsPerRun(100, func() { v = d.View() }))
		require.EqualValues(t, 7, v.Seq)
	})
}

// BenchmarkView reads the snapshot from all processors at once.
func BenchmarkView(b *testing.B) {
	d := &Driver{events: newBroadcaster(&membership.View{Seq: 7})}
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if d.View().Seq != 7 {
				b.Fail()
			}
		}
	})
}
