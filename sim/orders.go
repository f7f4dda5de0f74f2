// Orders: what an operator, or the process itself, tells a node in so many words.

package sim

import (
	"time"

	"github.com/kith-io/kith/internal/node"
)

// command gives a command to a process and returns its error.
func (p *proc) command(cmd any) (err error) {
	p.step(func(now time.Duration) error { err = p.node.Do(now, cmd); return nil })
	return err
}

// leaveTimeout is how long a node gives its shards before it leaves without their confirmation.
const leaveTimeout = 30 * time.Second

// leave starts a graceful leave, and forces it when it takes too long, as the driver does.
func (w *world) leave(p *proc) {
	if !p.alive || p.leaving {
		return
	}
	p.leaving = true
	w.check.excuse(p.id)
	w.check.touch(p)
	p.live(func() {
		p.do(node.LeaveCommand{})
		p.later(leaveTimeout, func() {
			p.forced = true
			p.do(node.LeaveCommand{Force: true})
		})
	})
}
