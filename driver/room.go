// Room: callers that wait for room stand in line, one line for each link, and are woken one by one: each that got what
// it wanted wakes the next. To wake all of them for room that the first few use up would cost more than the sending.

package driver

import (
	"errors"
	"sync"
	"sync/atomic"

	"github.com/kith-io/kith/transport"
)

// rooms holds the lines. Ringing costs one load when nobody waits.
type rooms struct {
	waiting atomic.Int32
	mu      sync.Mutex
	lines   map[*transport.Link]*line
}

// line is who waits for one link, or, under nil, for anything else.
type line struct{ first, last *turn }

// turn is one caller's place in a line.
type turn struct {
	bell       chan struct{} // capacity 1
	at         *transport.Link
	prev, next *turn
}

// lineOf returns whose line waits for what err says is full; nil is that of all that is no link.
func lineOf(err error) *transport.Link {
	var full *transport.FullError
	if errors.As(err, &full) {
		return full.Link()
	}
	var poor *transport.BudgetError
	if errors.As(err, &poor) {
		return poor.Link()
	}
	return nil
}

// enter puts a caller at the end of a line. Rings that come from now on reach it.
func (r *rooms) enter(at *transport.Link) *turn {
	t := &turn{bell: make(chan struct{}, 1)}
	r.waiting.Add(1)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.join(t, at)
	return t
}

// move takes a caller to the end of another line, because it is something else that is full now.
func (r *rooms) move(t *turn, at *transport.Link) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.quit(t)
	r.join(t, at)
}

// leave ends a turn. Whoever is first then is woken, since a ring may have been meant for it, or has left room.
func (r *rooms) leave(t *turn) {
	r.mu.Lock()
	r.quit(t)
	r.call(r.lines[t.at])
	r.mu.Unlock()
	r.waiting.Add(-1)
}

// ring wakes the first that waits for a link.
func (r *rooms) ring(at *transport.Link) {
	if r.waiting.Load() == 0 {
		return
	}
	r.mu.Lock()
	r.call(r.lines[at])
	r.mu.Unlock()
}

// ringAll wakes everybody.
func (r *rooms) ringAll() {
	if r.waiting.Load() == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, l := range r.lines {
		for t := l.first; t != nil; t = t.next {
			t.call()
		}
	}
}

func (r *rooms) call(l *line) {
	if l != nil {
		l.first.call()
	}
}

func (t *turn) call() {
	select {
	case t.bell <- struct{}{}:
	default: // has been called and not looked yet
	}
}

func (r *rooms) join(t *turn, at *transport.Link) {
	l := r.lines[at]
	if l == nil {
		if r.lines == nil {
			r.lines = map[*transport.Link]*line{}
		}
		l = &line{}
		r.lines[at] = l
	}
	t.at, t.prev, t.next = at, l.last, nil
	if l.last == nil {
		l.first = t
	} else {
		l.last.next = t
	}
	l.last = t
}

func (r *rooms) quit(t *turn) {
	l := r.lines[t.at]
	if t.prev == nil {
		l.first = t.next
	} else {
		t.prev.next = t.next
	}
	if t.next == nil {
		l.last = t.prev
	} else {
		t.next.prev = t.prev
	}
	if l.first == nil {
		delete(r.lines, t.at)
	}
}
