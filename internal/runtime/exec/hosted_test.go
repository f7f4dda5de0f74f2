// Tests of Type.Hosted: with the lifetime of its shard, waited for, called again, and reported where it fails or hangs.

package exec

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/route"
)

// hostedCall is one call of Hosted.
type hostedCall struct {
	ctx   context.Context
	shard route.ShardID
	fence route.Fence
	on    chan func() // what it does next; closed: it returns
}

// newAttended is execution with a Hosted that gives itself to the test.
func newAttended(t *testing.T, mode entity.Mode) (*hangsKit, <-chan hostedCall) {
	calls := make(chan hostedCall, 16)
	k := newHangsKit(t, mode, func(*entity.Context, string, string) {}, func(typ *entity.Type) {
		typ.Hosted = func(ctx context.Context, s route.ShardID, f route.Fence) {
			c := hostedCall{ctx, s, f, make(chan func())}
			calls <- c
			for do := range c.on {
				do()
			}
		}
	})
	return k, calls
}

// TestHostedLivesWithItsShard: in each mode it is called for each shard, ends with the stop of its shard, which waits
// for it, and is reported by name where it hangs; the other shard is not disturbed, and no message waits for it
// (SHD-12).
func TestHostedLivesWithItsShard(t *testing.T) {
	for _, mode := range []entity.Mode{entity.Blocking, entity.Worker, entity.Inline} {
		t.Run(mode.String(), func(t *testing.T) {
			k, calls := newAttended(t, mode)
			var of [2]hostedCall
			for range of {
				c := <-calls
				require.NoError(t, c.ctx.Err())
				require.Equal(t, k.fence, c.fence)
				of[c.shard] = c
			}
			defer close(of[1].on)
			require.Equal(t, route.OK, k.send(k.inShard(0, 1)[0], nil))
			h := k.typ.Host(0)
			h.Stop(entity.StopMoved, 0, time.Hour, 1<<20)
			<-of[0].ctx.Done()
			require.ErrorIs(t, context.Cause(of[0].ctx), route.ErrShardStopping)
			require.NoError(t, of[1].ctx.Err())
			eventually(t, func() bool { return Entities(h) == 0 })
			require.Empty(t, notLost(k.look(time.Hour/2, time.Hour/2)))
			told := notLost(k.look(2*time.Hour, 2*time.Hour))
			require.Len(t, told, 1)
			require.Equal(t, entity.StopHangs, told[0].Kind)
			require.Equal(t, []string{"bare", "", "hosted"}, []string{told[0].Type, told[0].ID, told[0].Text})
			require.Equal(t, k.fence, told[0].Fence)
			require.NotNil(t, k.typ.Host(0), "it waits")
			close(of[0].on)
			eventually(t, func() bool { return k.typ.Host(0) == nil })
			require.EqualValues(t, 1, k.Attendants.Count())
			require.Empty(t, calls)
		})
	}
}

// TestHostedIsCalledAgain: after a panic and an end of its goroutine, which are reported, and after a suspension; not
// after it has returned by itself, nor for a shard that is lost (SHD-12).
func TestHostedIsCalledAgain(t *testing.T) {
	k, calls := newAttended(t, entity.Blocking)
	first, other := <-calls, <-calls
	close(other.on)
	eventually(t, func() bool { return k.Attendants.Count() == 1 })
	for i, how := range []func(){func() { panic("no broker") }, runtime.Goexit} {
		first.on <- how
		eventually(t, func() bool { return k.Attendants.Count() == 0 })
		told := k.last()
		require.Len(t, told, 1)
		require.Equal(t, entity.Panicked, told[0].Kind)
		require.Contains(t, told[0].Text, []string{"no broker", "runtime.Goexit"}[i])
		require.Empty(t, told[0].ID)
		require.Equal(t, k.fence, told[0].Fence)
		require.Empty(t, calls, "it rests")
		k.Attendants.tick(k.Clock.Now() + attendRest<<i)
		again := <-calls
		require.Equal(t, first.shard, again.shard)
		first = again
	}
	panics, _ := k.typ.Incidents()
	require.EqualValues(t, 2, panics)

	k.Gate.Order()
	<-first.ctx.Done()
	require.ErrorIs(t, context.Cause(first.ctx), route.ErrSuspended)
	k.ReportRunning(time.Second)
	told := k.last()
	require.Len(t, told, 1)
	require.Equal(t, entity.Overrun, told[0].Kind)
	close(first.on)
	eventually(t, func() bool { return k.Attendants.Count() == 0 })
	require.Empty(t, calls, "the node is suspended")
	k.Gate.Judge(false, false)
	again := <-calls
	require.Equal(t, first.shard, again.shard)
	require.Equal(t, first.fence, again.fence)

	k.typ.Host(again.shard).Abandon()
	<-again.ctx.Done()
	require.ErrorIs(t, context.Cause(again.ctx), route.ErrStopped)
	close(again.on)
	eventually(t, func() bool { return k.typ.Host(again.shard) == nil })
	require.NotNil(t, k.typ.Host(other.shard))
	require.Empty(t, calls)
}

// TestHostedThatHangsIsLeftBehind: a node that ends waits for it so long, and counts it (SHD-12).
func TestHostedThatHangsIsLeftBehind(t *testing.T) {
	k, calls := newAttended(t, entity.Worker)
	first, other := <-calls, <-calls
	close(other.on)
	k.Abandon()
	k.DropAll()
	k.Gate.Release(true)
	k.StopWorkers()
	k.over = true
	require.False(t, k.StopEntities(time.Millisecond))
	behind, _ := k.Settle(patience)
	require.Equal(t, 1, behind)
	close(first.on)
	require.True(t, k.StopEntities(patience))
}

// TestStopBesideTheCallOfHosted: however a stop and the beginning of the call fall together, the shard ends, and no
// call begins after that (SHD-12).
func TestStopBesideTheCallOfHosted(t *testing.T) {
	var running, late atomic.Int64
	typ := typeOf(entity.Blocking, 400, func(*entity.Context, []byte) error { return nil })
	var gone [400]atomic.Bool
	typ.Hosted = func(ctx context.Context, s route.ShardID, _ route.Fence) {
		running.Add(1)
		defer running.Add(-1)
		if gone[s].Load() {
			late.Add(1)
		}
		<-ctx.Done()
		if gone[s].Load() {
			late.Add(1)
		}
	}
	x := newBare(t, typ)
	x.needs.Stopped = func(h *Host) { gone[h.shard].Store(true); h.Remove() }
	for i := range x.typ.shards {
		x.typ.Host(route.ShardID(i)).Stop(entity.StopMoved, 0, time.Hour, 0)
		if i%50 == 49 {
			runtime.Gosched()
			x.Attendants.tick(x.Clock.Now())
		}
	}
	eventually(t, func() bool { return x.typ.Living() == 0 && running.Load() == 0 })
	require.Zero(t, late.Load())
}
