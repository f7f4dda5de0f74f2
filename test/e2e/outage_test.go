// Tests of outages on real sockets: each node says which member is lost and when what lived there is served again.

package e2e_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
)

// TestOutagesSayWhenAnEntityLivesAgain: from the first accusation until another node answers, all others name the lost
// node, and what lived there; nothing answers before they said it would (AVL-5).
func TestOutagesSayWhenAnEntityLivesAgain(t *testing.T) {
	t.Parallel()
	var regions [3]*kith.Region
	nodes := cluster(t, 3, func(_ int, cfg *kith.Config) {
		cfg.Patience, cfg.Membership, cfg.Resolver.StableAfter = kith.PatienceCalm, quick(), time.Second
	}, func(i int, n *kith.Node) {
		typ := echoType("echo", kith.Worker, newLedger(), func() *kith.Node { return n })
		var err error
		regions[i], err = n.Register(typ)
		require.NoError(t, err)
	})
	lost, asker := nodes[2], nodes[0]
	there, shards := "", map[kith.ShardID]bool{}
	for _, n := range nodes {
		require.Empty(t, n.Health().Outages)
	}
	eventually(t, func() bool {
		clear(shards)
		for i := range 200 {
			id := fmt.Sprint(i)
			at, err := regions[0].Ask(within(t), id, []byte("where"))
			if err == nil && string(at) == lost.ID().String() {
				there = id
				shards[regions[0].Shard(id)] = true
			}
		}
		return len(shards) > 0
	}, "something lives at the third node")
	closes(t, lost)

	first := func() (o kith.Outage) {
		for _, x := range asker.Health().Outages {
			if x.Member == lost.ID() {
				return x
			}
		}
		return o
	}
	eventually(t, func() bool { return !first().Since.IsZero() }, "the outage is known")
	o := first()
	require.False(t, o.ServedBy.IsZero())
	require.GreaterOrEqual(t, o.Shards, len(shards))
	require.Contains(t, o.String(), "served again from")
	eventually(t, func() bool { return first().Decided }, "it is decided")
	decided := first()
	require.Equal(t, o.Since, decided.Since)
	require.Equal(t, o.Shards, decided.Shards)
	require.Contains(t, decided.String(), "is lost since")

	// Behind the end of the outage another node owns it, which may not have answered in time either on a busy machine.
	names := func(why *kith.UnansweredError) {
		require.Equal(t, []any{"echo", there}, []any{why.Type, why.ID})
		if time.Now().Before(decided.ServedBy) {
			require.Equal(t, lost.ID(), why.Owner)
		}
	}
	called := make(chan error, 1)
	require.NoError(t, regions[0].AskFunc(50*time.Millisecond, there, []byte("where"), func(_ []byte, err error) {
		called <- err
	}))
	if err := <-called; err != nil { // else it is served already: the machine stood still
		var why *kith.UnansweredError
		require.ErrorAs(t, err, &why)
		names(why)
	}
	told := !time.Now().Before(decided.ServedBy.Add(-2 * time.Second)) // a machine that stood still asks too late
	for ctx := within(t); ; {
		limited, cancel := context.WithTimeout(ctx, time.Second)
		_, err := regions[0].Ask(limited, there, []byte("where"))
		cancel()
		if err == nil {
			break
		}
		require.NoError(t, ctx.Err())
		var why *kith.UnansweredError
		require.ErrorAs(t, err, &why)
		names(why)
		require.ErrorContains(t, err, fmt.Sprintf("id %q of type \"echo\"", there))
		if why.Lost { // else it is over just now
			require.Positive(t, why.ServedIn)
			require.False(t, decided.ServedBy.Before(time.Now().Add(why.ServedIn-time.Minute)))
			require.False(t, time.Now().Add(why.ServedIn).Before(decided.ServedBy), "not before it may be")
			require.ErrorContains(t, err, "served again in")
		}
		told = told || why.Lost
	}
	require.True(t, told, "an ask that is not answered says when it would be")
	require.False(t, time.Now().Before(decided.ServedBy), "it was served before it could be")
	eventually(t, func() bool { return len(asker.Health().Outages) == 0 }, "it is over")
}
