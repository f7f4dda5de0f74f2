// Tests of numbers at their highest values: refused by decoders, and where they leap; nothing wraps (SEC-5, MEM-4).

package members

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/gossip"
	"github.com/kith-io/kith/internal/core/tenure"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// forgeries change one number of the sample that is counted on.
var forgeries = map[string]struct {
	top   uint64 // the highest that decodes
	leap  uint64
	forge func(s *State, n uint64)
}{
	"highest up-number": {MaxUpNumber, upLeap, func(s *State, n uint64) { s.HighestUp = uint32(n) }},
	"prunings":          {maxPrunes, upLeap, func(s *State, n uint64) { s.Prunes, s.Pruned = uint32(n), 7 }},
	"clock":             {maxChanges, changeLeap, func(s *State, n uint64) { s.Clock[0].N = n }},
	"row": {maxChanges, changeLeap, func(s *State, n uint64) {
		s.Reach = slices.Clone(s.Reach)
		s.Reach[0].records = []record{{subject: ip(3), since: n}}
		s.Reach[0].version = n
	}},
	"metadata": {maxChanges, changeLeap, func(s *State, n uint64) {
		s.meta = slices.Clone(s.meta)
		s.meta[0].count = n
	}},
	"seats": {tenure.MaxNumber, upLeap, func(s *State, n uint64) {
		s.Seats = tenure.Seats{Number: uint32(n), Writer: ip(1), Holders: []peer.ID{ip(1), ip(2), {}}}
	}},
}

// forged is the sample with one more change of node 2, and a number in it that is made up.
func forged(forge func(s *State, n uint64), n uint64) *State {
	s := sample().Draft()
	s.Clock = slices.Clone(s.Clock)
	s.Clock[1].N++
	forge(s, n)
	s.Seen = gossip.NewSeen(len(s.Members))
	return s.Seal()
}

// No decoder takes a number so high that counting on from it could wrap.
func TestHighestValuesAreRefused(t *testing.T) {
	for name, c := range forgeries {
		t.Run(name, func(t *testing.T) {
			good, bad := forged(c.forge, c.top), forged(c.forge, c.top+1)
			_, err := readState(wire.KindGossip, payload(good))
			require.NoError(t, err)
			_, err = readState(wire.KindGossip, payload(bad))
			require.ErrorIs(t, err, wire.ErrBadValue)
			from := sample().Version
			changes, ok := appendDelta(nil, from, bad.Version)
			require.True(t, ok)
			_, err = new(work).readDelta(wire.KindDelta, from, changes)
			require.ErrorIs(t, err, wire.ErrBadValue)
		})
	}
	top := sample().Draft()
	top.Birth = maxBirth + 1
	_, err := readState(wire.KindGossip, payload(top.Seal()))
	require.ErrorIs(t, err, wire.ErrBadValue)
}

// A version in which a number leaps may not follow on what a node holds; one that is as far ahead as a cluster can come
// may.
func TestLeaps(t *testing.T) {
	for name, c := range forgeries {
		was := map[string]uint64{"highest up-number": 5, "clock": 300, "row": 1, "metadata": 1}[name]
		require.False(t, sample().Plausible(forged(c.forge, was+c.leap+1).Version), name)
		require.True(t, sample().Plausible(forged(c.forge, was+c.leap).Version), name)
	}
}

// Up-numbers end at the highest: joiners that would get the next are not let in, and members that go consume none
// beyond it.
func TestUpNumbersEnd(t *testing.T) {
	s := NewState(Version{Cluster: 0x11, Birth: 0x22, HighestUp: MaxUpNumber - 1})
	s.Add(cluster.Member{ID: ip(1), Status: cluster.Up, UpNumber: 1})
	s.Add(cluster.Member{ID: ip(2), Status: cluster.Joining})
	s.Add(cluster.Member{ID: ip(3), Status: cluster.Joining})
	d := s.Draft()
	require.True(t, d.promote(true, 0))
	require.Equal(t, []uint32{1, MaxUpNumber, 0}, []uint32{d.Members[0].UpNumber, d.Members[1].UpNumber,
		d.Members[2].UpNumber})
	require.Equal(t, cluster.Joining, d.Members[2].Status)
	d.consume(7)
	require.Equal(t, uint32(MaxUpNumber), d.HighestUp)
	d = s.Draft()
	require.False(t, d.promote(true, 3), "the skipped ones are beyond it")
}
