// The coroutines of Blocking handlers, and of Type.Hosted: a handler that asks is put aside until its answer comes.

package world

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/core/lifetime"
)

// killed unwinds a handler of a process that is no more.
type killed struct{}

// task is the coroutine that runs one busy Blocking entity.
type task struct {
	p     *Process
	next  func() (struct{}, bool)
	stop  func()
	yield func(struct{}) bool
	frame entity.RunFrame
	over  bool
}

// spawn runs an entity that has messages, on a coroutine of its own.
func (p *Process) spawn(h *hosted, e *entity.Entity) {
	t := &task{p: p}
	t.next, t.stop = iter.Pull(func(yield func(struct{}) bool) {
		t.yield = yield
		t.work(h, e)
	})
	p.tasks = append(p.tasks, t)
	p.Later(0, func() { p.pass(t.resume) })
}

func (t *task) work(h *hosted, e *entity.Entity) {
	p := t.p
	other := entity.Withheld(h.shard) // it is not the one that is kept alive, or it would not begin
	last := h.cut                     // else the run ends at the deadline of its shard's move
	for ok := e.Begin(p.clock()); ok; {
		e.Enter(&t.frame, 0) // the task may rest before the first call
		for more := true; more; {
			if !t.opens() { // a waiter for an answer may have come back suspended
				return
			}
			more = p.Alive && h.goesOn(last, other) && !entity.Spoiled(e) && e.Work()
		}
		if !p.Alive {
			return
		}
		ok = h.endRun(e)
		last, other = h.cut, entity.Withheld(h.shard)
		ok = ok && e.Begin(p.clock())
	}
	t.over = true
	h.follow()
}

// opens waits at the gate, and reports whether the coroutine goes on: not when its process is no more.
func (t *task) opens() bool {
	for t.p.Held() {
		t.p.hold(t.resume)
		if !t.yield(struct{}{}) {
			return false
		}
	}
	return true
}

// resume goes on with the coroutine until it waits or ends.
func (t *task) resume() {
	if t.over || !t.p.Alive {
		return
	}
	w := t.p.World
	before, acting := t.p.running, w.Acting
	t.p.running, w.Acting = t, t.p
	t.next()
	t.p.running, w.Acting = before, acting
	if t.over {
		t.p.forget(t)
	}
}

func (p *Process) forget(t *task) {
	for i, o := range p.tasks {
		if o == t {
			p.tasks = append(p.tasks[:i], p.tasks[i+1:]...)
			return
		}
	}
}

// killTasks unwinds every handler that is waiting: its process is gone.
func (p *Process) killTasks() {
	list := p.tasks
	p.tasks = nil
	for _, t := range list {
		if t != p.running {
			t.stop()
		}
	}
}

// Dawdle makes the Blocking handler that runs now take d before it goes on; of any other it does nothing.
func (p *Process) Dawdle(d time.Duration) {
	t, done := p.running, false
	if t == nil {
		return
	}
	p.Later(d, func() {
		done = true
		t.resume()
	})
	for !done {
		if !t.yield(struct{}{}) {
			panic(killed{})
		}
	}
}

// Guest is code of a library that runs in a process: it has coroutines of its own, which wait, and the time of day.
type Guest struct{ Process *Process }

// Begin has f run on a coroutine of its own after the present step: not when the process is dead.
func (g Guest) Begin(f func()) {
	p := g.Process
	if !p.Alive {
		return
	}
	t := &task{p: p}
	t.next, t.stop = iter.Pull(func(yield func(struct{}) bool) {
		t.yield = yield
		defer func() {
			if v := recover(); v != nil && v != (killed{}) {
				panic(v)
			}
		}()
		f()
		t.over = true
	})
	p.tasks = append(p.tasks, t)
	p.Later(0, t.resume)
}

// Rests reports whether a coroutine of the process runs now, which may Rest.
func (g Guest) Rests() bool { return g.Process.running != nil }

// Rest puts the coroutine that runs now aside until wake is called, which arm is given, or d is over; a negative d is
// no limit. wake may be called at any time, and again.
func (g Guest) Rest(d time.Duration, arm func(wake func())) {
	p := g.Process
	t, woken, done := p.running, false, false
	ends := func() {
		if !done {
			done = true
			t.resume()
		}
	}
	arm(func() {
		if !woken {
			woken = true
			p.Later(0, ends)
		}
	})
	if d >= 0 {
		p.Later(d, ends)
	}
	for !done {
		if !t.yield(struct{}{}) {
			panic(killed{})
		}
	}
}

// Wall returns the time of day by the process's own clock.
func (g Guest) Wall() time.Time { return shardRuntime{p: g.Process}.Wall() }

// askInside is an ask by a Blocking handler.
func (p *Process) askInside(by *lifetime.Shard, headers []byte, d time.Duration, typ, id string,
	payload []byte) ([]byte, error) {
	t := p.running
	if t == nil {
		return nil, fmt.Errorf("%w: not in a handler", entity.ErrWouldBlock)
	}
	var reply []byte
	var failed error
	done := false
	p.asks.by = by
	err := p.AskWith(headers, d, typ, id, payload, func(b []byte, err error) {
		reply, failed, done = b, err, true
		t.resume()
	})
	p.asks.by = nil
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

const (
	attendSoon = 5 * time.Millisecond // after which Hosted is called
	attendRest = time.Second          // after which it is again, when it has panicked
)

// attend has Type.Hosted called, on a coroutine as that of a Blocking handler, unless the shard is not served any more
// by then: the next owner calls it.
func (h *hosted) attend(after time.Duration) {
	p := h.r.Process
	p.Later(attendSoon+after, func() {
		p.pass(func() {
			ctx := h.life.Serving(p.Held)
			if h.over || h.silent || ctx.Err() != nil {
				return
			}
			h.attended = true
			t := &task{p: p}
			t.next, t.stop = iter.Pull(func(yield func(struct{}) bool) {
				t.yield = yield
				h.attends(ctx, t)
			})
			p.tasks = append(p.tasks, t)
			t.resume()
		})
	})
}

// attends is the coroutine: one call of Hosted, and what follows from its end.
func (h *hosted) attends(ctx context.Context, t *task) {
	p := h.r.Process
	failed := callHosted(ctx, h)
	t.over = true
	if !p.Alive {
		return
	}
	h.attended = false
	switch {
	case failed != "":
		p.World.trace.note(p.World.Now, p.Index, opNote, failed)
		h.attend(attendRest)
	case ctx.Err() != nil: // when the process goes on after a suspension it is called anew
		h.attend(0)
	}
	h.follow()
}

// callHosted calls it, and returns how it failed, if it panicked.
func callHosted(ctx context.Context, h *hosted) (failed string) {
	defer func() {
		switch v := recover().(type) {
		case nil, killed:
		default:
			failed = fmt.Sprintf("Hosted of %s, shard %d, panicked: %v", h.r.Type.Name, h.shard.ID(), v)
		}
	}()
	h.r.Type.Hosted(ctx, h.shard.ID(), h.shard.Fence())
	return ""
}
