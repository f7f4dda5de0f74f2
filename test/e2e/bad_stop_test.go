// Tests of stop calls that do not do as they should, in the middle of a move.

package e2e_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
)

// stops is an entity with a stop call that does what the test says, once.
type stops struct {
	echo
	stop func(id string)
}

func (e *stops) Stop(c *kith.Context) { e.stop(c.ID) }

// A stop call that never returns keeps its own shard where it is and nothing else: it starts nowhere else meanwhile,
// the move is seen, a second one is refused by name, asks end with their time, other shards are served and move, and a
// stop call that panics holds up nothing. Once it returns the shard goes on at the next owner (SHD-12, SHD-4).
func TestStopThatNeverEndsHoldsUpItsShardAlone(t *testing.T) {
	t.Parallel()
	l, free, own := newLedger(), make(chan struct{}), &toOne{}
	hangs, panics, stopping := "", "", make(chan struct{})
	regions := map[*kith.Node]*kith.Region{}
	registered := func(_ int, n *kith.Node) {
		typ := kith.EntityType{Name: "x", Mode: kith.Blocking, Shards: 16, Strategy: own}
		typ.New = func(string, kith.Fence) kith.Handler {
			return &stops{echo{l, n.ID}, func(id string) {
				switch id {
				case hangs:
					close(stopping)
					<-free
				case panics:
					panic("boom")
				}
			}}
		}
		r, err := n.Register(typ)
		require.NoError(t, err)
		regions[n] = r
	}
	told := make(chan kith.Incident, 10)
	edit := func(i int, cfg *kith.Config) {
		if cfg.Sharding.DrainTime = 10 * time.Millisecond; i == 1 {
			cfg.Incident = func(i kith.Incident) {
				if i.Kind == kith.StopHangs {
					told <- i
				}
			}
		}
	}
	nodes := cluster(t, 2, edit, registered)
	first, second := nodes[0].ID(), nodes[1].ID()
	own.home.Store(&second)
	r := regions[nodes[0]]
	ids := map[kith.ShardID]string{}
	for i := 0; len(ids) < 16; i++ {
		ids[r.Shard(fmt.Sprint("e", i))] = fmt.Sprint("e", i)
	}
	hangs, panics = ids[0], ids[1]
	asked := func(ctx context.Context, id string) (string, error) {
		reply, err := r.Ask(ctx, id, []byte("where"))
		return string(reply), err
	}
	for _, id := range ids {
		at, err := asked(within(t), id)
		require.NoError(t, err)
		require.Equal(t, second.String(), at)
	}
	moves := func(s kith.ShardID) {
		eventually(t, func() bool { return r.Move(within(t), s, first) == nil }, "a move begins when all is quiet")
	}
	movesTo := func(s kith.ShardID) {
		moves(s)
		eventually(t, func() bool {
			at, err := asked(within(t), ids[s])
			return err == nil && at == first.String()
		}, "shard %d moves", s)
	}

	moves(0)
	<-stopping
	require.ErrorIs(t, r.Move(within(t), 0, first), kith.ErrMoveInProgress)
	short, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	_, err := asked(short, hangs)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	movesTo(1)
	movesTo(2)
	rep, err := r.Report(within(t))
	require.NoError(t, err)
	require.Len(t, rep.Moves, 1)
	require.Equal(t, kith.MoveHolds, rep.Moves[0].Phase)
	require.Equal(t, []any{kith.ShardID(0), second, first}, []any{rep.Moves[0].Shard, rep.Moves[0].From, rep.Moves[0].To})
	require.EqualValues(t, 1, nodes[1].Stats().Types[0].Panics)
	at, err := asked(within(t), ids[3])
	require.NoError(t, err)
	require.Equal(t, second.String(), at)
	var named kith.Incident
	select {
	case named = <-told:
	case <-within(t).Done():
		require.Fail(t, "the stop call that hangs is not told")
	}
	require.Equal(t, []any{"x", hangs, kith.ShardID(0), "stop"}, []any{named.Type, named.ID, named.Shard, named.Text})
	require.False(t, named.Fence.IsZero())
	require.EqualValues(t, 1, nodes[1].Stats().Types[0].StopsHung)

	close(free)
	at, err = asked(within(t), hangs)
	require.NoError(t, err)
	require.Equal(t, first.String(), at)
}
