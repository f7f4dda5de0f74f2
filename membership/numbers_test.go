// Up-numbers are given once, also when the leader that gave one dies before the cluster hears of it (MEM-5).

package membership

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/peer"
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
