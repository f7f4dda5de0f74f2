// Tests of a cluster made at once: it is what joining leads to.

package membership

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/peer"
)

// A grown cluster behaves like one that was joined: all Up, converged, quiet; it admits, and it notices a crash
// (GOS-3, GOS-4, JOIN-1).
func TestGrownClusterLives(t *testing.T) {
	w := newWorld(t, 5)
	var members []cluster.Member
	for n := range 6 {
		a := w.start(n + 1)
		members = append(members, cluster.Member{ID: a.id})
	}
	g, err := NewGrown(7, 9, members)
	require.NoError(t, err)
	for _, a := range w.actors {
		require.NoError(t, a.m.Begin(0, g))
		w.drain(a)
		require.Equal(t, 6, a.view.CountUp())
		require.True(t, a.view.Converged)
	}
	w.run(5 * time.Second)
	require.True(t, w.settled())
	late := w.start(7)
	w.join(late, 1, 2)
	w.until(10*time.Second, "joining", w.settled)
	up, ok := w.actors[0].view.Member(late.id)
	require.True(t, ok)
	require.Equal(t, uint32(7), up.UpNumber, "up-numbers go on where the grown ones end")
	w.crash(w.actors[3])
	w.until(10*time.Second, "noticing", func() bool { return !w.actors[0].view.Reachable(w.actors[3].id) })
}

// What no cluster could be is refused, and so is a node that is no member or has begun to join.
func TestGrownIsChecked(t *testing.T) {
	id := func(n int, inc uint64) peer.ID { return peer.ID{Addr: addr(n), Inc: inc} }
	ok := []cluster.Member{{ID: id(1, 5)}, {ID: id(2, 6)}}
	for name, c := range map[string]struct {
		cluster, birth uint64
		members        []cluster.Member
	}{
		"no id": {0, 1, ok}, "no birth": {1, 0, ok}, "nobody": {1, 1, nil},
		"no incarnation":    {1, 1, []cluster.Member{{ID: id(1, 0)}}},
		"one address twice": {1, 1, []cluster.Member{{ID: id(1, 1)}, {ID: id(1, 2)}}},
	} {
		_, err := NewGrown(c.cluster, c.birth, c.members)
		require.ErrorIs(t, err, ErrBadGrown, name)
	}
	g, err := NewGrown(1, 1, ok)
	require.NoError(t, err)
	w := newWorld(t, 5)
	stranger := w.start(1)
	require.ErrorIs(t, stranger.m.Begin(0, g), ErrBadGrown)
	joined := New(id(1, 5), Config{}, w.rng)
	require.NoError(t, joined.Begin(0, g))
	require.ErrorIs(t, joined.Begin(0, g), ErrBadGrown)
}
