// Tests of versions with a pruned clock, on their way (GOS-2).

package members

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// The fields of a pruning travel, in states and in deltas, and a pruning of nothing is refused.
func TestPruningTravels(t *testing.T) {
	before := sample()
	after := before.PruneEntries(peer.Set{ip(2)}, ip(1))
	require.Equal(t, before.Digest, after.Pruned)
	require.Zero(t, after.Clock.Of(ip(2)))
	got, err := readState(wire.KindGossip, payload(after))
	require.NoError(t, err)
	require.Equal(t, after.Pruned, got.Pruned)
	require.Equal(t, uint32(1), got.Prunes)
	changes, ok := appendDelta(nil, before.Version, after.Version)
	require.True(t, ok)
	v, err := new(work).readDelta(wire.KindDelta, before.Version, changes)
	require.NoError(t, err)
	require.Equal(t, after.Digest, v.Digest)
	after.Pruned = 0
	core, _ := appendCore(nil, after.Version)
	_, err = readState(wire.KindGossip, core)
	require.ErrorIs(t, err, wire.ErrBadValue)
}
