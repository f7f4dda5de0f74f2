// The composition: which machine gets what, in which order effects come out, and how a leave runs through both.

package node

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/shard"
	"github.com/kith-io/kith/wire"
)

func id(host string) peer.ID { return peer.ID{Addr: peer.MustAddr(host + ":7355"), Inc: 7} }

var books = shard.Settings{Name: "book", Shards: 4}

// alone returns a node that has formed a cluster of one, with its first effects.
func alone(t *testing.T) (*Node, *Effects) {
	t.Helper()
	n, e := New(Config{Self: id("10.0.0.1"), Seed: 1}), &Effects{}
	require.NoError(t, n.Do(time.Second, membership.JoinCommand{WallMillis: 1}))
	n.Drain(e)
	require.NotNil(t, e.View)
	return n, e
}

// run ticks through deadlines until stop says so or the time is over, and returns all that came out.
func run(t *testing.T, n *Node, from, limit time.Duration, stop func(e *Effects) bool) (now time.Duration) {
	t.Helper()
	e := &Effects{}
	for now = from; ; {
		next, ok := n.Next()
		require.True(t, ok)
		now = max(now, next)
		require.LessOrEqual(t, now, limit, "did not come to pass")
		n.Tick(now)
		n.Drain(e)
		if stop(e) {
			return now
		}
	}
}

func TestViewReachesShardingWithinTheStep(t *testing.T) {
	n, e := alone(t)
	m, ok := e.View.SelfMember()
	require.True(t, ok)
	require.Equal(t, membership.Up, m.Status)
	require.NoError(t, n.Do(2*time.Second, shard.RegisterCommand{Settings: books}))
	n.Drain(e)
	var kinds []shard.EventKind
	for _, ev := range e.ShardEvents {
		kinds = append(kinds, ev.Kind)
	}
	require.Contains(t, kinds, shard.CoordinatorReady, "sharding knows the view: this node is the oldest")
}

func TestShardIsHostedBeforeItsRouteIsTold(t *testing.T) {
	n, e := alone(t)
	require.NoError(t, n.Do(2*time.Second, shard.RegisterCommand{Settings: books}))
	n.Drain(e)
	require.NoError(t, n.Do(2*time.Second, shard.WantCommand{Type: books.ID(), Shards: []route.ShardID{3}}))
	n.Drain(e)
	if len(e.Hosts) == 0 {
		run(t, n, 2*time.Second, 10*time.Second, func(got *Effects) bool { *e = *got; return len(got.Hosts) > 0 })
	}
	require.Equal(t, route.ShardID(3), e.Hosts[0].Shard)
	require.Len(t, e.Routes, 1)
	require.Equal(t, shard.RouteLocal, e.Routes[0].State)
	require.Equal(t, e.Hosts[0].Fence, e.Routes[0].Fence)
	require.Equal(t, e.View == nil, true, "the view did not change")
}

// TestLeaveStopsShardsFirst: the member leaves only when what lives here has been stopped, within the same Drain that
// learns it; and the leave of the last member ends the node.
func TestLeaveStopsShardsFirst(t *testing.T) {
	n, e := alone(t)
	require.NoError(t, n.Do(2*time.Second, shard.RegisterCommand{Settings: books}))
	n.Drain(e)
	require.NoError(t, n.Do(2*time.Second, shard.WantCommand{Type: books.ID(), Shards: []route.ShardID{0}}))
	n.Drain(e)
	now := 2 * time.Second
	if len(e.Hosts) == 0 {
		now = run(t, n, now, 10*time.Second, func(got *Effects) bool { *e = *got; return len(got.Hosts) > 0 })
	}
	fence := e.Hosts[0].Fence

	require.NoError(t, n.Do(now, LeaveCommand{}))
	n.Drain(e)
	if len(e.Hosts) == 0 {
		now = run(t, n, now, 30*time.Second, func(got *Effects) bool { *e = *got; return len(got.Hosts) > 0 })
	}
	require.True(t, e.Hosts[0].Stop)
	require.Nil(t, e.Ended, "it hosts a shard still")
	require.NoError(t, n.Do(now, LeaveCommand{}), "repeating is harmless")
	n.Drain(e)
	require.Nil(t, e.Ended)

	require.NoError(t, n.Do(now, shard.StoppedCommand{Type: books.ID(), Shard: 0, Fence: fence}))
	n.Drain(e)
	if e.Ended == nil {
		run(t, n, now, 60*time.Second, func(got *Effects) bool { *e = *got; return got.Ended != nil })
	}
	require.Equal(t, membership.EndLeft, e.Ended.Kind)
}

// TestForcedLeaveDoesNotWait: when the time for giving back is over, the member leaves with what it hosts.
func TestForcedLeaveDoesNotWait(t *testing.T) {
	n, e := alone(t)
	require.NoError(t, n.Do(2*time.Second, shard.RegisterCommand{Settings: books}))
	n.Drain(e)
	require.NoError(t, n.Do(3*time.Second, LeaveCommand{Force: true}))
	n.Drain(e)
	if e.Ended == nil {
		run(t, n, 3*time.Second, 60*time.Second, func(got *Effects) bool { *e = *got; return got.Ended != nil })
	}
	require.Equal(t, membership.EndLeft, e.Ended.Kind)
	require.ErrorIs(t, n.Do(time.Hour, membership.LeaveCommand{}), membership.ErrEnded)
}

func TestHandleRoutesByKind(t *testing.T) {
	n, _ := alone(t)
	other := id("10.0.0.2")
	for k := range 256 {
		kind := wire.Kind(k)
		err := n.Handle(5*time.Second, 5*time.Second, other, kind, []byte{1, 2, 3})
		switch owner := kind.Owner(); {
		case owner == wire.OwnerMembership, owner == wire.OwnerShard, owner == wire.OwnerCourier, owner == wire.OwnerWatch,
			kind == wire.KindHeartbeat, kind == wire.KindHeartbeatAck:
			require.Error(t, err, "%s: three bytes are nonsense", kind)
			require.NotErrorIs(t, err, ErrNotMine, "%s", kind)
		default:
			require.ErrorIs(t, err, ErrNotMine, "%s", kind)
		}
	}
}

func TestDoRefusesWhatIsNoCommand(t *testing.T) {
	n, _ := alone(t)
	require.ErrorIs(t, n.Do(5*time.Second, "leave, please"), ErrBadCommand)
	err := n.Do(5*time.Second, membership.DownCommand{ID: id("10.0.0.9")})
	require.True(t, errors.Is(err, membership.ErrUnknownMember), "%v", err)
}

// TestDrainTwiceIsEmpty: effects come out once.
func TestDrainTwiceIsEmpty(t *testing.T) {
	n, e := alone(t)
	n.Drain(e)
	require.Nil(t, e.View)
	require.Empty(t, e.Events)
	require.Empty(t, e.Mail)
	require.Empty(t, e.Hosts)
	require.Nil(t, e.Ended)
}

// TestNextIsTheEarliestOfBoth: the node sleeps no longer than either machine may.
func TestNextIsTheEarliestOfBoth(t *testing.T) {
	n, _ := alone(t)
	m, ok := n.members.Next()
	require.True(t, ok)
	next, ok := n.Next()
	require.True(t, ok)
	require.LessOrEqual(t, next, m)
	if s, some := n.shards.Next(); some {
		require.LessOrEqual(t, next, s)
	}
}
