// Tests of the lines of callers that wait for room.

package driver

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/core/flow"
	"github.com/kith-io/kith/internal/runtime/transport"
	"github.com/kith-io/kith/wire"
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

// A link that has room calls one caller, and the one that got room calls the next: the others sleep on (SHD-5).
func TestRoomCallsOneByOne(t *testing.T) {
	var r waitLine
	a, b, none := lineKey{link: new(transport.Link)}, lineKey{link: new(transport.Link)}, lineKey{}
	r.ring(a) // nobody waits
	first, second, third := r.enter(a), r.enter(a), r.enter(a)
	other, mailbox := r.enter(b), r.enter(none)

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
	r.ring(none)
	require.True(t, mailbox.called())
	r.leave(mailbox)
	r.leave(fourth)
	require.Empty(t, r.lines)
	require.Zero(t, r.waiting.Load())
}

func TestLineOf(t *testing.T) {
	require.Zero(t, lineOf(nil))
	require.Zero(t, lineOf(&transport.FullError{}), "made by no link")
}

// A caller that waits for an entity is called when that has room, and one that goes to another line leaves the room to
// the next; the end of a connection calls the first of each line behind it (SHD-4).
func TestRoomBehindALink(t *testing.T) {
	var r waitLine
	link := new(transport.Link)
	e, f := lineKey{link, wire.Full{Hash: 1}}, lineKey{link, wire.Full{Hash: 2}}
	first, second, other, itself := r.enter(e), r.enter(e), r.enter(f), r.enter(lineKey{link: link})
	elsewhere := r.enter(lineKey{new(transport.Link), e.full})
	r.ring(e)
	require.True(t, first.called())
	require.False(t, second.called() || other.called() || itself.called())
	r.move(first, f)
	require.True(t, second.called())
	r.ringBehind(link)
	require.True(t, second.called())
	require.True(t, other.called())
	require.False(t, first.called() || itself.called() || elsewhere.called())
}

// A caller that waits for an entity of this node is called when that has room, and no other (SHD-4).
func TestRoomAtAnEntityHere(t *testing.T) {
	var r waitLine
	at := lineKey{full: flow.FullEntity(1, 2, 3)}
	mine, other, none := r.enter(at), r.enter(lineKey{full: flow.FullEntity(1, 2, 4)}), r.enter(lineKey{})
	r.ringHere(1, 2, 3)
	require.True(t, mine.called())
	require.False(t, other.called() || none.called())
}
