// Record: what a host keeps of its process's membership for the next process there.

package world

import (
	"time"

	"github.com/kith-io/kith/membership"
)

// diskTime draws how long a write takes until it outlives the process: mostly some milliseconds, now and then long.
func (w *World) diskTime() time.Duration {
	if w.diskRand.IntN(50) == 0 {
		return 200*time.Millisecond + time.Duration(w.diskRand.Int64N(int64(2*time.Second)))
	}
	return 2*time.Millisecond + time.Duration(w.diskRand.Int64N(int64(20*time.Millisecond)))
}

// recall is what a new process at a host is given.
func (h *Host) recall(w *World) membership.Record {
	if !w.Config.Records {
		return membership.Record{}
	}
	return h.record
}

// remember follows a view: the host has it when it is written.
func (p *Process) remember(v *membership.View) {
	if p.World.Config.Records {
		p.memory.Note(v)
		p.save()
	}
}

// save writes what is due, now or later. What is not written when the process dies is lost.
func (p *Process) save() {
	w := p.World
	at, ok := p.memory.Due()
	switch {
	case !ok || p.writes:
	case at > w.Now:
		if p.saveAt <= w.Now || at < p.saveAt {
			p.saveAt = at
			p.Later(at-w.Now, p.save)
		}
	default:
		p.writes = true
		rec := p.memory.Wanted()
		p.Later(w.diskTime(), func() {
			p.writes = false
			w.Hosts[p.Index].record = rec
			p.memory.Wrote(w.Now, rec, true)
			p.Do(membership.RecordedCommand{Record: rec})
			if p.Alive {
				p.save()
			}
		})
	}
}

// leaves is what the end of a membership makes of the record.
func (p *Process) leaves(e *membership.Ended) {
	switch e.Kind {
	case membership.EndLeft, membership.EndRejoin, membership.EndDowned, membership.EndRemoved:
	default:
		if e.Record == nil {
			return
		}
	}
	if p.World.Config.Records {
		role := p.World.Node().RecordRole()
		p.World.Hosts[p.Index].record = p.memory.Wanted().After(e.Kind, e.Record, p.View, role)
	}
}
