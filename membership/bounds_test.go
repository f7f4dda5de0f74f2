// Tests of numbers that leap: what a machine does with a state, or a difference, that holds one (SEC-5, MEM-4).

package membership

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/gossip"
	"github.com/kith-io/kith/internal/core/members"
	"github.com/kith-io/kith/wire"
)

// forged is the sample with one more change of node 2, and a number in it that is made up.
func forged(forge func(s *members.State, n uint64), n uint64) *members.State {
	s := sample().Draft()
	s.Clock = slices.Clone(s.Clock)
	s.Clock[1].N++
	forge(s, n)
	s.Seen = gossip.NewSeen(len(s.Members))
	return s.Seal()
}

// A member takes no state in which a number leaps, whole or as a difference, and then changes nothing; one that is as
// far ahead as a cluster can come is taken. So a made-up number cannot bring the next honest change to the end. Which
// numbers there are: TestLeaps of package members.
func TestLeapsAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		most  uint64 // as far ahead as a cluster can come
		forge func(s *members.State, n uint64)
	}{
		"highest up-number": {5 + 1<<20, func(s *members.State, n uint64) { s.HighestUp = uint32(n) }},
		"clock":             {300 + 1<<40, func(s *members.State, n uint64) { s.Clock[0].N = n }},
	} {
		t.Run(name, func(t *testing.T) {
			m := asMember()
			before := m.st
			bad := forged(c.forge, c.most+1)
			err := m.Handle(0, 0, ip(2), wire.KindGossip, plainBody(1, 0x11, bad))
			require.ErrorIs(t, err, wire.ErrBadValue)
			changes := bad.DeltaFrom(before.Version)
			require.NotNil(t, changes)
			err = m.Handle(0, 0, ip(2), wire.KindDelta, appendDeltaBody(nil, deltaBody{envelope{1, 0x11}, before.Digest,
				bad.Digest, bad.Seen, changes}))
			require.ErrorIs(t, err, wire.ErrBadValue)
			require.Same(t, before, m.st)
			require.NoError(t, m.Handle(0, 0, ip(2), wire.KindGossip, plainBody(1, 0x11, forged(c.forge, c.most))))
			require.NotSame(t, before, m.st)
		})
	}
}

// A version that names a clock beyond what can be counted is refused (SEC-5).
func TestHighestClockIsRefused(t *testing.T) {
	clock := gossip.Clock{{ID: ip(1), N: gossip.MaxChanges + 1}}
	_, err := readVersion(appendVersion(nil, versionBody{envelope{1, 0x11}, 3, false, clock}))
	require.ErrorIs(t, err, wire.ErrBadValue)
}

// Seen sets over others than the members of a state are refused, and so is a state under another digest.
func TestHostileBodiesOfStates(t *testing.T) {
	s := sample()
	m := asMember()
	for name, seen := range map[string]gossip.Seen{"fewer": gossip.NewSeen(2), "more": gossip.NewSeen(9)} {
		body := appendStateBody(nil, stateBody{1, 0x11, s.Digest, seen, packOf(s)})
		require.ErrorIs(t, m.Handle(1, 1, ip(2), wire.KindGossip, body), wire.ErrBadValue, "a seen set over %s members", name)
	}
	m.st = m.st.Draft().Commit(ip(1))
	lie := appendStateBody(nil, stateBody{1, 0x11, 5, s.Seen, packOf(s)})
	require.ErrorIs(t, m.Handle(1, 1, ip(2), wire.KindGossip, lie), wire.ErrBadValue, "another digest than it says")
}

// What a trace hashes is what was said, and not how it was packed.
func TestPlainBody(t *testing.T) {
	s := crowd(300)
	plain := plainBody(1, 2, s)
	body := appendStateBody(nil, stateBody{1, 2, s.Digest, s.Seen, members.NewStore(1, nil).Pack(s.Version)})
	require.Less(t, len(body), len(plain))
	require.Equal(t, plain, PlainBody(wire.KindGossip, body))
	require.Equal(t, []byte{1}, PlainBody(wire.KindGossip, []byte{1}))
	require.Equal(t, body, PlainBody(wire.KindStatus, body))
}
