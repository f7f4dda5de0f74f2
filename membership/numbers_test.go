// Up-numbers are given once, also when the leader that gave one dies before the cluster hears of it (MEM-5).

package membership

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// The leader promotes a joiner; the joiner alone hears of it, the leader dies. Its successor sees two joining members
// and must not give that number to the other one before the first has seen the successor's state. Found by storm 1696.
func TestNumberKnownToItsJoinerAlone(t *testing.T) {
	w := newWorld(t, 8)
	all := w.cluster(3)
	a, b, c := all[0], all[1], all[2]
	require.Equal(t, "up up up", standing(a))

	// What the leader says from the promotion on reaches the joiner alone, and the joiner is not heard.
	d := w.start(5)
	w.cut = func(from, to peer.ID) bool {
		return a.m.st.Status(d.id) == cluster.Up && (from == a.id && to != d.id || from == d.id && to != a.id)
	}
	w.join(d, 1)
	w.until(10*time.Second, "the joiner hears that it is up",
		func() bool { return d.m.st != nil && d.m.st.Status(d.id) == cluster.Up })
	number := d.m.st.Members[d.m.st.Index(d.id)].UpNumber
	require.Equal(t, cluster.Joining, b.m.st.Status(d.id))
	w.crash(a)
	e := w.start(4)
	w.do(b, DownCommand{ID: a.id})
	w.join(e, 2)
	w.run(3 * time.Second)
	require.Equal(t, cluster.Joining, b.m.st.Status(e.id),
		"no number is given while a joining member has not seen the state")

	w.cut = nil
	w.until(30*time.Second, "all are up", func() bool { return w.settled() && b.m.st.AllUp && len(b.m.st.Members) == 4 })
	given := map[uint32]peer.ID{}
	for _, m := range b.m.st.Members {
		require.Empty(t, given[m.UpNumber], "number %d", m.UpNumber)
		given[m.UpNumber] = m.ID
	}
	require.Equal(t, d.id, given[number])
	require.Equal(t, b.view.Hash, c.view.Hash)
}

// A leader gives a joiner a number while another member downs it and gives the joiner the next, since the one that is
// Down may have given the first. The joiner hears of both, of the lower one first. All agree on the higher one, and
// nobody else gets either. Found by storm 14400003672.
func TestTwoNumbersForOneJoiner(t *testing.T) {
	w := newWorld(t, 8)
	all := w.cluster(3)
	a, b, c := all[0], all[1], all[2]
	d := w.start(5)
	number := func(of *actor) uint32 { return of.m.st.Members[of.m.st.Index(d.id)].UpNumber }
	w.join(d, 1)
	w.until(10*time.Second, "the leader lets the joiner in", func() bool { return a.m.st.Status(d.id) == cluster.Up })
	w.queue = slices.DeleteFunc(w.queue, func(l mailItem) bool { return l.from == a.id })
	w.cut = func(from, to peer.ID) bool { return from == a.id || to == a.id }
	require.Equal(t, []uint32{0, 0, 0}, []uint32{number(b), number(c), number(d)})

	w.do(b, DownCommand{ID: a.id})
	w.until(time.Second, "the joiner hears that the leader is down",
		func() bool { return d.m.st.Status(a.id) == cluster.Down })
	w.cut = func(from, to peer.ID) bool { return from == a.id || to == a.id || to == d.id }
	w.until(time.Second, "the next leader lets the joiner in", func() bool { return b.m.st.Status(d.id) == cluster.Up })
	lower, higher := number(a), number(b)
	require.Greater(t, higher, lower)
	require.Zero(t, number(d))
	// The joiner and the leader that is Down hear each other and nobody else; the joiner does not say what it knows.
	w.cut = func(from, to peer.ID) bool { return (from == a.id) != (to == d.id) || (from == d.id) != (to == a.id) }
	w.lose = func(from peer.ID, kind wire.Kind) bool {
		return from == d.id && (kind == wire.KindGossip || kind == wire.KindDelta)
	}
	w.until(10*time.Second, "the joiner hears what the first one gave", func() bool { return number(d) != 0 })
	require.Equal(t, lower, number(d))
	require.Equal(t, cluster.Down, d.m.st.Status(a.id))

	w.cut, w.lose = nil, nil
	w.until(30*time.Second, "all that live agree", w.settled)
	require.Equal(t, []uint32{higher, higher, higher}, []uint32{number(b), number(c), number(d)})
	e := w.start(6)
	w.join(e, 2)
	w.until(30*time.Second, "one more is up", w.settled)
	require.Greater(t, e.m.st.Members[e.m.st.Index(e.id)].UpNumber, higher)
}
