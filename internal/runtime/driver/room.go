// Room: callers that wait for room stand in line, one line for each link, and are woken one by one: each that got what
// it wanted wakes the next. To wake all of them for room that the first few use up would cost more than the sending.

package driver

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kith-io/kith/internal/runtime/transport"
	"github.com/kith-io/kith/wire"
)

// keepTurns is how many turns are kept for later.
const keepTurns = 64

// rooms holds the lines. Ringing costs one load when nobody waits.
type waitLine struct {
	waiting atomic.Int32
	mu      sync.Mutex
	lines   map[lineKey]*line
	spare   []*turn
	empty   *line // spare
}

// lineKey is what a line waits for: room in a link, or at an entity or a node that the link leads to; zero: anything
// else.
type lineKey struct {
	link *transport.Link // nil: an entity of this node
	full wire.Full       // zero: the link
}

// line holds the callers that wait for one thing.
type line struct{ first, last *turn }

// turn is one caller's place in a line.
type turn struct {
	bell       chan struct{} // capacity 1
	timer      *time.Timer
	at         lineKey
	prev, next *turn
}

// lineOf returns the line that waits for what err says is full; zero is that of all that nobody rings for. A sender
// that is never held up for long asks thousands of times a second, so it does without errors.As, which allocates.
func lineOf(err error) lineKey {
	for ; err != nil; err = errors.Unwrap(err) {
		switch e := err.(type) {
		case *transport.FullError:
			return lineKey{link: e.Link()}
		case *fullThereError:
			return e.at
		case *transport.BudgetError:
			return lineKey{link: e.Link()}
		}
	}
	return lineKey{}
}

// enter puts a caller at the end of a line. Rings that come from now on reach it.
func (r *waitLine) enter(at lineKey) *turn {
	r.waiting.Add(1)
	r.mu.Lock()
	defer r.mu.Unlock()
	var t *turn
	if n := len(r.spare); n > 0 {
		t, r.spare = r.spare[n-1], r.spare[:n-1]
	} else {
		t = &turn{bell: make(chan struct{}, 1), timer: time.NewTimer(time.Hour)}
	}
	r.join(t, at)
	return t
}

// move takes a caller to the end of another line, because it is something else that is full now. The room that it was
// woken for is left to the next in line.
func (r *waitLine) move(t *turn, at lineKey) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.quit(t)
	r.call(r.lines[t.at])
	r.join(t, at)
}

// leave ends a turn. The next one in front is woken, since a ring may have been meant for it, or has left room.
func (r *waitLine) leave(t *turn) {
	t.timer.Stop()
	r.mu.Lock()
	r.quit(t)
	r.call(r.lines[t.at])
	if len(r.spare) < keepTurns {
		select {
		case <-t.bell: // nobody rings it any more
		default:
		}
		t.at, t.prev, t.next = lineKey{}, nil, nil
		r.spare = append(r.spare, t)
	}
	r.mu.Unlock()
	r.waiting.Add(-1)
}

// ring wakes the first in a line.
func (r *waitLine) ring(at lineKey) {
	if r.waiting.Load() == 0 {
		return
	}
	r.mu.Lock()
	r.call(r.lines[at])
	r.mu.Unlock()
}

// ringBehind wakes the first of each line that waits for something behind a link: its connection is over.
func (r *waitLine) ringBehind(link *transport.Link) {
	if r.waiting.Load() == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for at, l := range r.lines {
		if at.link == link && at.full != (wire.Full{}) {
			r.call(l)
		}
	}
}

// ringAll wakes everybody.
func (r *waitLine) ringAll() {
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

func (r *waitLine) call(l *line) {
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

func (r *waitLine) join(t *turn, at lineKey) {
	l := r.lines[at]
	if l == nil {
		if r.lines == nil {
			r.lines = map[lineKey]*line{}
		}
		if l, r.empty = r.empty, nil; l == nil {
			l = &line{}
		}
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

func (r *waitLine) quit(t *turn) {
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
		r.empty = l
	}
}
