// Tests of the inbox: bodies are copies of their own, and small ones cost next to no allocation.

package driver

import (
	"bytes"
	"testing"

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
		b.frame(peer.ID{}, wire.KindStatus, 0, buf[:size(i)])
	}
	frames, _ := b.take(nil, nil)
	require.Len(t, frames, n)
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
			b.frame(peer.ID{}, wire.KindHeartbeat, 0, body)
			frames, _ = b.take(frames[:0], nil)
		}
	}), 10.0)
}
