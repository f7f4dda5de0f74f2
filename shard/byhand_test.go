// What a program says by hand: moves that it wants from any node, readiness, wishes (SHD-6, SHD-12).

package shard

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/shard/strategy"
)

func (n *testNode) askMove(nonce uint64, s route.ShardID, to peer.ID) error {
	err := n.m.Do(n.w.now, AskMoveCommand{orders.ID(), s, to, nonce})
	n.collect()
	return err
}

// A move may be asked for at any node; what the coordinator says to it comes back as it was said (SHD-12).
func TestMoveByHandAtAnyNode(t *testing.T) {
	w := movable(t, 4)
	boss, owner, next, other := w.nodes[0], w.nodes[1], w.nodes[2], w.nodes[3]
	s := of(owner)
	require.NoError(t, other.askMove(1, s, next.id))
	w.flow()
	require.Equal(t, []MoveAnswer{{orders.ID(), 1, nil}}, other.answers)
	require.Contains(t, next.hosted, key(orders.ID(), s))
	w.agree(orders, s)
	require.NoError(t, boss.askMove(1, s, owner.id))
	w.flow()
	require.Equal(t, []MoveAnswer{{orders.ID(), 1, nil}}, boss.answers, "where the coordinator is, too")
	w.agree(orders, s)

	stranger := peer.ID{Addr: peer.MustAddr("10.0.0.99:7000"), Inc: 4}
	for nonce, c := range map[uint64]struct { // each alone: no order
		s    route.ShardID
		to   peer.ID
		want error
	}{2: {s, owner.id, ErrAtHome}, 3: {s, stranger, ErrUnknownNode}} {
		require.NoError(t, other.askMove(nonce, c.s, c.to))
		w.flow()
		last := other.answers[len(other.answers)-1]
		require.Equal(t, nonce, last.Nonce)
		require.ErrorIs(t, last.Err, c.want)
		require.ErrorContains(t, last.Err, c.to.String())
		require.ErrorContains(t, last.Err, boss.id.String(), "who says so")
	}
	w.slowStop = true
	require.NoError(t, other.askMove(4, s, next.id))
	require.NoError(t, other.askMove(5, s, next.id))
	w.flow()
	require.NoError(t, other.answers[len(other.answers)-2].Err)
	require.ErrorIs(t, other.answers[len(other.answers)-1].Err, ErrMoveInProgress)
}

// What a node can say itself it says at once.
func TestMoveByHandErrors(t *testing.T) {
	w := movable(t, 3)
	owner, next := w.nodes[1], w.nodes[2]
	s := of(owner)
	require.ErrorIs(t, next.m.Do(w.now, AskMoveCommand{99, s, next.id, 1}), ErrUnknownType)
	require.ErrorIs(t, next.askMove(1, 30, next.id), ErrUnknownShard)
	require.ErrorIs(t, next.askMove(0, s, next.id), ErrBadCommand)
	require.NoError(t, next.askMove(1, s, next.id))
	require.ErrorIs(t, next.askMove(1, s, next.id), ErrBadCommand, "the nonce is in use")
	next.m.cfg.MaxMoves = 1
	require.ErrorIs(t, next.askMove(2, s, next.id), ErrTooManyMoves)
	next.m.cfg.MaxMoves = 9
	next.m.cfg.Moves = nil
	require.ErrorIs(t, next.askMove(2, s, next.id), ErrOldPeer)
	late := w.join()
	late.do(RegisterCommand{Settings: orders})
	require.ErrorIs(t, late.askMove(1, s, next.id), ErrNotCoordinator)
	require.ErrorIs(t, late.askMove(1, s, next.id), ErrNotCoordinator, "what was refused does not count")
}

// A move to an identity that nobody can have is refused at once: no message says it, so no answer would come, and the
// question would count for ever.
func TestMoveByHandToNobody(t *testing.T) {
	w := movable(t, 3)
	owner, next := w.nodes[1], w.nodes[2]
	for _, to := range []peer.ID{{}, {Addr: owner.id.Addr}, {Inc: 7}} {
		require.ErrorIs(t, next.askMove(1, of(owner), to), ErrUnknownNode)
		require.Empty(t, next.m.types[orders.ID()].region.asked)
	}
}

// What a coordinator does not answer because it goes is answered when its successor is followed.
func TestMoveByHandEndsWithTheReign(t *testing.T) {
	w := movable(t, 3)
	boss, owner, next := w.nodes[0], w.nodes[1], w.nodes[2]
	boss.crash()
	require.NoError(t, next.askMove(7, of(owner), next.id))
	require.Empty(t, next.answers)
	w.set(boss.id, membership.Down)
	w.publish()
	require.Len(t, next.answers, 1)
	require.ErrorIs(t, next.answers[0].Err, ErrNotCoordinator)
	require.Equal(t, uint64(7), next.answers[0].Nonce)
	require.Empty(t, next.m.types[orders.ID()].region.asked)
}

// A node with an application that is not ready gets no shards, keeps those that it has, and gets its share when it is
// ready; to a coordinator that does not know of readiness it says that it does not host (SHD-6).
func TestReadiness(t *testing.T) {
	w := placedBy(t, 2, nil)
	boss, late := w.nodes[0], w.join()
	w.publish()
	w.promote()
	w.publish()
	late.do(RegisterCommand{Settings: orders})
	late.do(ReadyCommand{orders.ID(), false})
	w.pass(time.Minute)
	require.Empty(t, late.hosted)
	require.Equal(t, "not ready", boss.m.types[orders.ID()].coord.moves.view().Region(late.id).Why())
	require.ErrorIs(t, boss.move(of(boss), late), ErrIneligible)
	late.do(ReadyCommand{orders.ID(), true})
	w.pass(2 * time.Minute)
	require.Len(t, late.hosted, 10)
	late.do(ReadyCommand{orders.ID(), false})
	late.do(ReadyCommand{orders.ID(), false})
	w.pass(time.Minute)
	require.Len(t, late.hosted, 10, "it keeps what it has")
	require.ErrorIs(t, late.m.Do(w.now, ReadyCommand{99, true}), ErrUnknownType)

	// The next coordinator term hears of it in the report.
	boss.do(LeaveCommand{})
	w.pass(5 * time.Second)
	require.True(t, boss.drained)
	require.Len(t, late.hosted, 10)
	require.Len(t, w.nodes[1].hosted, 20)
	for _, st := range []membership.Status{membership.Leaving, membership.Exiting, membership.Removed} {
		w.set(boss.id, st)
		w.publish()
		w.pass(time.Second)
	}
	next := w.nodes[1].m.types[orders.ID()].coord
	require.Equal(t, "not ready", next.moves.view().Region(late.id).Why())

	late.m.cfg.Moves = nil // as if the coordinator spoke version 4
	late.do(ReadyCommand{orders.ID(), true})
	late.do(ReadyCommand{orders.ID(), false})
	w.flow()
	require.False(t, next.client(late.id).hosts, "such a one knows no other word for it")
}

// Wishes of a type with strategy.External are carried out by rounds (SHD-6).
func TestWishesAreCarriedOut(t *testing.T) {
	w := placedBy(t, 3, strategy.NewExternal(orders.Shards))
	boss := w.nodes[0]
	var wishes []strategy.Wish
	for s := range route.ShardID(3) {
		wishes = append(wishes, strategy.Wish{Shard: s, Home: boss.id.Addr})
	}
	boss.do(WishesCommand{orders.ID(), 4, wishes})
	require.ErrorIs(t, boss.m.Do(w.now, WishesCommand{orders.ID(), 4, nil}), strategy.ErrStaleVersion)
	w.pass(30 * time.Second)
	for _, wish := range wishes {
		require.Contains(t, boss.hosted, key(orders.ID(), wish.Shard))
	}
	w.pass(time.Minute)
	require.LessOrEqual(t, count(boss.events, MoveDone), 3, "nothing else moves")
	other := Settings{Name: "other", Shards: 4}
	boss.do(RegisterCommand{Settings: other})
	require.ErrorIs(t, boss.m.Do(w.now, WishesCommand{other.ID(), 1, nil}), ErrNotExternal)
	require.ErrorIs(t, boss.m.Do(w.now, WishesCommand{77, 1, nil}), ErrUnknownType)
	none := Settings{Name: "none", Shards: 4}
	boss.do(RegisterCommand{Settings: none, Strategy: (*strategy.External)(nil)})
	require.ErrorIs(t, boss.m.Do(w.now, WishesCommand{none.ID(), 1, nil}), ErrNotExternal)
}
