// The entity: notes each call with its fence, its begin and its end, and writes to the store under that fence.

package chaos

import (
	"time"

	"github.com/kith-io/kith"
)

// entity is one entity of the load.
type entity struct {
	l         *load
	mode      kith.Mode
	target    uint16
	high, low uint64
}

func newEntity(l *load, m kith.Mode, id string, f kith.Fence) kith.Handler {
	e := &entity{l: l, mode: m, target: l.index[id]}
	e.high, e.low = fenceWords(f)
	return e
}

// Receive notes the message and writes. A Blocking handler waits for the store, the others leave the write behind.
func (e *entity) Receive(c *kith.Context, payload []byte) error {
	h := handled{step: stepBegun, target: e.target, from: e.l.c.clock.Now(), birth: e.high, low: e.low}
	var ok bool
	if h.sender, h.number, h.ask, ok = splitMessage(payload); !ok {
		return kith.ErrBadPayload
	}
	n, err := e.l.handled.begin()
	if err != nil {
		return err
	}
	e.l.handled.note(n, h.record())
	h.step = stepDone
	if e.mode == kith.Blocking {
		time.Sleep(time.Duration(e.l.slowBy.Load()))
		if err = e.l.fast.write(e.target, e.high, e.low); err != nil {
			h.step = stepFenced
		}
	}
	if h.ask && err == nil {
		err = c.Reply(nil)
	}
	h.until = e.l.c.clock.Now()
	e.l.handled.note(n, h.record())
	if e.mode != kith.Blocking {
		select {
		case e.l.slow <- pendingWrite{n, h}:
		default:
		}
	}
	return err
}

// Stop has nothing to flush: every message was written when it came.
func (*entity) Stop(*kith.Context) {}

// writeSlowly writes what handlers left behind.
func (l *load) writeSlowly(to *storeClient) {
	for w := range l.slow {
		if to.write(w.h.target, w.h.birth, w.h.low) == errFenced {
			w.h.step = stepFenced
			l.handled.note(w.note, w.h.record())
		}
	}
}
