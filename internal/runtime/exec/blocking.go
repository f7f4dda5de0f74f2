// blockingPool: goroutines for Blocking entities, each busy with one entity as long as that has messages.

package exec

import (
	"sync"
	"time"

	"github.com/kith-io/kith/entity"
)

const (
	keepIdle = 64      // goroutines without an entity that are kept for the next one
	maxBusy  = 1 << 17 // entities that run at a time; others wait for their turn
	maxTurn  = 16      // entities of one host that a goroutine runs before it looks at the others
)

// blockingPool runs each entity that becomes busy on a goroutine of its own, without waking one for each: one runner at
// a time is called, and when it takes a host and more waits it calls the next before it begins. So a handler that
// blocks holds up nobody, while handlers that do not block are worked off by few goroutines, one behind the other.
// Runners that found nothing to do are used again: a message to an idle entity allocates nothing.
//
// What waits in the pool are hosts with entities that are ready; the entities wait in their shards. So a runner goes on
// to the next entity of a host under the lock under which it ends the one before. A host that has more ready entities
// stands in the queue while it runs one, so that others find them.
type blockingPool struct {
	x    *Exec
	most int // entities that run at a time

	_      [cacheLine]byte // those above and around are read for each message, these are written
	mu     sync.Mutex
	hosts  hostQueue
	busy   int  // runners with an entity
	called bool // a runner is on its way to the queue
	idle   []*runner
	over   bool
	_      [cacheLine]byte
}

// runner is one goroutine and where it waits to be called: true for the queue, false for its end. It writes this for
// each message, so the size is one of the allocator's that end with a line of memory.
type runner struct {
	next  chan bool
	timed Sampler
	frame entity.RunFrame
	in    job // the one it runs just now
	_     [32]byte
}

// job is one entity that is run.
type job struct {
	h *Host
	e *entity.Entity
}

// waits is what the pool knows of a host with entities that are ready.
type waits struct {
	place    int      // in the queue; its lock guards it; zero: none
	gathered *[]*Host // the loop's list that it is in, if nobody has looked at the host since; its own lock guards it
}

// hostQueue holds hosts, each at most once, first in, first out. Its lock guards their place too.
type hostQueue struct {
	list []*Host // nil: taken out of its turn
	head int
	n    int // how many wait
}

func (q *hostQueue) push(h *Host) {
	if h.waits.place != 0 {
		return
	}
	if len(q.list) == cap(q.list) && q.n <= len(q.list)/2 {
		q.close()
	}
	q.list = append(q.list, h)
	h.waits.place = len(q.list)
	q.n++
}

// close fills the places where nobody stands.
func (q *hostQueue) close() {
	n := 0
	for _, h := range q.list[q.head:] {
		if h != nil {
			q.list[n] = h
			n++
			h.waits.place = n
		}
	}
	clear(q.list[n:])
	q.list, q.head = q.list[:n], 0
}

// pop returns the first, nil when none waits.
func (q *hostQueue) pop() *Host {
	for q.head < len(q.list) {
		h := q.list[q.head]
		q.list[q.head] = nil
		q.head++
		if h != nil {
			h.waits.place = 0
			q.n--
			q.trim()
			return h
		}
	}
	q.trim()
	return nil
}

// remove takes a host out, and reports whether it stood there.
func (q *hostQueue) remove(h *Host) bool {
	if h.waits.place == 0 {
		return false
	}
	q.list[h.waits.place-1] = nil
	h.waits.place = 0
	q.n--
	q.trim()
	return true
}

// trim gives up places at the end of the list, of which nobody stands at any.
func (q *hostQueue) trim() {
	for n := len(q.list); n > q.head && q.list[n-1] == nil; n = len(q.list) {
		q.list = q.list[:n-1]
	}
	if q.head == len(q.list) {
		q.list, q.head = q.list[:0], 0
	}
}

// run lets runners find the entities of h that are ready. The lock of the host is held.
func (p *blockingPool) run(h *Host) {
	if !h.queued && h.sh.AnyReady() {
		p.rouse(p.add(h))
	}
}

// collect is run for a loop that goes on to other hosts: it appends the host to the loop's list, and the loop starts
// all of it when its pass ends, with startAll. Until then nobody works on them because of what it has read, and so
// nobody fights over them with it. What comes to the host by other ways does not wait for the loop.
func (p *blockingPool) collect(h *Host, list *[]*Host) {
	if !h.queued && h.waits.gathered != list && h.sh.AnyReady() {
		h.waits.gathered = list
		*list = append(*list, h)
	}
}

// startAll lets runners find the hosts that were collected.
func (p *blockingPool) startAll(list []*Host) {
	p.mu.Lock()
	for _, h := range list {
		p.hosts.push(h)
	}
	r, fresh := p.call()
	p.mu.Unlock()
	p.rouse(r, fresh)
}

// add puts a host into the queue and picks the runner that is to be roused. The lock of the host is held.
func (p *blockingPool) add(h *Host) (r *runner, fresh bool) {
	h.queued = true
	p.mu.Lock()
	p.hosts.push(h)
	r, fresh = p.call()
	p.mu.Unlock()
	return r, fresh
}

// settle follows what a runner has taken of a host: it stands in the queue if it should. Its lock is held.
func (p *blockingPool) settle(h *Host) (r *runner, fresh bool) {
	switch ready := h.sh.AnyReady(); {
	case ready == h.queued:
	case ready:
		return p.add(h)
	default: // unless somebody has it in hand, and finds out
		p.mu.Lock()
		if p.hosts.remove(h) {
			h.queued, h.waits.gathered = false, nil
		}
		p.mu.Unlock()
	}
	return nil, false
}

// call picks the runner that is to go to the queue; nil when one is on its way, nothing waits, or the bound is reached:
// then runners that are through with theirs go on with it. p.mu is held.
func (p *blockingPool) call() (r *runner, fresh bool) {
	if p.called || p.hosts.n == 0 || p.busy >= p.most {
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
		p.serve(r, j.h, j.e)
	}
	for {
		h := p.take(r, called)
		if h == nil {
			return
		}
		called = false
		p.serve(r, h, nil)
	}
}

// take returns the next host for a runner that was called, or is through with the one before. It waits for one, and
// returns nil when the runner is to end.
func (p *blockingPool) take(r *runner, called bool) *Host {
	for {
		p.mu.Lock()
		if called {
			p.called = false
		} else {
			p.busy--
		}
		h := p.hosts.pop()
		if h != nil {
			p.busy++
			next, fresh := p.call()
			p.mu.Unlock()
			p.rouse(next, fresh)
			return h
		}
		stay := !p.over && len(p.idle) < keepIdle
		if stay {
			p.idle = append(p.idle, r)
		}
		p.mu.Unlock()
		if !stay || !<-r.next {
			return nil
		}
		called = true
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

// serve runs entities of a host, each until nothing waits for it, as long as some are ready and the turn lasts. begun,
// if not nil, is one of which a run has begun but the goroutine has ended.
func (p *blockingPool) serve(r *runner, h *Host, begun *entity.Entity) {
	t := turn{h: h, e: begun, now: p.x.Clock.Now()} // not in the for: each pass would get a copy of its own
	for t.next(p) {
		p.x.Gate.look() // t.now may be older than a tick, and the process may have stood still since
		if p.x.Gate.Held(t.now) {
			p.x.Gate.wait(t.e)
			t.now = p.x.Clock.Now()
		}
		weighs := h.t.weighs.Load()
		if weighs {
			t.now = p.x.Clock.Now()
		}
		r.in = job{h, t.e}
		t.e.Enter(&r.frame, t.now)
		if p.x.cfg.Latency != nil {
			r.timeWork(h, t.e, t.run)
		}
		for p.x.cfg.Latency == nil && goesOn(h, t.run) && t.e.Work() {
			p.x.Gate.goOn(t.e)
			r.frame.Saw(p.x.Clock.Fresh(t.now)) // as for messages of a batch of a worker
		}
		r.in = job{}
		if weighs {
			h.published.ran.Add(int64(p.x.Clock.Now() - t.now))
		}
		t.now = p.x.Clock.Fresh(t.now)
	}
}

// turn is what a runner does of one host before it looks at the others.
type turn struct {
	h    *Host
	e    *entity.Entity // its run has begun; nil: the host was taken from the queue just now
	run  run
	runs int // entities so far
	now  time.Duration
}

// next ends the run under way, if there is one, and begins the next, of the same entity or of another one that is
// ready. It reports whether there is one. All that takes the lock of the host once.
func (t *turn) next(p *blockingPool) (more bool) {
	h := t.h
	h.mu.Lock()
	ended := t.e != nil
	if ended {
		more = t.again()
	} else {
		h.queued, h.waits.gathered = false, nil
	}
	for !more && t.runs < maxTurn && h.sh.AnyReady() {
		t.runs++
		t.e = h.sh.Ready()
		t.run, more = begins(h, t.e, t.now)
	}
	r, fresh := p.settle(h)
	if ended {
		p.note(h)
	}
	h.mu.Unlock()
	p.rouse(r, fresh)
	return more
}

// note is Host.note behind a message, or a run: mostly there is nothing to do. The lock of the host is held.
func (p *blockingPool) note(h *Host) {
	if h.t.leaseLost != nil || !h.sh.Quiet() || !h.upToDate(p.x.Clock.slewed.Load()) {
		h.note()
	}
}

// again ends the run under way and begins the next one of its entity, and reports whether there is work for it.
func (t *turn) again() (more bool) {
	h := t.h
	revokeLease(h, t.now)
	more = t.e.End(t.now)
	permitted(h)
	if more {
		t.run, more = begins(h, t.e, t.now)
	} else {
		cutIfDue(h, t.now)
	}
	return more
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
	for until := time.Now().Add(patience); p.x.Busy() > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(until) {
			return false
		}
	}
	return true
}

// count returns how many entities have a goroutine, and hosts wait with more of them.
func (p *blockingPool) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.busy + p.hosts.n
}
