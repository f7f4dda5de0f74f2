// Tests of the pool that simulated nodes share, and of what versions share: bounded, and never a wrong one.

package members

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/gossip"
)

// The pool keeps the newest, and finds nothing with other bytes than those it knows.
func TestInternIsBounded(t *testing.T) {
	p := NewIntern()
	s := sample()
	var first *Version
	for i := range 2 * internVersions {
		s = s.Draft().Commit(ip(1))
		require.Same(t, s.Version, p.one(s.Version))
		p.joined(s.Version, s.Version, s.Version)
		if i == 0 {
			first = s.Version
		}
	}
	require.Len(t, p.versions, internVersions)
	require.Len(t, p.order, internVersions)
	require.Len(t, p.merges, internMerges)
	require.Nil(t, p.join(first, first))
	require.Same(t, s.Version, p.join(s.Version, s.Version))

	c := coder{above: 1}
	sent := c.packOf(s.Version)
	require.Same(t, s.Version, p.packed(s.Digest, sent))
	require.Nil(t, p.packed(s.Digest+1, sent))
	require.Nil(t, p.packed(s.Digest, Packed{sent.flags, sent.bytes[1:]}))
	require.Nil(t, p.packed(s.Digest, Packed{sent.flags ^ 1, sent.bytes}))
	missed := 0
	for range 2 * internSample {
		if p.packed(s.Digest, sent) == nil {
			missed++
		}
	}
	require.Equal(t, 2, missed, "a sample is decoded and compared")
	liar := *s.Version
	liar.bytes = []byte("other")
	require.Panics(t, func() { p.verify(&liar) })
}

// The identities and the ring of a version are those of the one before while nobody came or went.
func TestPeopleStay(t *testing.T) {
	s := bigState(50)
	var last Roster
	ids, ring, _ := s.Everybody(&last)
	later := s.Draft()
	later.Members[3].Status = cluster.Leaving
	later.Commit(later.Members[0].ID)
	ids2, ring2, _ := later.Everybody(&last)
	require.True(t, sameSlice(ids, ids2) && sameSlice(ring, ring2))
	gone := later.Draft()
	gone.Remove(gone.Members[7].ID)
	gone.Commit(gone.Members[0].ID)
	ids3, ring3, _ := gone.Everybody(&last)
	require.Len(t, ids3, 49)
	require.Len(t, ring3, 49)
	require.False(t, ids3.Has(s.Members[7].ID))
	again, _, _ := s.Everybody(&last)
	require.True(t, sameSlice(ids, again))
	require.Equal(t, gossip.NewSeen(49).Len(), gone.Seen.Len())
}
