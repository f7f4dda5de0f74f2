// Record: what a host keeps of its process's membership for the next process there, and the rule against twins.

package sim

import (
	"time"

	"github.com/kith-io/kith/membership"
)

const (
	// twinLook is how often two clusters are looked for, twinSlack what a side that lost may take beyond its time.
	twinLook  = time.Second
	twinSlack = time.Second
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

// outlives notes, at the first view of a process in a cluster, that those of older ones are lost for it: as it has seen
// nothing of them, they must have stopped handling messages before their shards live here. Among their own they stay
// bound by every rule, until one of them shows them Down: they are not gone by this.
func (c *checker) outlives(p *proc, v *membership.View) {
	if !c.w.cfg.Records || v.ClusterID == 0 || p.shown {
		return
	}
	p.shown = true
	for _, q := range c.w.procs {
		if q.alive && q.view != nil && q.view.Birth != 0 && q.view.Birth < v.Birth {
			c.pairs.loses(p, q.id, c.w.now)
		}
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

// twins watches that nodes which keep records never make two clusters that both handle messages for long: a side that
// lost is stopped by its resolver within the takeover time.
func (c *checker) twins() {
	w := c.w
	first, second := uint64(0), uint64(0)
	for _, p := range w.running() {
		switch v := p.view; {
		case v == nil || v.ClusterID == 0 || p.paused() || p.stuck() || p.held():
		case first == 0 || first == v.ClusterID:
			first = v.ClusterID
		default:
			second = v.ClusterID
		}
	}
	switch {
	case second == 0:
		c.twinSince = -1
	case c.twinSince < 0:
		c.twinSince = w.now
	case w.now-c.twinSince > w.takeover()+twinSlack:
		c.violate(nil, "twins", "clusters %x and %x both live since %v", first, second, c.twinSince)
		c.twinSince = w.now
	}
	w.after(twinLook, c.twins)
}
