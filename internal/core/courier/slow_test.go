// Tests of slow paths: what is repeated there for nothing makes them slower.

package courier

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// large returns a text of n bytes.
func large(n int) string { return strings.Repeat("x", n) }

// On a path on which an acknowledgement takes longer than the first repetition usually waits, that is learned: after
// the first rounds nothing is sent twice. On a fast path a lost message is repeated soon again (SHD-9).
func TestSlowPathIsNotRepeated(t *testing.T) {
	w := newNet(t, 1, 2, Config{})
	a, b := w.posts[0], w.posts[1]
	w.delay = func() time.Duration { return 400 * time.Millisecond }
	rounds := func(n int) (resent uint64) {
		before := a.m.Stats().Resent
		for range n {
			for range 8 {
				require.NoError(t, w.say(a, b, large(30<<10)))
			}
			require.True(t, w.run(time.Minute, w.quiet))
		}
		return a.m.Stats().Resent - before
	}
	require.LessOrEqual(t, rounds(3), uint64(6))
	require.Zero(t, rounds(10))
	w.delay = func() time.Duration { return time.Millisecond }
	require.Zero(t, rounds(10))
	began := w.now
	lost := false
	w.lose = func(from peer.ID, m *peer.Mail) bool {
		first := m.Kind == wire.KindSegment && !lost
		lost = lost || first
		return first
	}
	require.NoError(t, w.say(a, b, "lost"))
	require.True(t, w.run(time.Minute, func() bool { return b.got[a.id][len(b.got[a.id])-1] == "lost" }))
	require.Less(t, w.now-began, 2*DefaultResendAfter)
}

// What is repeated first is little. When an acknowledgement shows that what was sent once has arrived, no more of it is
// repeated; when it was lost, all of it is, and each once.
func TestRepetitionsBeginSmall(t *testing.T) {
	for _, gone := range []bool{false, true} {
		w := newNet(t, 1, 2, Config{})
		a, b := w.posts[0], w.posts[1]
		w.delay = func() time.Duration { return 200 * time.Millisecond }
		if gone {
			w.delay = func() time.Duration { return 50 * time.Millisecond }
		}
		w.lose = func(peer.ID, *peer.Mail) bool { return gone && w.now < time.Second+DefaultResendAfter }
		for range 8 {
			require.NoError(t, w.say(a, b, large(60<<10)))
		}
		require.True(t, w.run(time.Second, func() bool { return a.m.Stats().Resent > 0 }))
		require.EqualValues(t, 1, a.m.Stats().Resent)
		require.True(t, w.run(time.Minute, w.quiet))
		require.Len(t, b.got[a.id], 8)
		if gone {
			require.EqualValues(t, 8, a.m.Stats().Resent)
		} else {
			require.EqualValues(t, 1, a.m.Stats().Resent)
		}
	}
}

// An acknowledgement of what was sent once shows that the path is slow, not that it loses: what is still outstanding
// was sent later and is on its way, and none of it is repeated.
func TestWhatIsOnItsWayIsNotRepeated(t *testing.T) {
	w := newNet(t, 1, 2, Config{})
	a, b := w.posts[0], w.posts[1]
	w.delay = func() time.Duration { return 200 * time.Millisecond }
	for range 4 {
		require.NoError(t, w.say(a, b, large(60<<10)))
	}
	began := w.now
	w.run(100*time.Millisecond, func() bool { return w.now-began >= 100*time.Millisecond })
	for range 4 {
		require.NoError(t, w.say(a, b, large(60<<10)))
	}
	require.True(t, w.run(time.Second, func() bool { return a.m.Stats().Resent > 0 }))
	require.Less(t, w.now-began, 400*time.Millisecond, "nothing has been acknowledged yet")
	require.True(t, w.run(time.Minute, w.quiet))
	require.Len(t, b.got[a.id], 8)
	require.EqualValues(t, 1, a.m.Stats().Resent)
}
