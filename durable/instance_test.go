// Tests of what was handed over: taken only from the owner right before.

package durable

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

// TestHandedStateOfAnEarlierOwnerIsNotTaken: a state counts if its giver was the last that claimed the shard, and if it
// is whole.
func TestHandedStateOfAnEarlierOwnerIsNotTaken(t *testing.T) {
	giver, between := route.MakeFence(1, 1, 1), route.MakeFence(1, 1, 2)
	handed := append(wire.AppendUvarint(wire.AppendUvarint(append([]byte{}, giver[:]...), 7), 3), "state"...)
	for _, c := range []struct {
		handed []byte
		prior  kith.Fence
		taken  bool
	}{
		{handed, giver, true}, {handed, between, false}, {handed, kith.Fence{}, false}, {nil, kith.Fence{}, false},
		{handed[:route.FenceSize], giver, false}, {handed[:route.FenceSize+1], giver, false},
	} {
		e := &instance[int, int, int]{handed: c.handed}
		r, taken := e.takes(c.prior)
		require.Equal(t, c.taken, taken)
		if taken {
			require.EqualValues(t, 7, r.Version)
			require.EqualValues(t, 3, r.Schema)
			require.Equal(t, "state", string(r.State))
		}
	}
	require.Error(t, (&instance[int, int, int]{}).TakeUp(nil, []byte("short")))
}
