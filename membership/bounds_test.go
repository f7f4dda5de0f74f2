// Tests of numbers at their highest values: refused by decoders, and where they leap; nothing wraps (SEC-5, MEM-4).

package membership

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/gossip"
	"github.com/kith-io/kith/wire"
)

// forgeries change one number of the sample that is counted on.
var forgeries = map[string]struct {
	top   uint64 // the highest that decodes
	leap  uint64
	forge func(s *state, n uint64)
}{
	"highest up-number": {MaxUpNumber, upLeap, func(s *state, n uint64) { s.highestUp = uint32(n) }},
	"prunings":          {maxPrunes, upLeap, func(s *state, n uint64) { s.prunes, s.pruned = uint32(n), 7 }},
	"clock":             {maxChanges, changeLeap, func(s *state, n uint64) { s.clock[0].N = n }},
	"row": {maxChanges, changeLeap, func(s *state, n uint64) {
		s.reach = slices.Clone(s.reach)
		s.reach[0].records = []record{{subject: ip(3), since: n}}
		s.reach[0].version = n
	}},
	"metadata": {maxChanges, changeLeap, func(s *state, n uint64) {
		s.meta = slices.Clone(s.meta)
		s.meta[0].count = n
	}},
}

// forged is the sample with one more change of node 2, and a number in it that is made up.
func forged(forge func(s *state, n uint64), n uint64) *state {
	s := sample().draft()
	s.clock = slices.Clone(s.clock)
	s.clock[1].N++
	forge(s, n)
	s.seen = gossip.NewSeen(len(s.members))
	return s.seal()
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
			from := sample().version
			changes, ok := appendDelta(nil, from, bad.version)
			require.True(t, ok)
			_, err = new(work).readDelta(wire.KindDelta, from, changes)
			require.ErrorIs(t, err, wire.ErrBadValue)
		})
	}
	top := sample().draft()
	top.birth = maxBirth + 1
	_, err := readState(wire.KindGossip, payload(top.seal()))
	require.ErrorIs(t, err, wire.ErrBadValue)
	clock := gossip.Clock{{ID: ip(1), N: gossip.MaxChanges + 1}}
	_, err = readVersion(appendVersion(nil, versionBody{envelope{1, 0x11}, 3, false, clock}))
	require.ErrorIs(t, err, wire.ErrBadValue)
}

// A member takes no state in which a number leaps, whole or as a difference, and then changes nothing; one that is as
// far ahead as a cluster can come is taken. So a made-up number cannot bring the next honest change to the end.
func TestLeapsAreRefused(t *testing.T) {
	for name, c := range forgeries {
		t.Run(name, func(t *testing.T) {
			was := map[string]uint64{"highest up-number": 5, "clock": 300, "row": 1, "metadata": 1}[name]
			m := asMember()
			before := m.st
			bad := forged(c.forge, was+c.leap+1)
			err := m.Handle(0, 0, ip(2), wire.KindGossip, plainBody(1, 0x11, bad))
			require.ErrorIs(t, err, wire.ErrBadValue)
			changes, ok := appendDelta(nil, before.version, bad.version)
			require.True(t, ok)
			err = m.Handle(0, 0, ip(2), wire.KindDelta, appendDeltaBody(nil, deltaBody{envelope{1, 0x11}, before.digest,
				bad.digest, bad.seen, changes}))
			require.ErrorIs(t, err, wire.ErrBadValue)
			require.Same(t, before, m.st)
			require.NoError(t, m.Handle(0, 0, ip(2), wire.KindGossip, plainBody(1, 0x11, forged(c.forge, was+c.leap))))
			require.NotSame(t, before, m.st)
		})
	}
}

// Up-numbers end at the highest: those who would get the next are not let in, and those who go consume none beyond it.
func TestUpNumbersEnd(t *testing.T) {
	s := newState(version{cluster: 0x11, birth: 0x22, highestUp: MaxUpNumber - 1})
	s.add(cluster.Member{ID: ip(1), Status: cluster.Up, UpNumber: 1})
	s.add(cluster.Member{ID: ip(2), Status: cluster.Joining})
	s.add(cluster.Member{ID: ip(3), Status: cluster.Joining})
	d := s.draft()
	require.True(t, d.promote(true, 0))
	require.Equal(t, []uint32{1, MaxUpNumber, 0}, []uint32{d.members[0].UpNumber, d.members[1].UpNumber,
		d.members[2].UpNumber})
	require.Equal(t, cluster.Joining, d.members[2].Status)
	d.consume(7)
	require.Equal(t, uint32(MaxUpNumber), d.highestUp)
	d = s.draft()
	require.False(t, d.promote(true, 3), "the skipped ones are beyond it")
}
