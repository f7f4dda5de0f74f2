// Zones: further watchers, so that each member has one in its own zone and one in another zone.

package fd

import (
	"slices"

	"github.com/kith-io/kith/peer"
)

// Zones names the zone of each node of a Ring, by its place there; an empty name is none. Nil: nobody names any. It is
// not changed once made.
type Zones []string

// ZonesOf returns the zones of the nodes of a ring, nil when nobody names one.
func ZonesOf(r Ring, zone func(peer.ID) string) Zones {
	var z Zones
	for i, id := range r {
		if name := zone(id); name != "" {
			if z == nil {
				z = make(Zones, len(r))
			}
			z[i] = name
		}
	}
	return z
}

// acrossMost bounds, by the number of its neighbours, how many nodes a node watches because of zones: the only one of a
// zone could have to watch the whole cluster.
const acrossMost = 8

// Across returns the nodes that self watches beside its Receivers because of zones, sorted by identity. A node that
// names a zone may have no watcher of another zone on the ring, or none of its own: then the nearest reachable node
// counter-clockwise that is in another zone, or in its own, watches it too. A node that names no zone asks for nothing,
// and counts as no other zone. A node watches at most 8n for this, the nearest. Like Receivers it is a function of what
// is gossiped alone.
func (r Ring) Across(zones Zones, self peer.ID, absent Absent, n int) peer.Set {
	me, member := slices.BinarySearchFunc(r, self, ringOrder)
	if zones == nil || !member || zones[me] == "" || n >= len(r)-1 || absent.has(self) {
		return nil
	}
	var out []peer.ID
	w := walk{n: n, own: map[string]passed{}}
	for k := 1; k < 2*len(r) && len(out) < acrossMost*n; k++ { // the first time round it only learns which ids come before
		at := (me + k) % len(r)
		up, zone := !absent.has(r[at]), zones[at]
		if k > len(r) && zone != "" && w.looksFor(me, k, at, zone, up) {
			out = append(out, r[at])
		}
		if up {
			w.reached++
			w.pass(passed{k, at, w.reached, zone})
		}
	}
	return peer.SetOf(out...)
}

// walk is how far a walk round the ring has come, and which reachable nodes with a zone it has passed last.
type walk struct {
	n, reached  int
	last, other passed            // the last one, and the last of another zone than that
	own         map[string]passed // the last one of each zone
}

// passed is a reachable node: the step at which it was passed, zero for none, its place on the ring, and how many
// reachable ones had been passed with it.
type passed struct {
	k, at, reached int
	zone           string
}

func (w *walk) pass(p passed) {
	if p.zone == "" {
		return
	}
	if p.zone != w.last.zone {
		w.other = w.last
	}
	w.last, w.own[p.zone] = p, p
}

// looksFor reports whether the node at me is the one that is to watch the node at place at, which step k has reached.
func (w *walk) looksFor(me, k, at int, zone string, up bool) bool {
	far := w.last
	if far.zone == zone {
		far = w.other
	}
	for _, p := range [2]passed{far, w.own[zone]} {
		near := up && p.reached > w.reached-w.n || !up && k-p.k <= w.n // the ring has it watched already
		if p.k > 0 && p.at == me && me != at && !near {
			return true
		}
	}
	return false
}
