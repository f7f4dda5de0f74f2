// Pauses of a process: it stands still while its clock goes on, or with it.

package world

import (
	"fmt"
	"time"
)

// Pause stops the process for d: its clock goes on, it does nothing, then everything happens at once.
func (p *Process) Pause(d time.Duration) {
	if !p.Alive || p.Paused() {
		return
	}
	p.World.trace.note(p.World.Now, p.Index, opFault, fmt.Sprintf("pause %v", d))
	p.slewed.to(p.clock())
	p.Asleep = true
	p.World.Watcher.Pauses(p, d)
	p.naps++
	nap := p.naps
	p.World.After(d, func() {
		if p.naps == nap {
			p.Resume()
		}
	})
}

// Sleep stops the process for d, its clock too, as when its machine stands still. All that it learns when it goes on is
// that the wall clock has stepped.
func (p *Process) Sleep(d time.Duration) {
	if !p.Alive || p.Paused() {
		return
	}
	p.World.trace.note(p.World.Now, p.Index, opFault, fmt.Sprintf("sleeps for %v, unseen by its clock", d))
	p.Pause(d)
	p.dozed = p.World.Now
}

// Resume lets a paused process go on now.
func (p *Process) Resume() {
	if !p.Alive || !p.Asleep {
		return
	}
	p.Asleep = false
	if p.dozed > 0 {
		p.unseen = p.World.Now - p.dozed
		p.dozed = 0
		p.leapt += p.unseen
		p.origin += p.unseen
		p.World.Book.unseen += p.unseen
	}
	p.slewed.resume(p.clock())
	p.goesOn(p.World.Now, p.View)
	noticeSleep(p)
	list := p.deferred
	p.deferred = nil
	for _, run := range list {
		p.Live(run)
	}
	if p.Alive {
		p.plan()
	}
	p.World.Watcher.Resumes(p)
}

// Live runs now, or when the process goes on, or never.
func (p *Process) Live(run func()) {
	switch {
	case !p.Alive:
	case p.Paused():
		p.deferUntilResume(run)
	default:
		p.World.turns.of(p.ID).runs++
		run()
	}
}

func (p *Process) deferUntilResume(run func()) { p.deferred = append(p.deferred, run) }
