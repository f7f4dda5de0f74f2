// blockingPool: goroutines for Blocking entities, each busy with one entity as long as that has messages.

package driver

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/kith-io/kith/entity"
)

// keepIdle is how many goroutines without an entity are kept for the next one.
const keepIdle = 64

// job is one entity that is ready.
type job struct {
	h *host
	e *entity.Entity
}

// blockingPool starts a goroutine for each entity that becomes busy; a few that have run out of work are used again, so
// that a message to an idle entity allocates nothing.
type blockingPool struct {
	d    *Driver
	mu   sync.Mutex
	idle []*runner
	busy atomic.Int64
	over bool
}

// runner is one goroutine and where it waits for its next entity.
type runner struct{ next chan job }

// start has e run. The lock of its host is held.
func (p *blockingPool) start(h *host, e *entity.Entity) {
	p.busy.Add(1)
	p.mu.Lock()
	if n := len(p.idle); n > 0 {
		r := p.idle[n-1]
		p.idle = p.idle[:n-1]
		p.mu.Unlock()
		r.next <- job{h, e}
		return
	}
	p.mu.Unlock()
	r := &runner{next: make(chan job, 1)}
	r.next <- job{h, e}
	go p.run(r)
}

// run is one goroutine.
func (p *blockingPool) run(r *runner) {
	for {
		j := <-r.next
		if j.h == nil {
			return
		}
		p.serve(j.h, j.e)
		p.mu.Lock()
		stay := !p.over && len(p.idle) < keepIdle
		if stay {
			p.idle = append(p.idle, r)
		}
		p.mu.Unlock()
		p.busy.Add(-1)
		if !stay {
			return
		}
	}
}

// serve runs e until nothing waits for it.
func (p *blockingPool) serve(h *host, e *entity.Entity) {
	now := p.d.now()
	h.mu.Lock()
	more := e.Begin(now)
	h.mu.Unlock()
	for more {
		for e.Work() && !h.abandoned.Load() {
		}
		now = p.d.now()
		h.mu.Lock()
		more = e.End(now) && e.Begin(now)
		h.settle()
		h.mu.Unlock()
	}
}

// stop ends idle goroutines and waits for busy ones at most for patience. It reports whether all have ended.
func (p *blockingPool) stop(patience time.Duration) bool {
	p.mu.Lock()
	p.over = true
	for _, r := range p.idle {
		r.next <- job{}
	}
	p.idle = nil
	p.mu.Unlock()
	for until := time.Now().Add(patience); p.busy.Load() > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(until) {
			return false
		}
	}
	return true
}
