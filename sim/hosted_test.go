// Scenarios of Type.Hosted: it lives where its shard does, through moves, crashes, cuts and pauses.

package sim_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/sim"
)

// errand is one call of Hosted.
type errand struct {
	node  int
	fence route.Fence
	over  error // the cause of its end; nil: it runs, or was killed
}

// errands are those of each shard, in the order of their beginning.
type errands struct {
	c    *sim.Cluster
	t    *testing.T
	list map[route.ShardID][]*errand
	fail int // calls that are still to panic
}

// hosted lets time pass until its shard ends. No call begins before the last one of its shard has returned, unless that
// one's node is gone; fences never fall.
func (e *errands) hosted(ctx context.Context, s route.ShardID, f route.Fence) {
	n := e.c.Acting()
	if list := e.list[s]; len(list) > 0 {
		last := list[len(list)-1]
		if last.over == nil && last.node != n && e.c.Running(last.node) {
			e.t.Errorf("shard %d begins on %d, and is at work on %d", s, n, last.node)
		}
		if f.Compare(last.fence) < 0 {
			e.t.Errorf("shard %d begins under %v behind %v", s, f, last.fence)
		}
	}
	me := &errand{node: n, fence: f}
	e.list[s] = append(e.list[s], me)
	if e.fail > 0 {
		e.fail--
		me.over = fmt.Errorf("it panicked")
		panic("as the test wants")
	}
	for ctx.Err() == nil {
		e.c.Wait(50 * time.Millisecond)
	}
	me.over = context.Cause(ctx)
}

// everywhere reports whether each shard is at work on one node that runs.
func (e *errands) everywhere(shards int) bool {
	for s := range shards {
		list := e.list[route.ShardID(s)]
		if len(list) == 0 || list[len(list)-1].over != nil || !e.c.Running(list[len(list)-1].node) {
			return false
		}
	}
	return true
}

// at returns a shard that is at work on a node.
func (e *errands) at(n int) (route.ShardID, *errand) {
	for s := range route.ShardID(1000) {
		if list := e.list[s]; len(list) > 0 && list[len(list)-1].node == n && list[len(list)-1].over == nil {
			return s, list[len(list)-1]
		}
	}
	e.t.Fatalf("nothing is at work on %d", n)
	return 0, nil
}

// TestHostedInTheSimulator: without a message every shard is at work on one node; a leave ends its calls before they
// begin elsewhere, a crash moves them behind the takeover time, a node that stood still ends its own and begins them
// again or loses them, and a panic is followed by another call (SHD-12).
func TestHostedInTheSimulator(t *testing.T) {
	const shards = 12
	for _, mode := range []entity.Mode{entity.Blocking, entity.Worker} {
		t.Run(mode.String(), func(t *testing.T) {
			c := sim.New(t, 5, 7)
			e := &errands{c: c, t: t, list: map[route.ShardID][]*errand{}, fail: 2}
			c.Register(entity.Type{Name: "queue", Shards: shards, Mode: mode, Hosted: e.hosted,
				New: func(string, route.Fence) entity.Handler { return single{&story{c: c}} }})
			c.AwaitUp()
			require.True(t, c.Until(time.Minute, func() bool { return e.everywhere(shards) }))
			require.Zero(t, e.fail)

			s, was := e.at(1)
			c.Leave(1)
			require.True(t, c.Until(time.Minute, func() bool { return !c.Running(1) && e.everywhere(shards) }))
			require.ErrorIs(t, was.over, route.ErrShardStopping)
			require.Positive(t, e.list[s][len(e.list[s])-1].fence.Compare(was.fence))

			_, was = e.at(2)
			c.Crash(2)
			require.True(t, c.Until(2*time.Minute, func() bool { return e.everywhere(shards) }))
			require.NoError(t, was.over, "it was killed where it waited")

			_, was = e.at(3)
			c.Pause(3, 9*time.Second)
			require.True(t, c.Until(time.Minute, func() bool { return was.over != nil }))
			require.ErrorIs(t, was.over, route.ErrSuspended)
			require.True(t, c.Until(time.Minute, func() bool { return e.everywhere(shards) }))
			require.Equal(t, was.fence, func() route.Fence { _, now := e.at(3); return now.fence }(), "it goes on")

			_, was = e.at(0)
			c.Partition([]int{0}, []int{3, 4})
			require.True(t, c.Until(2*time.Minute, func() bool { return was.over != nil }))
			require.True(t, c.Until(2*time.Minute, func() bool { return !c.Running(0) && e.everywhere(shards) }))
		})
	}
}
