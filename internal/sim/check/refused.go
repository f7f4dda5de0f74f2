// What is known of the tells that were refused, of each two incarnations.

package check

import "github.com/kith-io/kith/peer"

// pairKey is one direction between two incarnations.
type pairKey struct{ from, to peer.ID }

// refusedTells are the tells of one process that another refused. A notice that is given up may be on its way and still
// arrive, so reported ones and unreported ones may overlap; neither alone is ever more than was refused.
type refusedTells struct{ refused, told, untold uint64 }

// missing is how many of them nobody has accounted for.
func (r *refusedTells) missing() uint64 { return r.refused - min(r.refused, r.told+r.untold) }

// refusals are those of each two processes: the refuser, and the sender.
type refusals map[pairKey]*refusedTells

// of returns the tells of a process that by refused, made on first use.
func (r refusals) of(by, whose peer.ID) *refusedTells {
	k := pairKey{by, whose}
	if r[k] == nil {
		r[k] = &refusedTells{}
	}
	return r[k]
}
