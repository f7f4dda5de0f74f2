// Asks and the coroutines of Blocking handlers: a handler that asks is put aside until its answer comes.

package sim

import (
	"fmt"
	"iter"
	"time"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/flow"
	"github.com/kith-io/kith/internal/plane"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/shard"
)

// ask is one question under way.
type ask struct {
	r     *region
	shard route.ShardID
	to    peer.ID     // zero while it is parked
	fence route.Fence // of the route that it took
	done  func(reply []byte, err error)
}

// ask sends a question; done is called once, with the answer or why there is none, never on the caller's stack.
func (p *proc) ask(d time.Duration, typ, id string, payload []byte, done func([]byte, error)) error {
	r := p.region(route.TypeOf(typ))
	if r == nil {
		return route.ErrNotRegistered
	}
	p.corr++
	corr := p.corr
	p.asks[corr] = &ask{r: r, shard: route.ShardOf(id, r.typ.Shards), done: done}
	if _, err := r.send(id, payload, corr); err != nil {
		delete(p.asks, corr)
		return err
	}
	p.askOrder = append(p.askOrder, corr)
	p.later(d, func() { p.answered(corr, route.TimedOut, nil) })
	return nil
}

// goes notes whom a question goes to, before it is sent there.
func (p *proc) goes(corr uint64, to peer.ID, f route.Fence) {
	if a := p.asks[corr]; a != nil {
		a.to, a.fence = to, f
	}
}

// replied takes the answer of another process, which must be the one that was asked: numbers can be guessed.
func (p *proc) replied(from peer.ID, corr uint64, why route.Reason, payload []byte) {
	if a := p.asks[corr]; a != nil && a.to == from {
		p.answered(corr, why, payload)
	}
}

// answered ends a question; an answer that comes late finds nothing. One that says that the home was wrong has it asked
// for again, unless the route leads elsewhere by now.
func (p *proc) answered(corr uint64, why route.Reason, payload []byte) {
	a := p.asks[corr]
	if a == nil {
		return
	}
	delete(p.asks, corr)
	if plane.WrongHome(why) {
		if s := &a.r.slots[a.shard]; s.State() == flow.Remote && s.Home() == a.to && s.Fence() == a.fence {
			p.post(shard.RefusedCommand{Type: a.r.id, Shard: a.shard, Term: a.fence.Term(), Epoch: a.fence.Epoch()})
		}
	}
	b := append([]byte(nil), payload...)
	p.later(0, func() { a.done(b, route.ReplyError(why, b)) })
}

// failAsks ends the questions that pick names, in the order in which they were asked.
func (p *proc) failAsks(pick func(*ask) bool, why route.Reason) {
	keep := p.askOrder[:0]
	for _, corr := range p.askOrder {
		a := p.asks[corr]
		switch {
		case a == nil:
		case pick(a):
			p.answered(corr, why, nil)
		default:
			keep = append(keep, corr)
		}
	}
	p.askOrder = keep
}

// lostPeer fails what was asked of a peer that is gone.
func (p *proc) lostPeer(id peer.ID) {
	p.failAsks(func(a *ask) bool { return a.to == id }, route.PeerLost)
}

// killed unwinds a handler whose process is no more.
type killed struct{}

// task is the coroutine that runs one busy Blocking entity.
type task struct {
	p     *proc
	next  func() (struct{}, bool)
	stop  func()
	yield func(struct{}) bool
	over  bool
}

// spawn runs an entity that has messages, on a coroutine of its own.
func (p *proc) spawn(h *hosted, e *entity.Entity) {
	t := &task{p: p}
	t.next, t.stop = iter.Pull(func(yield func(struct{}) bool) {
		t.yield = yield
		t.work(h, e)
	})
	p.tasks = append(p.tasks, t)
	p.later(0, func() { p.pass(t.resume) })
}

func (t *task) work(h *hosted, e *entity.Entity) {
	p := t.p
	for ok := e.Begin(p.clock()); ok; {
		for e.Work() && p.alive && !h.silent {
			for p.held() {
				p.hold(t.resume)
				if !t.yield(struct{}{}) {
					return
				}
			}
		}
		if !p.alive {
			return
		}
		ok = e.End(p.clock()) && e.Begin(p.clock())
	}
	t.over = true
	h.settle()
}

// resume goes on with the coroutine until it waits or ends.
func (t *task) resume() {
	if t.over || !t.p.alive {
		return
	}
	w := t.p.w
	before, acting := t.p.running, w.acting
	t.p.running, w.acting = t, t.p
	t.next()
	t.p.running, w.acting = before, acting
	if t.over {
		t.p.forget(t)
	}
}

func (p *proc) forget(t *task) {
	for i, o := range p.tasks {
		if o == t {
			p.tasks = append(p.tasks[:i], p.tasks[i+1:]...)
			return
		}
	}
}

// killTasks unwinds every handler that is waiting: its process is gone.
func (p *proc) killTasks() {
	list := p.tasks
	p.tasks = nil
	for _, t := range list {
		if t != p.running {
			t.stop()
		}
	}
}

// askInside is an ask by a Blocking handler.
func (p *proc) askInside(d time.Duration, typ, id string, payload []byte) ([]byte, error) {
	t := p.running
	if t == nil {
		return nil, fmt.Errorf("%w: not in a handler", entity.ErrWouldBlock)
	}
	var reply []byte
	var failed error
	done := false
	err := p.ask(d, typ, id, payload, func(b []byte, err error) {
		reply, failed, done = b, err, true
		t.resume()
	})
	if err != nil {
		return nil, err
	}
	for !done {
		if !t.yield(struct{}{}) {
			panic(killed{})
		}
	}
	return reply, failed
}
