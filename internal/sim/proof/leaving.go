// Leaving: one of the nodes leaves while the links break, and not all groups know the same of it.

package proof

import (
	"fmt"
	"slices"
)

// leave decides every state of the pairs while each node in turn leaves, and returns how many there were. All know that
// it leaves, or its own group alone does; or some groups know the next step of its leader, Exiting or removed, which it
// took because all had seen the one before.
func (p *prover) leave(row *Row, fault func(what string)) (states int) {
	defer func() { p.parting = parting{node: -1} }()
	for heard := range uint32(1) << (p.n * (p.n - 1) / 2) {
		for node := range p.n {
			for _, at := range [...]stage{leaving, exiting, removed} {
				for _, confirmed := range [...]bool{false, true} {
					if at != leaving || !confirmed {
						states += p.part(heard, parting{node: node, earlier: at - 1, later: at, confirmed: confirmed,
							differ: at != leaving}, row, fault)
					}
				}
			}
		}
	}
	return states
}

// part decides one state of the pairs with every choice of groups that know the later stage.
func (p *prover) part(heard uint32, as parting, row *Row, fault func(what string)) (states int) {
	p.parting = as
	var groups []uint32
	for i := range p.n {
		if g := p.group(i, heard); !slices.Contains(groups, g) {
			groups = append(groups, g)
		}
	}
	for choice := range 1 << len(groups) {
		p.ahead = 0
		for i, g := range groups {
			if choice>>i&1 == 1 {
				p.ahead |= g
			}
		}
		if as.later == leaving && p.ahead>>as.node&1 == 0 { // its own group knows first
			continue
		}
		states++
		p.judge(heard, row, func(what string) {
			fault(fmt.Sprintf("pairs %0*b, node %d leaves, %05b know stage %d (confirmed %t): %s", p.n*(p.n-1)/2, heard,
				as.node, p.ahead, as.later, as.confirmed, what))
		})
	}
	return states
}
