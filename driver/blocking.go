// blockingPool: goroutines for Blocking entities, each busy with one entity as long as that has messages.

package driver

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/kith-io/kith/entity"
)

const (
	keepIdle = 64      // goroutines without an entity that are kept for the next one
	maxBusy  = 1 << 17 // entities that run at a time; others wait for their turn
)

// job is one entity that is ready.
type job struct {
	h *host
	e *entity.Entity
}

// blockingPool starts a goroutine for each entity that becomes busy; a few that have run out of work are used again, so
// that a message to an idle entity allocates nothing.
type blockingPool struct {
	d    *Driver
	most int64 // entities that run at a time
	busy atomic.Int64

	mu      sync.Mutex
	idle    []*runner
	waiting []*host // with entities that found the bound reached
	some    atomic.Bool
	over    bool
}

// runner is one goroutine and where it waits for its next entity.
type runner struct{ next chan job }

// run starts the entities of h that are ready, as far as the bound allows. The lock of the host is held.
func (p *blockingPool) run(h *host) {
	for {
		if p.busy.Add(1) > p.most {
			p.busy.Add(-1)
			p.mu.Lock()
			if !h.waits {
				h.waits = true
				p.waiting = append(p.waiting, h)
				p.some.Store(true)
			}
			p.mu.Unlock()
			return
		}
		e := h.sh.Ready()
		if e == nil {
			p.busy.Add(-1)
			return
		}
		p.start(job{h, e})
	}
}

// again goes on with hosts that had to wait. A runner calls it when its entity has run out of work, and the ticker for
// those that began to wait after the last runner had looked. No lock of a host is held.
func (p *blockingPool) again() {
	if !p.some.Load() || p.busy.Load() >= p.most {
		return
	}
	p.mu.Lock()
	waiting := p.waiting
	p.waiting = nil
	p.some.Store(false)
	for _, h := range waiting {
		h.waits = false
	}
	p.mu.Unlock()
	for _, h := range waiting {
		h.mu.Lock()
		h.settle()
		h.mu.Unlock()
	}
}

func (p *blockingPool) start(j job) {
	p.mu.Lock()
	if n := len(p.idle); n > 0 {
		r := p.idle[n-1]
		p.idle = p.idle[:n-1]
		p.mu.Unlock()
		r.next <- j
		return
	}
	p.mu.Unlock()
	r := &runner{next: make(chan job, 1)}
	r.next <- j
	go p.work(r)
}

// work is one goroutine.
func (p *blockingPool) work(r *runner) {
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
		p.again()
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
