// Tests of the lines of those who wait for room.

package driver

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/transport"
)

// called reports whether a turn was called since it looked last.
func (t *turn) called() bool {
	select {
	case <-t.bell:
		return true
	default:
		return false
	}
}

// A link that has room calls one caller, and who got room calls the next: the others sleep on (SHD-5).
func TestRoomCallsOneByOne(t *testing.T) {
	var r waitLine
	a, b := new(transport.Link), new(transport.Link)
	r.ring(a) // nobody waits
	first, second, third := r.enter(a), r.enter(a), r.enter(a)
	other, mailbox := r.enter(b), r.enter(nil)

	r.ring(a)
	require.True(t, first.called())
	for _, w := range []*turn{second, third, other, mailbox} {
		require.False(t, w.called())
	}
	r.ring(a)
	require.True(t, first.called(), "it found no room and stands first still")
	r.leave(first)
	require.True(t, second.called(), "there may be more")
	require.False(t, third.called())

	// One that gives up in the middle, or was called and gives up, keeps nobody from being called.
	fourth := r.enter(a)
	r.leave(third)
	require.True(t, second.called())
	r.ring(a)
	r.leave(second)
	require.True(t, fourth.called())

	r.ringAll()
	for _, w := range []*turn{fourth, other, mailbox} {
		require.True(t, w.called())
	}
	r.move(fourth, b)
	r.ring(a)
	require.False(t, fourth.called())
	r.leave(other)
	require.True(t, fourth.called())
	r.ring(nil)
	require.True(t, mailbox.called())
	r.leave(mailbox)
	r.leave(fourth)
	require.Empty(t, r.lines)
	require.Zero(t, r.waiting.Load())
}

func TestLineOf(t *testing.T) {
	require.Nil(t, lineOf(nil))
	require.Nil(t, lineOf(&transport.FullError{}), "made by no link")
}
