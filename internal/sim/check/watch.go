// Watch: the world that the checkers watch, and what of its news is for the core alone.

package check

import (
	"time"

	"github.com/kith-io/kith/internal/core/node"
	"github.com/kith-io/kith/internal/sim/world"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/sbr"
	"github.com/kith-io/kith/sim/setup"
)

// NewWorld returns a new world of n hosts under the checkers.
func NewWorld(n int, seed uint64, cfg setup.Config) (*world.World, *Checker) {
	var c *Checker
	w := world.New(n, seed, cfg, func(w *world.World) world.Watcher {
		c = New(w)
		return c
	})
	return w, c
}

// Lost reports whether a process is down for another.
func (c *Checker) Lost(id peer.ID) bool {
	_, lost := c.gone[id]
	return lost
}

// Decided excuses members that a resolver downs, and asks whether it may.
func (c *Checker) Decided(p *world.Process, d *node.Decision) {
	for _, id := range d.Down {
		c.Excuse(id)
		if d.Lives && d.Leader && d.Lease != sbr.LeasePending && !c.w.Splits() {
			bury(c, p, id)
		}
	}
	c.Core.decided(p, d)
}

// Starts takes a new process.
func (c *Checker) Starts(p *world.Process) { c.Core.starts(p) }

// Ends takes a process with a membership that is over.
func (c *Checker) Ends(p *world.Process, e *membership.Ended) { c.Core.ends(p, e) }

// Touch takes a process that a fault has met.
func (c *Checker) Touch(p *world.Process) { c.Core.touch(p) }

// Pauses takes a process that stands still for d.
func (c *Checker) Pauses(p *world.Process, d time.Duration) { c.Core.pauses(p, d) }

// Resumes takes a process that goes on.
func (c *Checker) Resumes(p *world.Process) { c.Core.resumes(p) }

// Stops takes a process that suspends itself, and why.
func (c *Checker) Stops(p *world.Process, why string) { c.Core.stops(p, why) }
