// Faults of connections that tests and storms order by name.

package world

import (
	"time"

	"github.com/kith-io/kith/peer"
)

// BreakControl breaks every control connection of the process, with what is on it.
func (p *Process) BreakControl(why string) {
	for _, c := range p.conns.list {
		c.broke(why)
	}
}

// BreakSome breaks the control and data connections of the process that which picks, which is asked once for each.
func (p *Process) BreakSome(which func() bool, why string) {
	for _, t := range [2]*connTable{&p.conns, &p.links} {
		for _, c := range t.list {
			if which() {
				c.broke(why)
			}
		}
	}
}

// HoldUp holds up what travels on the control connection to a peer until a moment, as lost packets do: what goes there,
// or, with back, the answers.
func (p *Process) HoldUp(to peer.ID, back bool, until time.Duration) {
	switch c := p.conns.get(to, 0, nil); {
	case back:
		c.back.last = until
	default:
		c.fore.last = until
	}
}
