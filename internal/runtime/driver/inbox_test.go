// Tests of the inbox: bodies are copies of their own, and small ones cost next to no allocation.

package driver

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// TestInboxCopiesBodies: what is handed on has the bytes that came, whatever becomes of the buffer that they were read
// into, and of what others append to their bodies.
func TestInboxCopiesBodies(t *testing.T) {
	b := newInbox()
	buf := make([]byte, 2*inboxSmall)
	size := func(i int) int { return (i * 7) % len(buf) }
	const n = 500
	for i := range n {
		for j := range buf {
			buf[j] = byte(i)
		}
		b.frame(peer.ID{}, peer.ID{}, wire.KindStatus, 0, buf[:size(i)])
	}
	var frames []frame
	for len(frames) < n {
		require.Len(t, b.wake, 1, "told that there is more")
		<-b.wake
		frames, _ = b.take(frames, nil)
	}
	require.Empty(t, b.wake)
	for i := range frames {
		_ = append(frames[i].body, 255)
	}
	for i, f := range frames {
		require.True(t, bytes.Equal(bytes.Repeat([]byte{byte(i)}, size(i)), f.body), "body %d", i)
	}
}

// TestSmallBodiesShareRoom: heartbeats of a node that has nothing to do make an allocation for a hundred of them.
func TestSmallBodiesShareRoom(t *testing.T) {
	b, body := newInbox(), make([]byte, 24)
	var frames []frame
	require.Less(t, testing.AllocsPerRun(20, func() {
		for range 1000 {
			b.frame(peer.ID{}, peer.ID{}, wire.KindHeartbeat, 0, body)
			frames, _ = b.take(frames[:0], nil)
		}
	}), 10.0)
}

func standing(n uint64) peer.ID { return peer.ID{Addr: peer.MustAddr("10.0.0.1:1"), Inc: n} }

// A peer that sends more than is worked off waits behind its own frames, and so do all that are no members, together:
// what another one sends is taken in the next turn, and finds room however full it is (CARD-3).
func TestInboxIsFair(t *testing.T) {
	b := newInbox()
	big := make([]byte, smallFrame+1)
	for n := range 2 * lineFrames {
		b.frame(standing(1), standing(1), wire.KindStatus, time.Duration(n), nil)
		b.frame(peer.ID{}, standing(uint64(100+n)), wire.KindStatus, time.Duration(n), nil)
	}
	require.EqualValues(t, 2*lineFrames, b.dropped.Load())
	for n := range lineFrames {
		b.frame(standing(2), standing(2), wire.KindGossip, 0, big)
		b.frame(standing(3), standing(3), wire.KindGossip, 0, big)
		require.LessOrEqual(t, b.frames, inboxFrames, n)
	}
	require.Equal(t, inboxFrames, b.frames)
	b.frame(standing(4), standing(4), wire.KindGossip, 0, big)
	require.EqualValues(t, 2*lineFrames+1, b.dropped.Load(), "no room")
	b.frame(standing(4), standing(4), wire.KindHeartbeat, 0, make([]byte, 16))
	frames, _ := b.take(nil, nil)
	require.Len(t, frames, 4*queueTurn+1)
	require.Equal(t, standing(4), frames[len(frames)-1].from)
	for turns := 1; len(b.order) > 0; turns++ {
		require.LessOrEqual(t, turns, lineFrames/queueTurn)
		frames, _ = b.take(frames, nil)
	}
	require.Zero(t, b.bytes+b.frames+len(b.lines))
	var next [2]time.Duration // in the order in which they came
	for _, f := range frames {
		if f.kind != wire.KindStatus {
			continue
		}
		i := min(1, int(f.from.Inc/100))
		require.Equal(t, next[i], f.arrived)
		next[i]++
	}
	require.Equal(t, [2]time.Duration{lineFrames, lineFrames}, next)
}

// One line is bounded by bytes too, and leaves room for others.
func TestInboxLinesAreBounded(t *testing.T) {
	b := newInbox()
	body := make([]byte, wire.MaxControlFrame)
	for range 20 {
		b.frame(standing(1), standing(1), wire.KindGossip, 0, body)
	}
	require.Equal(t, lineBytes, b.bytes)
	b.frame(standing(2), standing(2), wire.KindGossip, 0, body)
	require.Equal(t, lineBytes+len(body), b.bytes)
	b.close()
	b.frame(standing(2), standing(2), wire.KindGossip, 0, nil)
	require.Zero(t, b.frames)
}
