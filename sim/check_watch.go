// Watch: the world that the checkers watch, and what of its news is for the core alone.

package sim

import (
	"time"

	"github.com/kith-io/kith/internal/node"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
)

// newChecked returns a new world of n hosts under the checkers.
func newChecked(n int, seed uint64, cfg Config) (*world, *checker) {
	var c *checker
	w := newWorld(n, seed, cfg, func(w *world) watcher {
		c = newChecker(w)
		return c
	})
	return w, c
}

// lost reports whether a process is down for somebody.
func (c *checker) lost(id peer.ID) bool {
	_, lost := c.gone[id]
	return lost
}

// decided excuses whom a resolver downs, and asks whether it may.
func (c *checker) decided(p *proc, d *node.Decision) {
	for _, id := range d.Down {
		c.excuse(id)
	}
	c.core.decided(p, d)
}

// starts is told of a new process.
func (c *checker) starts(p *proc) { c.core.starts(p) }

// ends is told of a process whose membership is over.
func (c *checker) ends(p *proc, e *membership.Ended) { c.core.ends(p, e) }

// touch is told of a process that a fault has met.
func (c *checker) touch(p *proc) { c.core.touch(p) }

// pauses is told of a process that stands still for d.
func (c *checker) pauses(p *proc, d time.Duration) { c.core.pauses(p, d) }

// resumes is told of a process that goes on.
func (c *checker) resumes(p *proc) { c.core.resumes(p) }

// stops is told of a process that suspends itself, and why.
func (c *checker) stops(p *proc, why string) { c.core.stops(p, why) }
