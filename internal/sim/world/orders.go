// Orders: what an operator, or the process itself, tells a node in so many words.

package world

import (
	"time"

	"github.com/kith-io/kith/internal/core/node"
	"github.com/kith-io/kith/membership"
)

// Command gives a command to a process and returns its error.
func (p *Process) Command(cmd any) (err error) {
	p.step(func(now time.Duration) error { err = p.Node.Do(now, cmd); return nil })
	return err
}

// Leave starts a graceful leave, and forces it when it takes too long, as the driver does.
func (w *World) Leave(p *Process) {
	if !p.Alive || p.Leaving {
		return
	}
	p.Leaving, p.leaveBy = true, p.clock()+leaveTimeout
	w.Watcher.Excuse(p.ID)
	w.Watcher.Touch(p)
	goes := func() {
		p.Do(node.LeaveCommand{Within: w.Config.LeaveTimeout})
		p.Later(w.Config.LeaveTimeout, func() {
			p.forced = true
			p.Do(node.LeaveCommand{Force: true})
		})
	}
	p.Live(func() {
		if w.OnLeave == nil {
			goes()
			return
		}
		w.OnLeave(p, func() {
			p.leaveBy = p.clock() + leaveTimeout
			goes()
		})
	})
}

// Close ends the process without a leave, as an embedder's Close does: what it has written is still on the wire.
func (p *Process) Close() {
	if !p.Alive {
		return
	}
	p.World.trace.note(p.World.Now, p.Index, opFault, "close")
	p.World.Watcher.Touch(p)
	p.Die(true)
}

// HasLeft reports whether a process has left its cluster in order: it had the time that it took.
func HasLeft(p *Process) bool {
	return p.Ended != nil && p.Ended.Kind == membership.EndLeft && !p.forced
}
