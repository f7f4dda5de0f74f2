// blockingPool: goroutines for Blocking entities, each busy with one entity as long as that has messages.

package exec

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
	h *Host
	e *entity.Entity
}

// blockingPool runs each entity that becomes busy on a goroutine of its own, without waking one for each: one runner at
// a time is called, and when it takes a job and more wait it calls the next before it begins. So a handler that blocks
// holds up nobody, while handlers that do not block are worked off by few goroutines, one behind the other. Runners
// that found nothing to do are used again: a message to an idle entity allocates nothing.
type blockingPool struct {
	x    *Exec
	most int64 // entities that run or are queued at a time
	busy atomic.Int64

	mu      sync.Mutex
	jobs    jobQueue
	called  bool // a runner is on its way to the queue
	idle    []*runner
	waiting []*Host // with entities that found the bound reached
	some    atomic.Bool
	over    bool
}

// runner is one goroutine and where it waits to be called: true for the queue, false for its end.
type runner struct {
	next  chan bool
	timed Sampler
	frame entity.RunFrame
	in    job // whose handlers it calls just now
}

// jobQueue is first in, first out; blockingPool.most bounds it.
type jobQueue struct {
	list []job
	head int
}

func (q *jobQueue) push(j job) {
	if len(q.list) == cap(q.list) && q.head > len(q.list)/2 {
		n := copy(q.list, q.list[q.head:])
		clear(q.list[n:])
		q.list, q.head = q.list[:n], 0
	}
	q.list = append(q.list, j)
}

func (q *jobQueue) pop() (j job, ok bool) {
	if q.head == len(q.list) {
		return job{}, false
	}
	j, q.list[q.head] = q.list[q.head], job{}
	if q.head++; q.head == len(q.list) {
		q.list, q.head = q.list[:0], 0
	}
	return j, true
}

// run starts the entities of h that are ready, as far as the bound allows. The lock of the host is held.
func (p *blockingPool) run(h *Host) {
	for h.sh.AnyReady() {
		if p.busy.Add(1) > p.most {
			p.busy.Add(-1)
			p.wait(h)
			return
		}
		p.start(job{h, h.sh.Ready()})
	}
}

// collect is run for a caller that goes on to other hosts: it appends the entities to jobs, and the caller starts them
// all later, with startAll. Until then nobody works on them, and so nobody fights over them with the caller.
func (p *blockingPool) collect(h *Host, jobs []job) []job {
	for h.sh.AnyReady() {
		if p.busy.Load()+int64(len(jobs)) >= p.most {
			p.wait(h)
			break
		}
		jobs = append(jobs, job{h, h.sh.Ready()})
	}
	return jobs
}

// wait notes a host with entities that found the bound reached.
func (p *blockingPool) wait(h *Host) {
	p.mu.Lock()
	if !h.waits {
		h.waits = true
		p.waiting = append(p.waiting, h)
		p.some.Store(true)
	}
	p.mu.Unlock()
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
		h.follow()
		h.mu.Unlock()
	}
}

func (p *blockingPool) start(j job) {
	p.mu.Lock()
	p.jobs.push(j)
	r, fresh := p.call()
	p.mu.Unlock()
	p.rouse(r, fresh)
}

// startAll starts jobs that were collected. They may be a few beyond the bound when several goroutines collect.
func (p *blockingPool) startAll(jobs []job) {
	p.busy.Add(int64(len(jobs)))
	p.mu.Lock()
	for _, j := range jobs {
		p.jobs.push(j)
	}
	r, fresh := p.call()
	p.mu.Unlock()
	p.rouse(r, fresh)
}

// call picks the runner that is to go to the queue; nil when one is on its way or nothing waits. p.mu is held.
func (p *blockingPool) call() (r *runner, fresh bool) {
	if p.called || len(p.jobs.list) == p.jobs.head {
		return nil, false
	}
	p.called = true
	if n := len(p.idle); n > 0 {
		r, p.idle = p.idle[n-1], p.idle[:n-1]
		return r, false
	}
	return &runner{next: make(chan bool, 1)}, true
}

func (p *blockingPool) rouse(r *runner, fresh bool) {
	switch {
	case r == nil:
	case fresh:
		go p.work(r)
	default:
		r.next <- true
	}
}

// work is one goroutine. It begins as called, or where a handler has ended the one before it.
func (p *blockingPool) work(r *runner) {
	defer p.outlive(r)
	called := r.in.h == nil
	if !called {
		j := r.in
		r.in = job{}
		p.serve(r, j, true)
	}
	for {
		p.mu.Lock()
		if called {
			p.called, called = false, false
		}
		j, ok := p.jobs.pop()
		if !ok {
			stay := !p.over && len(p.idle) < keepIdle
			if stay {
				p.idle = append(p.idle, r)
			}
			p.mu.Unlock()
			if !stay || !<-r.next {
				return
			}
			called = true
			continue
		}
		next, fresh := p.call()
		p.mu.Unlock()
		p.rouse(next, fresh)
		p.serve(r, j, false)
	}
}

// outlive is the end of a runner's goroutine. When a handler has ended it (runtime.Goexit), the runner goes on with the
// entity on another one. A panic that comes here is ours, and ends the process.
func (p *blockingPool) outlive(r *runner) {
	if v := recover(); v != nil {
		panic(v)
	}
	if r.in.h != nil {
		go p.work(r)
	}
}

// serve runs an entity until nothing waits for it. begun says that a run of it has begun, whose goroutine has ended.
func (p *blockingPool) serve(r *runner, j job, begun bool) {
	h, e, now := j.h, j.e, p.x.Clock.Now()
	run, more := nextRun(h, e, now, begun)
	for more {
		if p.x.Gate.Held(now) {
			p.x.Gate.wait(e)
			now = p.x.Clock.Now()
		}
		r.in = j
		e.Enter(&r.frame, now)
		if p.x.cfg.Latency != nil {
			r.timeWork(h, e, run)
		}
		for p.x.cfg.Latency == nil && goesOn(h, run) && e.Work() {
			p.x.Gate.goOn(e)
			r.frame.Saw(p.x.Clock.Fresh(now)) // as for messages of a batch of a worker
		}
		r.in = job{}
		if h.t.weighs.Load() {
			h.shown.ran.Add(int64(p.x.Clock.Now() - now))
		}
		if run, more = nextRun(h, e, p.x.Clock.Fresh(now), true); more {
			now = p.x.Clock.Now() // for the gate: the process may have slept
		}
	}
	p.busy.Add(-1)
	p.again()
}

// nextRun begins a run of an entity of the host, behind the end of the one before it if there was one, and reports
// whether there is work.
func nextRun(h *Host, e *entity.Entity, now time.Duration, begun bool) (r run, more bool) {
	h.mu.Lock()
	if !begun {
		r, more = begins(h, e, now)
		h.mu.Unlock()
		return r, more
	}
	barNow(h, now)
	more = e.End(now)
	permitted(h)
	if more {
		r, more = begins(h, e, now)
	} else {
		cutNow(h, now)
	}
	h.follow()
	h.mu.Unlock()
	return r, more
}

// stop ends idle goroutines and waits for busy ones at most for patience. It reports whether all have ended.
func (p *blockingPool) stop(patience time.Duration) bool {
	p.mu.Lock()
	p.over = true
	for _, r := range p.idle {
		r.next <- false
	}
	p.idle = nil
	p.mu.Unlock()
	for until := time.Now().Add(patience); p.busy.Load() > 0 || !p.x.recaller.idle(); time.Sleep(time.Millisecond) {
		if time.Now().After(until) {
			return false
		}
	}
	return true
}
