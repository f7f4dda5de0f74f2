// What the proof foretells of one state, for tests that hold whole clusters against it.

package proof

import "github.com/kith-io/kith/sbr"

// Foretold returns what tells, of a state of the directed links between 2 to MaxNodes nodes, which sets of survivors
// are possible: more than one only where a lease has one winner. Nodes are bits, the lowest is the first; the links are
// two bits for each pair in ascending order, there and back, and a bit that is set is a link that carries.
func Foretold(nodes int, c sbr.Config) func(links uint32) (survivors []uint32) {
	p := newProver(nodes, Case{Config: c})
	return func(links uint32) (survivors []uint32) {
		heard := p.mutual(links)
		var acts [MaxNodes]act
		var groups [MaxNodes]uint32
		asked := false
		for i := range p.n {
			groups[i] = p.group(i, heard)
			acts[i] = p.act(i, groups[i], heard)
		}
		for i := range p.n {
			if acts[i].asks {
				asked = true
				survivors = append(survivors, p.outcome(groups[:p.n], acts[:p.n], i))
			}
		}
		if !asked {
			survivors = append(survivors, p.outcome(groups[:p.n], acts[:p.n], -1))
		}
		return survivors
	}
}
