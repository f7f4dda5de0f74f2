// Ring: the hashed order of nodes that says which node watches which.

package fd

import (
	"cmp"
	"slices"

	"github.com/kith-io/kith/peer"
)

// ringOrder orders by incarnation, which every node draws at random when it starts, so the order is a hash already,
// equal on all nodes and new for each incarnation; ties go by address.
func ringOrder(a, b peer.ID) int { return cmp.Or(cmp.Compare(a.Inc, b.Inc), a.Addr.Compare(b.Addr)) }

// Ring is nodes in the order of the ring. It is not changed once made, so callers with the same nodes may share it.
type Ring []peer.ID

// RingOf returns the ring of nodes.
func RingOf(nodes peer.Set) Ring {
	ring := slices.Clone([]peer.ID(nodes))
	slices.SortFunc(ring, ringOrder)
	return ring
}

// Absent are nodes of a Ring that watch nobody. They may be nil, and are not changed.
type Absent struct {
	Unreachable peer.Set // for an observer that counts
	Down        peer.Set // no word of theirs counts, and mostly they have ended; they may be unreachable as well
}

func (a *Absent) has(id peer.ID) bool { return a.Unreachable.Has(id) || a.Down.Has(id) }

// Receivers returns the nodes that self watches, sorted by identity: the next n clockwise on the ring that are not
// absent, and every Down and unreachable node met on the way, which do not count: so a mass crash widens the set, and
// the survivors see all of it. With n nodes or fewer besides self it is all of them. It is a function of what is
// gossiped alone, so that all nodes that hold one state agree on it.
func (r Ring) Receivers(self peer.ID, absent Absent, n int) peer.Set {
	at, member := slices.BinarySearchFunc(r, self, ringOrder)
	others := len(r)
	if member {
		at++
		others--
	}
	out := make([]peer.ID, 0, min(n, others))
	taken := 0
	for i := 0; i < others && (taken < n || n >= others); i++ {
		id := r[(at+i)%len(r)]
		switch {
		case !absent.has(id):
			taken++
			out = append(out, id)
		case len(out) < n, !absent.Unreachable.Has(id): // a Down one has to be seen unreachable before it is removed
			out = append(out, id)
		}
	}
	return peer.SetOf(out...)
}
