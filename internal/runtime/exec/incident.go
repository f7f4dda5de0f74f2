// Incidents: what operators want to know about handlers, to the embedder's hook and the log, as many as they can read.

package exec

import (
	"log/slog"
	"sync"
	"time"

	"github.com/kith-io/kith/entity"
)

const (
	maxIncidents = 16          // of one kind and type that are reported within incidentSpan; more are only counted
	maxLost      = maxLater    // the same of states that are lost: each is reported once, by its name
	incidentSpan = time.Second // by the slewed clock
	maxLater     = 1024        // incidents that wait for the hook

	reportRunningMost = 16 // handlers that are reported when they run though the node is suspended
)

// incidentLimits bounds how many incidents of a type are reported: a message that makes handlers panic may come a
// million times a second.
type incidentLimits struct {
	mu    sync.Mutex
	kinds [entity.StopHangs + 1]struct {
		began  time.Duration
		told   int
		missed uint64
	}
}

// allow counts an incident and reports whether it is to be reported, and how many before it were not.
func (l *incidentLimits) allow(kind entity.IncidentKind, now time.Duration) (missed uint64, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	k := &l.kinds[kind]
	if now-k.began >= incidentSpan {
		k.began, k.told = now, 0
	}
	if k.told == maxIncidents && kind != entity.StateLost || k.told == maxLost {
		k.missed++
		return 0, false
	}
	k.told++
	missed, k.missed = k.missed, 0
	return missed, true
}

// report counts an incident and passes it on, unless there were many like it a moment ago.
func (x *Exec) report(t *Type, i entity.Incident) {
	switch i.Kind {
	case entity.Panicked:
		t.panics.Add(1)
	case entity.Slow:
		if !i.Running { // else it is counted when it returns
			t.slow.Add(1)
		}
	case entity.StateLost:
		t.lost.Add(1)
	case entity.StopHangs:
		t.hung.Add(1)
	}
	var ok bool
	if i.Missed, ok = t.told.allow(i.Kind, x.Clock.Slewed()); !ok {
		return
	}
	x.incidents.tell(i)
}

// ReportRunning reports handlers of Blocking entities, and calls of Type.Hosted, that were running when the node
// suspended itself, took ago, and have not returned: nothing can stop them but themselves (Context.Suspended).
func (x *Exec) ReportRunning(took time.Duration) {
	found := 0
	for _, h := range x.hosts.snapshot() {
		if h.end.attended.Load() && found < reportRunningMost {
			found++
			x.report(h.t, entity.Incident{Type: h.t.typ.Name, Shard: h.shard, Fence: h.fence, Mode: h.t.typ.Mode,
				Kind: entity.Overrun, Took: took})
		}
		if h.t.typ.Mode != entity.Blocking {
			continue
		}
		var ids []string
		h.mu.Lock()
		x.Gate.mu.Lock()
		for e := range h.sh.Running {
			if _, rests := x.Gate.resting[e]; !rests && found < reportRunningMost {
				ids = append(ids, e.ID())
				found++
			}
		}
		x.Gate.mu.Unlock()
		h.mu.Unlock()
		for _, id := range ids {
			x.report(h.t, entity.Incident{Type: h.t.typ.Name, ID: id, Shard: h.shard, Kind: entity.Overrun, Took: took})
		}
	}
}

// incidents is where they go: the log at once, which waits for nobody, and the embedder's hook by a list, since an
// incident may be found under a shard's lock, which the hook might want, or by a goroutine that is not to wait for it.
type incidents struct {
	log   *slog.Logger
	alone bool                  // what the transport logs does not go there
	hook  func(entity.Incident) // nil for none

	mu   sync.Mutex
	list []entity.Incident // that wait for the hook
}

// tell logs an incident and passes it to the hook. It may be called under locks.
func (n *incidents) tell(i entity.Incident) {
	about := slog.Group("entity", "type", i.Type, "id", i.ID, "shard", i.Shard, "mode", i.Mode.String())
	switch i.Kind {
	case entity.Panicked:
		n.log.Error("handler panicked", about, "panic", i.Text, "not_logged", i.Missed)
	case entity.Slow:
		n.log.Warn("handler is slow", about, "took", i.Took, "running", i.Running, "not_logged", i.Missed)
	case entity.Overrun:
		n.log.Error("handler still runs though the node is suspended", about, "suspended", i.Took)
	case entity.GaveUp:
		n.log.Error("entity was given up after a panic", about, "for", i.Took, "dropped", i.Dropped, "answered", i.Answered,
			"not_logged", i.Missed)
	case entity.NewFailed:
		n.log.Error("entity could not be made", about, "error", i.Text, "not_logged", i.Missed)
	case entity.DaemonFailed:
		n.log.Error("daemon failed", about, "error", i.Text, "not_logged", i.Missed)
	case entity.RecallFailed:
		n.log.Error("list of remembered entities could not be read", "type", i.Type, "shard", i.Shard, "error", i.Text,
			"not_logged", i.Missed)
	case entity.StateLost:
		n.log.Error("state of an entity is lost in a move", about, "error", i.Err, "not_logged", i.Missed)
	case entity.StopHangs:
		n.log.Error("stop call hangs", about, "fence", i.Fence, "call", i.Text, "for", i.Took, "not_logged", i.Missed)
	case entity.Stalled:
		n.log.Error("worker or event loop stands still", "mode", i.Mode.String(), "for", i.Took, "stack", i.Text)
	case entity.Silent:
		if n.alone && i.Running {
			n.log.Warn("connection is silent: nothing that was sent is acknowledged; trying a new one", "connection", i.Text,
				"for", i.Took)
		}
	}
	if n.hook == nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.list) < maxLater { // else the hook stands still, and the log has it
		n.list = append(n.list, i)
	}
}

// take hands out what waits for the hook.
func (n *incidents) take() []entity.Incident {
	n.mu.Lock()
	defer n.mu.Unlock()
	list := n.list
	n.list = nil
	return list
}

// parting holds the hosts in which Stop or HandOver is called, or was when the ticker last looked: a call that hangs is
// an incident.
type parting struct {
	mu   sync.Mutex
	list []*Host
}

func (p *parting) add(hosts ...*Host) {
	p.mu.Lock()
	p.list = append(p.list, hosts...)
	p.mu.Unlock()
}

func (p *parting) take() []*Host {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := p.list
	p.list = nil
	return list
}
