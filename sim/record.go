// Record: what a host keeps of its process's membership for the next process there.

package sim

import (
	"time"

	"github.com/kith-io/kith/membership"
)

// diskTime draws how long a write takes until it outlives the process: mostly some milliseconds, now and then long.
func (w *world) diskTime() time.Duration {
	if w.diskRand.IntN(50) == 0 {
		return 200*time.Millisecond + time.Duration(w.diskRand.Int64N(int64(2*time.Second)))
	}
	return 2*time.Millisecond + time.Duration(w.diskRand.Int64N(int64(20*time.Millisecond)))
}

// recall is what a new process at a host is given.
func (h *host) recall(w *world) membership.Record {
	if !w.cfg.Records {
		return membership.Record{}
	}
	return h.record
}

// remember follows a view: the host has it when it is written.
func (p *proc) remember(v *membership.View) {
	if p.w.cfg.Records {
		p.memory.Note(v)
		p.save()
	}
}

// save writes what is due, now or later. What is not written when the process dies is lost.
func (p *proc) save() {
	w := p.w
	at, ok := p.memory.Due()
	switch {
	case !ok || p.writes:
	case at > w.now:
		if p.saveAt <= w.now || at < p.saveAt {
			p.saveAt = at
			p.later(at-w.now, p.save)
		}
	default:
		p.writes = true
		rec := p.memory.Wanted()
		p.later(w.diskTime(), func() {
			p.writes = false
			w.hosts[p.idx].record = rec
			p.memory.Wrote(w.now, rec, true)
			p.do(membership.RecordedCommand{Record: rec})
			if p.alive {
				p.save()
			}
		})
	}
}

// leaves is what the end of a membership makes of the record.
func (p *proc) leaves(e *membership.Ended) {
	h := p.w.hosts[p.idx]
	switch {
	case !p.w.cfg.Records:
	case e.Record != nil:
		h.record = *e.Record
	case e.Kind == membership.EndRejoin:
		h.record = membership.Record{}
	case e.Kind == membership.EndLeft && p.memory.Wanted().Known():
		if h.record = p.memory.Wanted().Left(p.view, p.w.node().RecordRole()); h.record.Alone() {
			h.record = membership.Record{}
		}
	}
}
