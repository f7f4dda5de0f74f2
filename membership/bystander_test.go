// Tests of members that could not carry a cluster on, for want of the role, and may handle messages still when the
// next one is formed (JOIN-1).

package membership

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/peer"
)

// theirs is after what time bystanders have stopped.
const theirs = time.Minute

// withBystanders is a cluster of one member with the role and two without, all of which have died, and what each
// remembers.
func withBystanders(t *testing.T) (w *world, kept map[int]Record) {
	w = newWorld(t, 1)
	w.cfg = Config{RecordRole: "store", StopsAfter: func(members int) time.Duration {
		require.Equal(t, 3, members)
		return theirs
	}}
	all := []*actor{w.start(1, "store"), w.start(2), w.start(3)}
	for _, a := range all {
		w.join(a, 1, 2, 3)
	}
	w.until(30*time.Second, "settled", w.settled)
	kept = map[int]Record{}
	for i, a := range all {
		kept[i+1] = Record{}.Next(a.view, "store")
		w.crash(a)
	}
	require.Equal(t, addrs(2, 3), kept[1].Bystanders)
	require.Equal(t, addrs(3), kept[2].Bystanders)
	require.Equal(t, addrs(1), kept[2].Others)
	return w, kept
}

func (w *world) again(i int, rec Record, seeds ...int) *actor {
	a := w.start(i)
	w.do(a, JoinCommand{Seeds: addrs(seeds...), WallMillis: 1_750_000_000_000, Record: rec})
	return a
}

// JOIN-1: a node that lacks the role has stopped before the next cluster is formed, or is heard to be over: by a first
// seed that hears nobody or one of two, and by another node that could carry the cluster on.
func TestBystandersHaveStopped(t *testing.T) {
	for _, seeds := range [][]int{{1, 2, 3}, {2, 1}, {}} {
		for _, heard := range [][]int{{}, {2}, {2, 3}} {
			w, kept := withBystanders(t)
			a := w.again(1, kept[1], seeds...)
			for _, i := range heard {
				w.again(i, kept[i], 1, 2, 3)
			}
			if len(heard) == 2 {
				w.until(10*time.Second, "formed", func() bool { return a.view != nil })
				continue
			}
			w.run(theirs)
			require.Nil(t, a.view, "seeds %v, heard of %v", seeds, heard)
			w.until(20*time.Second, "formed", func() bool { return a.view != nil })
		}
	}
}

// One that lives admits the first seed that looks for it, and needs not be a seed for that.
func TestBystanderIsFound(t *testing.T) {
	w := newWorld(t, 1)
	w.cfg = Config{RecordRole: "store"}
	a, b := w.start(1, "store"), w.start(2)
	w.join(a, 1)
	w.join(b, 1)
	w.until(30*time.Second, "settled", w.settled)
	rec := Record{}.Next(a.view, "store")
	w.crash(a)
	a = w.again(1, rec, 1)
	w.until(20*time.Second, "joined", func() bool { return a.view != nil })
	require.Equal(t, b.view.ClusterID, a.view.ClusterID)
}

// What a record says of bystanders, of newcomers and of leavers.
func TestRecordOfBystanders(t *testing.T) {
	view := func(list ...cluster.Status) *cluster.View {
		v := &cluster.View{Self: ip(1), ClusterID: 7, Birth: 9}
		for i, s := range list {
			m := cluster.Member{ID: ip(i + 1), Status: s, UpNumber: uint32(i + 1)}
			if i == 0 {
				m.Roles = []string{"store"}
			}
			v.Members = append(v.Members, m)
		}
		return v
	}
	up := cluster.Up
	rec := Record{}.Next(view(up, up, cluster.Joining, cluster.Down, cluster.Leaving), "store")
	require.Equal(t, Record{ClusterID: 7, Birth: 9, Highest: 9, Counts: true, Bystanders: addrs(2, 3, 5)}, rec)
	require.True(t, rec.Alone())
	require.True(t, rec.Mentions(addr(5)))
	require.False(t, rec.Mentions(addr(4)))
	require.False(t, rec.Equal(Record{}.Next(view(up, up), "store")))
	require.Empty(t, Record{}.Next(view(up, up), "").Bystanders, "where all count, nobody stands by")
	left := rec.Left(view(up, up, cluster.Joining, cluster.Down, cluster.Leaving), "store")
	require.Equal(t, Record{ClusterID: 7, Birth: 9, Highest: 9, Others: addrs(2, 3), Newcomers: 1}, left,
		"nobody with the role is left, so those without it carry the cluster on")
	stays := view(up, up, cluster.Joining, up)
	stays.Members[3].Roles = []string{"store"}
	left = rec.Left(stays, "store")
	require.Equal(t, addrs(4), left.Others)
	require.Equal(t, addrs(2, 3), left.Bystanders)
	stays.Members[3].Status = cluster.Joining
	require.Equal(t, addrs(2, 3, 4), rec.Left(stays, "store").Others, "it is not up yet, and may never be")
	require.True(t, rec.Left(view(up, cluster.Leaving, cluster.Exiting), "store").Alone(), "all leave at once")

	large := view(up)
	for i := range MaxRemembered + 5 {
		id := peer.ID{Addr: addr(2 + i), Inc: 1}
		large.Members = append(large.Members, cluster.Member{ID: id, Status: up, UpNumber: 9})
	}
	require.Len(t, Record{}.Next(large, "store").Bystanders, MaxRemembered)
}

// No member is Up before the record of the leader that lets it in names it, whatever its role; and such a name is
// written at once.
func TestBystandersAreWrittenDown(t *testing.T) {
	w := newWorld(t, 1)
	w.cfg = Config{Records: true, RecordRole: "store"}
	a, b := w.start(1, "store"), w.start(2)
	w.join(a, 1)
	w.join(b, 1)
	w.run(2 * time.Second)
	m, ok := a.view.Member(b.id)
	require.True(t, ok)
	require.Equal(t, cluster.Joining, m.Status)
	rec := Record{}.Next(a.view, "store")
	k := NewMemory(Record{ClusterID: rec.ClusterID}, "store")
	k.Wrote(time.Second, Record{ClusterID: rec.ClusterID}, true)
	k.Note(a.view)
	at, due := k.Due()
	require.True(t, due)
	require.Equal(t, time.Second+recordSoon, at)
	w.do(a, RecordedCommand{rec})
	w.until(time.Second, "up", w.settled)
}
