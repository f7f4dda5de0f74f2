// Tests of lists of remembered entities, read on goroutines of their own.

package exec

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/route"
)

// TestRememberedEntitiesBegin: in each mode all that the list of a shard names live without a message; an error, a
// panic and bad ids are reported, and disturb nothing else; the list is asked for again (SHD-12).
func TestRememberedEntitiesBegin(t *testing.T) {
	const shards, ids = 8, 1000
	for _, mode := range []entity.Mode{entity.Blocking, entity.Worker, entity.Inline} {
		t.Run(mode.String(), func(t *testing.T) {
			t.Parallel()
			var made, calls, most, now atomic.Int64
			typ := entity.Type{Name: "bare", Shards: shards, Mode: mode, RestartWindow: time.Minute}
			typ.New = func(string, route.Fence) entity.Handler {
				made.Add(1)
				return handling(func(*entity.Context, []byte) error { return nil })
			}
			typ.Remembered = func(ctx context.Context, s route.ShardID, f route.Fence) iter.Seq2[string, error] {
				if call := calls.Add(1); call == 1 {
					panic("the store is not there")
				}
				return func(yield func(string, error) bool) {
					n := now.Add(1)
					defer now.Add(-1)
					most.Store(max(n, most.Load()))
					if s == 3 && calls.Load() <= shards {
						yield("", errors.New("the store does not answer"))
						return
					}
					yield("", nil)
					for i := range ids {
						if id := fmt.Sprint("e", i); route.ShardOf(id, shards) == s && !yield(id, nil) {
							return
						}
					}
					for i := range 3 { // of another shard
						if id := fmt.Sprint("x", i); route.ShardOf(id, shards) != s && !yield(id, nil) {
							return
						}
					}
				}
			}
			x := newBare(t, typ)
			eventually(t, func() bool { waiting, _, _ := Recalls(x.typ); return waiting == 0 })
			eventually(t, func() bool { return made.Load() == ids })
			_, read, failed := Recalls(x.typ)
			require.Equal(t, uint64(shards), read)
			require.GreaterOrEqual(t, failed, uint64(shards+1))
			require.LessOrEqual(t, most.Load(), int64(recallMost))
			require.Equal(t, route.OK, x.send("e1", nil))
			require.Equal(t, int64(ids), made.Load())
		})
	}
}

// TestListOfLostShardEnds: the reader of a list sees by its context when the shard is lost, and nothing begins any
// more.
func TestListOfLostShardEnds(t *testing.T) {
	reading, ended := make(chan struct{}), make(chan error, 1)
	typ := typeOf(entity.Blocking, 1, nil)
	typ.New = func(id string, _ route.Fence) entity.Handler {
		require.Fail(t, "made", id)
		return nil
	}
	typ.Remembered = func(ctx context.Context, _ route.ShardID, _ route.Fence) iter.Seq2[string, error] {
		return func(yield func(string, error) bool) {
			close(reading)
			<-ctx.Done()
			ended <- context.Cause(ctx)
			yield("late", nil)
		}
	}
	x := newBare(t, typ)
	<-reading
	x.host("late").Abandon()
	require.ErrorIs(t, <-ended, route.ErrStopped)
	eventually(t, func() bool { waiting, _, _ := Recalls(x.typ); return waiting == 0 && x.recaller.count() == 0 })
}
