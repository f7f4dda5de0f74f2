// Laws of zones on the ring (FD-2).

package fd

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/kith-io/kith/peer"
)

// zoned is a ring of nodes that name zones, some of them unreachable.
type zoned struct {
	ring        Ring
	zone        map[peer.ID]string
	unreachable peer.Set
	n           int
}

func drawZoned(t *rapid.T) *zoned {
	var ids, lost []peer.ID
	z := &zoned{zone: map[peer.ID]string{}, n: rapid.IntRange(1, 6).Draw(t, "n")}
	for i := range rapid.IntRange(2, 40).Draw(t, "nodes") {
		id := peer.ID{Addr: peer.MustAddr(fmt.Sprintf("10.0.0.%d:1", i+1)), Inc: rapid.Uint64Min(1).Draw(t, "inc")}
		ids = append(ids, id)
		z.zone[id] = rapid.SampledFrom([]string{"", "a", "b", "b", "b", "c"}).Draw(t, "zone")
		if rapid.IntRange(0, 4).Draw(t, "lost") == 0 {
			lost = append(lost, id)
		}
	}
	z.ring, z.unreachable = RingOf(peer.SetOf(ids...)), peer.SetOf(lost...)
	return z
}

func (z *zoned) zones() Zones { return ZonesOf(z.ring, func(id peer.ID) string { return z.zone[id] }) }

// watchers returns which reachable nodes watch id by the ring, and which because of zones.
func (z *zoned) watchers(id peer.ID) (ring, across []peer.ID) {
	for _, o := range z.ring {
		if o == id || z.unreachable.Has(o) {
			continue
		}
		if z.ring.Receivers(o, Absent{Unreachable: z.unreachable}, z.n).Has(id) {
			ring = append(ring, o)
		}
		if z.ring.Across(z.zones(), o, Absent{Unreachable: z.unreachable}, z.n).Has(id) {
			across = append(across, o)
		}
	}
	return ring, across
}

// has reports whether one of list is in another zone than name, or in that one.
func (z *zoned) has(list []peer.ID, id peer.ID, other bool) bool {
	for _, o := range list {
		if o != id && z.zone[o] != "" && (z.zone[o] != z.zone[id]) == other {
			return true
		}
	}
	return false
}

// Every node with a zone is watched from another zone and from its own, where a reachable node is there: by one more
// node for each of the two that the ring did not give, and by no other. A node that names no zone gets nothing from
// zones.
func TestZonesLaw(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		z := drawZoned(t)
		var reachable []peer.ID
		for _, id := range z.ring {
			if !z.unreachable.Has(id) {
				reachable = append(reachable, id)
			}
		}
		for _, id := range z.ring {
			ring, across := z.watchers(id)
			if z.zone[id] == "" {
				require.Empty(t, across)
				continue
			}
			most := 0
			for _, other := range []bool{true, false} {
				if z.has(reachable, id, other) && !z.has(ring, id, other) {
					most++
				}
			}
			if most > 0 && len(z.ring) < 8*z.n { // else a node may have too many
				for _, other := range []bool{true, false} {
					require.Equal(t, z.has(reachable, id, other), z.has(append(ring, across...), id, other), "%v", id)
				}
				require.Len(t, across, most)
			}
			require.LessOrEqual(t, len(across), most)
			require.NotContains(t, across, id)
		}
	})
}

// Without zones, with one node for each, and for one that is no member nothing is added; a lone node of a zone is not
// given the whole cluster.
func TestZonesBounds(t *testing.T) {
	var ids []peer.ID
	for i := range 200 {
		ids = append(ids, peer.ID{Addr: peer.MustAddr(fmt.Sprintf("10.0.0.%d:1", i+1)), Inc: uint64(i + 1)})
	}
	r := RingOf(peer.SetOf(ids...))
	require.Nil(t, ZonesOf(r, func(peer.ID) string { return "" }))
	require.Nil(t, r.Across(nil, ids[0], Absent{}, 5))
	zones := ZonesOf(r, func(id peer.ID) string {
		if id == ids[100] {
			return "lone"
		}
		return "rest"
	})
	require.Nil(t, r.Across(zones, peer.ID{Inc: 7}, Absent{}, 5))
	lone := r.Across(zones, ids[100], Absent{}, 5)
	require.Len(t, lone, 8*5)
	for i := range lone {
		require.True(t, lone.Has(ids[106+i]), "the nearest that the ring does not give it")
	}
	require.Nil(t, r.Across(zones, ids[99], Absent{}, 5), "the lone one names a zone of which nobody else is")
	require.Nil(t, r[:6].Across(zones[:6], ids[0], Absent{}, 5), "all watch all")
}
