// Faults of connections that tests and storms order by name.

package sim

import (
	"time"

	"github.com/kith-io/kith/peer"
)

// breakControl breaks every control connection of the process, with what is on it.
func (p *proc) breakControl(why string) {
	for _, c := range p.conns.list {
		c.broke(why)
	}
}

// breakSome breaks the control and data connections of the process that which picks, which is asked once for each.
func (p *proc) breakSome(which func() bool, why string) {
	for _, t := range [2]*connTable{&p.conns, &p.links} {
		for _, c := range t.list {
			if which() {
				c.broke(why)
			}
		}
	}
}

// holdUp holds up what travels on the control connection to a peer until a moment, as lost packets do: what goes there,
// or, with back, the answers.
func (p *proc) holdUp(to peer.ID, back bool, until time.Duration) {
	switch c := p.conns.get(to, 0, nil); {
	case back:
		c.back.last = until
	default:
		c.fore.last = until
	}
}
