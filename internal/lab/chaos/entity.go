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
		e.l.dawdle()
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

// Stop notes that it was called. It has nothing to flush: every message was written when it came.
func (e *entity) Stop(*kith.Context) {
	typ, _ := e.l.c.args.Load.typeOf(int(e.target))
	e.l.noteMove(moveNote{kind: stopCall, typ: uint8(typ), shard: uint32(e.l.regions[typ].Shard(e.l.ids[e.target])),
		at: e.l.c.clock.Now()})
}

// dawdle takes the time that a Blocking call takes now.
func (l *load) dawdle() {
	if by := time.Duration(l.slowBy.Load()); by > 0 && l.c.clock.Now() < time.Duration(l.slowUntil.Load()) {
		time.Sleep(by)
	}
}

// writeSlowly writes what handlers left behind.
func (l *load) writeSlowly(to *storeClient) {
	for w := range l.slow {
		if to.write(w.h.target, w.h.birth, w.h.low) == errFenced {
			w.h.step = stepFenced
			l.handled.note(w.note, w.h.record())
		}
	}
}
