// Tests of the pool that simulated nodes share: nothing that a node does depends on it, and it is bounded.

package membership

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/gossip"
)

// life runs one cluster of nine through joining, a crash, a downing and a leave, and tells what each node published.
func life(t *testing.T, seed uint64, pool *Intern) (log []string, w *world) {
	w = newWorld(t, seed)
	w.cfg.Intern = pool
	w.cfg.CompressAbove = 64
	all := w.cluster(9)
	w.chaos = true
	w.crash(all[8])
	w.run(8 * time.Second)
	w.do(all[1], DownCommand{ID: all[8].id})
	w.do(all[2], LeaveCommand{})
	w.run(5 * time.Second)
	w.chaos = false
	w.until(30*time.Second, "settled", w.settled)
	for _, a := range all {
		log = append(log, fmt.Sprintf("%v %v %v %+v", a.view.Seq, a.view.Hash, a.events, a.m.Stats()))
	}
	return append(log, fmt.Sprint(w.now, w.seq, w.counts, w.sizes)), w
}

// With and without a pool every node publishes the same, at the same time, in as many messages of the same sizes; with
// it all nodes hold one and the same version in the end.
func TestInterningChangesNothing(t *testing.T) {
	for seed := range uint64(6) {
		plain, _ := life(t, seed, nil)
		pool := NewIntern()
		shared, w := life(t, seed, pool)
		require.Equal(t, plain, shared)
		for _, a := range w.alive() {
			require.Same(t, w.alive()[0].m.st.version, a.m.st.version)
		}
		found, made := pool.Hits()
		require.Greater(t, found, made, "most states are found")
	}
}

// The pool keeps the newest, and finds nothing whose bytes are not those it knows.
func TestInternIsBounded(t *testing.T) {
	p := NewIntern()
	s := sample()
	var first *version
	for i := range 2 * internVersions {
		s = s.draft().commit(ip(1))
		require.Same(t, s.version, p.one(s.version))
		p.joined(s.version, s.version, s.version)
		if i == 0 {
			first = s.version
		}
	}
	require.Len(t, p.versions, internVersions)
	require.Len(t, p.order, internVersions)
	require.Len(t, p.merges, internMerges)
	require.Nil(t, p.join(first, first))
	require.Same(t, s.version, p.join(s.version, s.version))

	c := coder{above: 1}
	sent := c.packOf(s.version)
	require.Same(t, s.version, p.packed(s.digest, sent))
	require.Nil(t, p.packed(s.digest+1, sent))
	require.Nil(t, p.packed(s.digest, packed{sent.flags, sent.bytes[1:]}))
	require.Nil(t, p.packed(s.digest, packed{sent.flags ^ 1, sent.bytes}))
	missed := 0
	for range 2 * internSample {
		if p.packed(s.digest, sent) == nil {
			missed++
		}
	}
	require.Equal(t, 2, missed, "a sample is decoded and compared")
	liar := *s.version
	liar.bytes = []byte("other")
	require.Panics(t, func() { p.verify(&liar) })
}

// The identities and the ring of a version are those of the one before while nobody came or went.
func TestPeopleStay(t *testing.T) {
	s := bigState(50)
	var last people
	ids, ring := s.everybody(&last)
	later := s.draft()
	later.members[3].Status = cluster.Leaving
	later.commit(later.members[0].ID)
	ids2, ring2 := later.everybody(&last)
	require.True(t, sameSlice(ids, ids2) && sameSlice(ring, ring2))
	gone := later.draft()
	gone.remove(gone.members[7].ID)
	gone.commit(gone.members[0].ID)
	ids3, ring3 := gone.everybody(&last)
	require.Len(t, ids3, 49)
	require.Len(t, ring3, 49)
	require.False(t, ids3.Has(s.members[7].ID))
	again, _ := s.everybody(&last)
	require.True(t, sameSlice(ids, again))
	require.Equal(t, gossip.NewSeen(49).Len(), gone.seen.Len())
}
