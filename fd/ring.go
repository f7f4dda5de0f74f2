// Ring: the hashed order of nodes that says who watches whom (FD-2).

package fd

import (
	"cmp"
	"slices"

	"github.com/kith-io/kith/peer"
)

// ringOrder orders by incarnation, which every node draws at random when it starts, so the order is a hash already,
// equal on all nodes and new for each incarnation; ties go by address.
func ringOrder(a, b peer.ID) int { return cmp.Or(cmp.Compare(a.Inc, b.Inc), a.Addr.Compare(b.Addr)) }

// Receivers returns whom self watches, sorted by identity: the next n reachable nodes clockwise on the ring of all
// nodes, and every unreachable node met on the way, which does not count: so a mass crash widens the set, and the
// survivors see all of it. With n nodes or fewer besides self it is all of them.
func Receivers(self peer.ID, nodes, unreachable peer.Set, n int) peer.Set {
	ring := slices.Clone([]peer.ID(nodes))
	slices.SortFunc(ring, ringOrder)
	at, ok := slices.BinarySearchFunc(ring, self, ringOrder)
	if ok {
		ring = slices.Delete(ring, at, at+1)
	}
	if n >= len(ring) {
		return peer.SetOf(ring...)
	}
	out := make([]peer.ID, 0, n)
	taken := 0
	for i := 0; i < len(ring) && taken < n; i++ {
		id := ring[(at+i)%len(ring)]
		switch {
		case !unreachable.Has(id):
			taken++
			out = append(out, id)
		case len(out) < n:
			out = append(out, id)
		}
	}
	return peer.SetOf(out...)
}
