// Tests of seeds that are given to a node after it has begun (JOIN-1, JOIN-2, BOOT-3, BOOT-5).

package membership

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func (w *world) await(n int, rec Record) *actor {
	a := w.start(n)
	w.do(a, JoinCommand{Await: true, WallMillis: 1_750_000_000_000, Record: rec})
	return a
}

// A node that awaits seeds forms nothing, however long; ordered to head the list it forms the cluster, and others join
// it by the seeds that they are given (BOOT-3, JOIN-1).
func TestSeedsComeLater(t *testing.T) {
	w := newWorld(t, 1)
	a, b, c := w.await(1, Record{}), w.await(2, Record{}), w.await(3, Record{})
	w.run(30 * time.Second)
	for _, o := range []*actor{a, b, c} {
		require.Nil(t, o.m.st)
		require.Equal(t, WaitSeeds, o.m.Waiting().For)
		require.Contains(t, o.m.Waiting().Detail, "no seeds have been found")
	}
	w.do(b, SeedsCommand{Seeds: addrs(1, 3)})
	w.run(10 * time.Second)
	require.Nil(t, b.m.st, "who does not head the list forms nothing")

	w.do(a, SeedsCommand{Seeds: addrs(1, 2, 3)})
	w.run(time.Second)
	require.NotNil(t, a.m.st, "all others have said that they are in none")
	w.do(c, SeedsCommand{Seeds: addrs(1)})
	w.run(20 * time.Second)
	for _, o := range []*actor{a, b, c} {
		require.NotNil(t, o.m.st)
		require.Len(t, o.m.st.Members, 3)
		require.ErrorIs(t, o.m.Do(w.now-o.epoch, SeedsCommand{Seeds: addrs(9)}), ErrJoined)
	}
}

// Seeds that are dead are outlived by those of a later command, and a node that heads the list looks first (BOOT-3).
func TestSeedsAreAdded(t *testing.T) {
	w := newWorld(t, 2)
	b := w.await(2, Record{})
	w.do(b, SeedsCommand{Seeds: addrs(8, 9)})
	w.run(5 * time.Second)
	a := w.start(1)
	w.join(a)
	w.do(b, SeedsCommand{Seeds: addrs(2, 1)})
	w.run(10 * time.Second)
	require.NotNil(t, b.m.st)
	require.Len(t, b.m.st.Members, 2, "it found the cluster that is there and formed none")
	require.Equal(t, addrs(1, 8, 9), b.m.joining.seeds)
}

// An operator's seeds take the place of those that were found, also of a node that is about to form a cluster; none
// that are found later are taken. A node that has asked a member may be one already, and takes no order (BOOT-3,
// MEM-9).
func TestToldSeeds(t *testing.T) {
	w := newWorld(t, 4)
	a, b := w.await(1, Record{}), w.start(2)
	w.do(a, SeedsCommand{Seeds: addrs(1, 8)}) // it heads the list, and waits for the other one
	w.run(time.Second)
	w.do(a, SeedsCommand{Seeds: addrs(2), Told: true})
	for range 2 {
		require.ErrorIs(t, a.m.Do(w.now-a.epoch, SeedsCommand{Seeds: addrs(1, 7)}), ErrSeedsOverridden)
		w.run(20 * time.Second)
		require.Nil(t, a.m.st)
		require.Equal(t, addrs(2), a.m.joining.seeds)
		require.Len(t, a.m.forming.contacts, 1)
	}
	w.do(a, SeedsCommand{Seeds: addrs(3), Told: true})
	require.Equal(t, addrs(3), a.m.joining.seeds, "the next order takes the place of the first")
	w.do(a, SeedsCommand{Seeds: addrs(2), Told: true})
	w.join(b)
	w.run(10 * time.Second)
	require.NotNil(t, a.m.st)
	require.Len(t, a.m.st.Members, 2)
	require.ErrorIs(t, a.m.Do(w.now-a.epoch, SeedsCommand{Seeds: addrs(3), Told: true}), ErrJoined)

	own := w.await(4, Record{})
	w.do(own, SeedsCommand{Seeds: addrs(4), Told: true})
	w.run(10 * time.Second)
	require.Len(t, own.m.st.Members, 1, "an operator may have it form a cluster, as a first seed does")

	asked := w.await(5, Record{})
	asked.m.joining.phase = pending
	require.ErrorIs(t, asked.m.Do(w.now-asked.epoch, SeedsCommand{Seeds: addrs(1), Told: true}), ErrJoinPending)
	require.False(t, asked.m.joining.ordered)
}

// Nobody answers: the head of the list forms after the SeedTimeout; one that may never form does not; a record holds as
// ever; and too many seeds change nothing (BOOT-5, JOIN-2).
func TestSeedsAndForming(t *testing.T) {
	w := newWorld(t, 3)
	a := w.await(1, Record{})
	w.run(20 * time.Second)
	require.ErrorIs(t, a.m.Do(w.now-a.epoch, SeedsCommand{Seeds: addrs(make([]int, MaxSeeds+1)...)}), ErrTooManySeeds)
	w.do(a, SeedsCommand{Seeds: addrs(1, 2)})
	w.run(4 * time.Second)
	require.Nil(t, a.m.st)
	w.run(2 * time.Second)
	require.NotNil(t, a.m.st)

	never := w.start(5)
	w.do(never, JoinCommand{Await: true, NeverForm: true})
	w.do(never, SeedsCommand{Seeds: addrs(5, 6)})
	remembers := w.await(7, Record{ClusterID: 3, Others: addrs(8, 9), Counts: true})
	w.do(remembers, SeedsCommand{Seeds: addrs(7)})
	w.run(time.Minute)
	require.Nil(t, never.m.st)
	require.Nil(t, remembers.m.st)
	idle := w.start(10)
	require.ErrorIs(t, idle.m.Do(w.now-idle.epoch, SeedsCommand{Seeds: addrs(1)}), ErrNotMember)
}
