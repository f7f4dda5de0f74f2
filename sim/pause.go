// Pauses of a process: it stands still while its clock goes on, or with it.

package sim

import (
	"fmt"
	"time"

	"github.com/kith-io/kith/internal/node"
)

// pause stops the process for d: its clock goes on, it does nothing, then everything happens at once.
func (p *proc) pause(d time.Duration) {
	if !p.alive || p.paused() {
		return
	}
	p.w.trace.note(p.w.now, p.idx, opFault, fmt.Sprintf("pause %v", d))
	p.asleep = true
	p.w.check.pauses(p, d)
	p.naps++
	nap := p.naps
	p.w.after(d, func() {
		if p.naps == nap {
			p.resume()
		}
	})
}

// sleep stops the process for d, its clock too, as when its machine stands still. All that it is told when it goes on
// is that the wall clock has stepped.
func (p *proc) sleep(d time.Duration) {
	if !p.alive || p.paused() {
		return
	}
	p.w.trace.note(p.w.now, p.idx, opFault, fmt.Sprintf("sleeps for %v, unseen by its clock", d))
	p.pause(d)
	p.dozed = p.w.now
}

// resume lets a paused process go on now.
func (p *proc) resume() {
	if !p.alive || !p.asleep {
		return
	}
	p.asleep = false
	if p.dozed > 0 {
		p.unseen = p.w.now - p.dozed
		p.dozed = 0
		p.origin += p.unseen
		p.do(node.SleptCommand{For: p.unseen})
	}
	list := p.deferred
	p.deferred = nil
	for _, run := range list {
		p.live(run)
	}
	if p.alive {
		p.plan()
	}
	p.w.check.resumes(p)
}
