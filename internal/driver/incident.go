// Incidents: what operators want to know about handlers, to the embedder's hook and the log, as many as they can read.

package driver

import (
	"log/slog"
	"sync"
	"time"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/route"
)

const (
	maxIncidents = 16          // of one kind and type that are reported within incidentSpan; more are only counted
	incidentSpan = time.Second // by the coarse clock
	maxLater     = 1024        // incidents that wait for the ticker
)

// incidentLimits bounds how many incidents of a type are reported: a message that makes handlers panic may come a
// million times a second.
type incidentLimits struct {
	mu    sync.Mutex
	kinds [entity.Stalled + 1]struct {
		began  time.Duration
		told   int
		missed uint64
	}
}

// allow counts an incident and reports whether it is to be told, and how many were not before it.
func (l *incidentLimits) allow(kind entity.IncidentKind, now time.Duration) (missed uint64, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	k := &l.kinds[kind]
	if now-k.began >= incidentSpan {
		k.began, k.told = now, 0
	}
	if k.told == maxIncidents {
		k.missed++
		return 0, false
	}
	k.told++
	missed, k.missed = k.missed, 0
	return missed, true
}

// report counts an incident and passes it on, unless there were many like it a moment ago.
func (d *Driver) report(r *Region, i entity.Incident) {
	switch i.Kind {
	case entity.Panicked:
		r.count.panics.Add(1)
	case entity.Slow:
		if !i.Running { // else it is counted when it returns
			r.count.slow.Add(1)
		}
	case entity.GaveUp:
		if i.Dropped > 0 {
			d.failed.add(r, i.Shard, cause{peer: d.self, reason: route.Crashed}, uint64(i.Dropped), bytesOf(i.ID))
		}
	}
	var ok bool
	if i.Missed, ok = r.told.allow(i.Kind, time.Duration(d.coarse.Load())); !ok {
		return
	}
	if i.Kind == entity.GaveUp {
		d.later.add(i) // this is called under the shard's lock, which the hook might want
		return
	}
	d.tell(i)
}

// tell logs an incident and calls the hook.
func (d *Driver) tell(i entity.Incident) {
	about := slog.Group("entity", "type", i.Type, "id", i.ID, "shard", i.Shard, "mode", i.Mode.String())
	switch i.Kind {
	case entity.Panicked:
		d.log.Error("handler panicked", about, "panic", i.Text, "not_logged", i.Missed)
	case entity.Slow:
		d.log.Warn("handler is slow", about, "took", i.Took, "running", i.Running, "not_logged", i.Missed)
	case entity.Overrun:
		d.log.Error("handler still runs though the node is suspended", about, "suspended", i.Took)
	case entity.GaveUp:
		d.log.Error("entity was given up after a panic", about, "for", i.Took, "dropped", i.Dropped, "answered", i.Answered,
			"not_logged", i.Missed)
	case entity.Stalled:
		d.log.Error("worker or event loop stands still", "mode", i.Mode.String(), "for", i.Took, "stack", i.Text)
	}
	if d.cfg.Incident != nil {
		d.cfg.Incident(i)
	}
}

// laterList holds incidents that were found under a lock until the ticker tells them.
type laterList struct {
	mu   sync.Mutex
	list []entity.Incident
}

func (l *laterList) add(i entity.Incident) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.list) < maxLater {
		l.list = append(l.list, i)
	}
}

// tellLater tells them. Ticker, and the end of the node.
func (d *Driver) tellLater() {
	d.later.mu.Lock()
	list := d.later.list
	d.later.list = nil
	d.later.mu.Unlock()
	for _, i := range list {
		d.tell(i)
	}
}
