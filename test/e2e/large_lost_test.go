// Tests of large messages that meet a bound, or a receiver that goes away: each has one end, which its sender learns.

package e2e_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/route"
)

// TestLargeMessageMovesWithItsShard: the owner leaves while a large message is on its way to it, and what was sent
// behind it waits; all of it arrives at the next owner, once and in order (SHD-7, SHD-9).
func TestLargeMessageMovesWithItsShard(t *testing.T) {
	t.Parallel()
	c := startBlobs(t, 2, kith.Worker, nil)
	var id string
	for i := 0; id == ""; i++ { // one that lives at nodes[2]
		try := fmt.Sprint("entity", i)
		require.NoError(t, c.region.TellWait(within(t), try, noise(10, 1)))
		eventually(t, func() bool { return len(c.seen.of(try)) == 1 }, "the first")
		before := c.nodes[2].Stats().Envelopes
		require.NoError(t, c.region.TellWait(within(t), try, noise(10, 2)))
		eventually(t, func() bool { return len(c.seen.of(try)) == 2 }, "the second")
		if c.nodes[2].Stats().Envelopes > before {
			id = try
		}
	}
	large := noise(64<<20, 3)
	begun, done := make(chan struct{}), make(chan error, 1)
	go func() {
		first := true
		done <- c.region.TellBulk(within(t), id, large, func(int, int) {
			if first {
				close(begun)
				first = false
			}
		})
	}()
	<-begun
	require.NoError(t, c.region.TellWait(within(t), id, noise(10, 4)))
	require.NoError(t, c.nodes[2].Leave(within(t)))
	require.NoError(t, <-done)
	eventually(t, func() bool { return len(c.seen.of(id)) == 4 }, "all came")
	want := [][32]byte{sha256.Sum256(noise(10, 1)), sha256.Sum256(noise(10, 2)), sha256.Sum256(large),
		sha256.Sum256(noise(10, 4))}
	require.Equal(t, want, c.seen.of(id))
	c.idle(t, c.nodes[0], c.nodes[1])
}

// TestLargeMessageLosesItsReceiver: a receiver that is gone in the middle is an error to TellBulk and to the asker, and
// an undelivered message of Tell.
func TestLargeMessageLosesItsReceiver(t *testing.T) {
	t.Parallel()
	c := startBlobs(t, 1, kith.Worker, func(i int, cfg *kith.Config) {
		cfg.MaxMessage, cfg.BulkBudget = 16<<20, 16<<20
		if i == 0 {
			cfg.BulkBudget = 64 << 20
		}
	})
	// One handler holds the receiver's budget: the others have begun, or wait, and none of them can end.
	c.seen.wait, c.seen.into = make(chan struct{}), make(chan struct{}, 16)
	done, asked := make(chan error, 1), make(chan error, 1)
	require.NoError(t, c.region.Tell("first", noise(16<<20, 0)))
	<-c.seen.into
	go func() { done <- c.region.TellBulk(within(t), shardOther(c, "first", 1), noise(16<<20, 0), nil) }()
	require.NoError(t, c.region.Tell(shardOther(c, "first", 2), noise(16<<20, 0)))
	go func() {
		_, err := c.region.Ask(within(t), shardOther(c, "first", 3), noise(16<<20, 0))
		asked <- err
	}()
	eventually(t, func() bool { return c.nodes[1].Stats().Transport.Bulk.Waiting == 3 }, "they have begun")
	closed := make(chan error, 1)
	go func() { closed <- c.nodes[1].Close() }()
	require.ErrorIs(t, <-done, kith.ErrPeerLost)
	require.ErrorIs(t, <-asked, kith.ErrPeerLost)
	eventually(t, func() bool { return c.lost.of(kith.ErrPeerLost) == 2 }, "both are reported: nobody knows of the first")
	close(c.seen.wait)
	<-closed // with an error, when the handler had to wait for too long
	c.idle(t, c.nodes[0])
}

// shardOther returns the nth id with a shard that is neither that of id nor of the ids before it.
func shardOther(c *blobCluster, id string, nth int) string {
	taken := map[kith.ShardID]bool{c.region.Shard(id): true}
	for i := 0; ; i++ {
		try := fmt.Sprint("other", i)
		if s := c.region.Shard(try); !taken[s] {
			taken[s] = true
			if nth--; nth == 0 {
				return try
			}
		}
	}
}

// TestLargeMessageBounds: size, budget and parking refuse with typed errors that name them, and there is room again
// later.
func TestLargeMessageBounds(t *testing.T) {
	t.Parallel()
	c := startBlobs(t, 1, kith.Blocking, func(i int, cfg *kith.Config) {
		cfg.MaxMessage, cfg.BulkBudget, cfg.Sharding.ParkBytes = 1<<20, 2<<20, 128<<10
		if i == 1 {
			cfg.BulkBudget = 4 << 20 // of which one peer has half
		}
	})
	err := c.region.Tell("a", make([]byte, 1<<20+1))
	require.ErrorIs(t, err, kith.ErrTooLarge)
	require.ErrorContains(t, err,
		"1048576 bytes are the most of type \"blob\" at "+c.nodes[0].ID().String()+", got 1048577")
	_, err = c.region.Ask(within(t), "a", make([]byte, 1<<20+1))
	require.ErrorIs(t, err, kith.ErrTooLarge)
	require.ErrorIs(t, c.region.TellBulk(within(t), "a", make([]byte, 1<<20+1), nil), kith.ErrTooLarge)
	require.ErrorIs(t, c.region.TellBulk(within(t), "", make([]byte, 1<<20), nil), kith.ErrBadID)

	c.seen.wait, c.seen.into = make(chan struct{}), make(chan struct{}, 1000)
	for range 2 { // into the receiver's budget
		require.NoError(t, c.region.Tell("a", noise(1<<20, 0)))
	}
	eventually(t, func() bool { return c.nodes[0].Stats().LargeUnderway == 0 }, "they are taken")
	require.Equal(t, 2<<20, c.nodes[1].Stats().Transport.Bulk.Held)
	for range 2 { // into this node's
		require.NoError(t, c.region.Tell("a", noise(1<<20, 0)))
	}
	err = c.region.Tell("a", noise(1<<20, 0))
	require.ErrorIs(t, err, kith.ErrLinkFull)
	require.ErrorContains(t, err, "2097152 bytes of large messages")
	eventually(t, func() bool { return c.nodes[1].Stats().Transport.Bulk.Waiting == 1 }, "the next one waits for room")
	sent := 4
	for err = nil; err == nil; sent++ { // behind them, small ones park
		err = c.region.Tell("a", noise(1000, 0))
		require.Less(t, sent, 1000)
	}
	sent--
	require.ErrorIs(t, err, kith.ErrParkFull)
	ctx, cancel := context.WithCancel(within(t))
	cancel()
	require.ErrorIs(t, c.region.TellWait(ctx, "a", noise(1<<20, 0)), context.Canceled)
	waited := make(chan error, 1)
	go func() { waited <- c.region.TellWait(within(t), "a", noise(1<<20, 0)) }()
	close(c.seen.wait)
	require.NoError(t, <-waited)
	eventually(t, func() bool { return len(c.seen.of("a")) == sent+1 }, "all came")
	c.idle(t, c.nodes...)
}

// fullReceiver starts a cluster with a receiver that has room for one large message, which its handler holds until
// c.seen.wait is closed.
func fullReceiver(t *testing.T, mode kith.Mode) *blobCluster {
	c := startBlobs(t, 1, mode, func(i int, cfg *kith.Config) {
		cfg.MaxMessage, cfg.BulkBudget = 4<<20, 16<<20
		if i == 1 {
			cfg.BulkBudget = 4 << 20
		}
	})
	c.seen.wait, c.seen.into = make(chan struct{}), make(chan struct{}, 16)
	require.NoError(t, c.region.Tell("a", noise(4<<20, 0)))
	<-c.seen.into
	return c
}

// TestLargeAskThatNobodyWaitsFor is given up at both ends.
func TestLargeAskThatNobodyWaitsFor(t *testing.T) {
	t.Parallel()
	c := fullReceiver(t, kith.Blocking)
	ctx, cancel := context.WithCancel(within(t))
	asked := make(chan error, 1)
	go func() {
		_, err := c.region.Ask(ctx, shardOther(c, "a", 1), noise(4<<20, 100))
		asked <- err
	}()
	eventually(t, func() bool { return c.nodes[1].Stats().Transport.Bulk.Waiting == 1 }, "it waits for room")
	cancel()
	require.ErrorIs(t, <-asked, context.Canceled)
	eventually(t, func() bool { return c.nodes[1].Stats().Transport.Bulk.Waiting == 0 }, "and no more")
	close(c.seen.wait)
	eventually(t, func() bool { return len(c.seen.of("a")) == 1 }, "the first is handled")
	require.Empty(t, c.seen.of(shardOther(c, "a", 1)))
	c.idle(t, c.nodes...)
}

// TestLargeMessageAtTheEnd: a node that is closed notifies its waiters, and reports the rest.
func TestLargeMessageAtTheEnd(t *testing.T) {
	t.Parallel()
	c := fullReceiver(t, kith.Worker)
	defer close(c.seen.wait)
	done := make(chan error, 1)
	go func() { done <- c.region.TellBulk(within(t), shardOther(c, "a", 1), noise(4<<20, 0), nil) }()
	require.NoError(t, c.region.Tell(shardOther(c, "a", 2), noise(4<<20, 0)))
	eventually(t, func() bool { return c.nodes[0].Stats().Transport.Bulk.Begun == 3 }, "they have begun")
	require.NoError(t, c.nodes[0].Close())
	err := <-done
	require.True(t, errors.Is(err, kith.ErrStopped), err)
	require.Equal(t, uint64(1), c.lost.of(kith.ErrStopped))
	require.Zero(t, c.nodes[0].Stats().LargeUnderway)
	require.Zero(t, c.nodes[0].Stats().LargeBytes)
	require.ErrorIs(t, c.region.TellBulk(within(t), "a", noise(4<<20, 0), nil), kith.ErrStopped)
}

// TestLargeRefusalsNameTheirBound: a receiver that takes no message so large is named to every form of send, with its
// bound; a reply that is too large for its asker's node names that node and its bound (SHD-5).
func TestLargeRefusalsNameTheirBound(t *testing.T) {
	t.Parallel()
	const most = 128 << 10
	c := startBlobs(t, 1, kith.Worker, func(i int, cfg *kith.Config) {
		if i == 1 {
			cfg.MaxMessage = most
		}
	})
	want := kith.RefusedError{Peer: c.nodes[1].ID(), Type: "blob", Reason: route.TooLarge, Limit: most}
	refused := func(err error) {
		t.Helper()
		var told *kith.RefusedError
		require.ErrorAs(t, err, &told)
		require.Equal(t, want, *told)
		require.ErrorIs(t, err, kith.ErrTooLarge)
		require.EqualError(t, err,
			fmt.Sprintf("kith: payload too large: 131072 bytes are the most of type \"blob\" at %v", want.Peer))
	}
	b := noise(most+1, 10)
	refused(c.region.TellBulk(within(t), "a", b, nil))
	_, err := c.region.Ask(within(t), "a", b)
	refused(err)
	_, err = c.region.AskWithin(patience, "a", b, nil)
	refused(err)
	answer := make(chan error, 1)
	require.NoError(t, c.region.AskFunc(patience, "a", b, func(_ []byte, err error) { answer <- err }))
	refused(<-answer)
	require.NoError(t, c.region.Tell("a", b))
	eventually(t, func() bool { return c.lost.of(kith.ErrTooLarge) == 1 }, "a report")
	for _, err := range c.lost.errs {
		refused(err)
	}
	require.Empty(t, c.seen.of("a"))
	_, err = c.region.Ask(within(t), "a", noise(100, 200))
	require.NoError(t, err, "what fits is taken")
	c.idle(t, c.nodes...)
}

// TestLargeReplyNamesTheAskersBound: a reply that its asker's node does not take fails the ask at once, with that
// bound.
func TestLargeReplyNamesTheAskersBound(t *testing.T) {
	t.Parallel()
	const most = 128 << 10
	c := startBlobs(t, 1, kith.Blocking, func(i int, cfg *kith.Config) {
		if i == 0 {
			cfg.MaxMessage = most
		}
	})
	_, err := c.region.Ask(within(t), "a", noise(100, most+1))
	var told *kith.RefusedError
	require.ErrorAs(t, err, &told)
	require.Equal(t, kith.RefusedError{Peer: c.nodes[0].ID(), Reason: route.TooLarge, Limit: most}, *told)
	require.EqualError(t, err, fmt.Sprintf(
		"the reply: kith: payload too large: 131072 bytes are the most at %v, got 131073", c.nodes[0].ID()))
	eventually(t, func() bool { return c.nodes[1].Stats().RepliesLost == 1 }, "the other node counts it")
	require.Zero(t, c.nodes[0].Stats().AsksLate)
	_, err = c.region.Ask(within(t), "a", noise(100, most))
	require.NoError(t, err)
	c.idle(t, c.nodes...)
}

// TestFailuresNameTheirPeer: asks and large messages to a node that is lost, or does not answer in time, name it.
func TestFailuresNameTheirPeer(t *testing.T) {
	t.Parallel()
	c := startBlobs(t, 1, kith.Worker, nil)
	c.seen.wait, c.seen.into = make(chan struct{}), make(chan struct{}, 16)
	failed := func(err error, reason kith.Reason) {
		t.Helper()
		var told *kith.PeerError
		require.ErrorAs(t, err, &told)
		require.Equal(t, kith.PeerError{Peer: c.nodes[1].ID(), Type: "blob", Reason: reason}, *told)
		require.ErrorIs(t, err, reason.Err())
		require.ErrorContains(t, err, fmt.Sprintf("%v: type \"blob\" at %v", reason.Err(), c.nodes[1].ID()))
	}
	asked := make(chan error, 2)
	go func() {
		_, err := c.region.Ask(within(t), "a", noise(16, 16))
		asked <- err
	}()
	<-c.seen.into
	require.NoError(t, c.region.AskFunc(time.Hour, "a", noise(16, 16), func(_ []byte, err error) { asked <- err }))
	_, err := c.region.AskWithin(time.Millisecond, "a", noise(16, 16), nil)
	failed(err, route.TimedOut)
	ctx, cancel := context.WithTimeout(within(t), time.Millisecond)
	defer cancel()
	_, err = c.region.Ask(ctx, "a", noise(16, 16))
	failed(err, route.TimedOut)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	closed := make(chan error, 1)
	go func() { closed <- c.nodes[1].Close() }()
	failed(<-asked, route.PeerLost)
	failed(<-asked, route.PeerLost)
	close(c.seen.wait)
	<-closed // with an error, when the handler had to wait for too long
}
