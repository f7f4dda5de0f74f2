// Wishes: the timers of an entity as its handlers see them: set, named, cancelled, distinguished from messages.

package entity

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/kith-io/kith/route"
)

// wishes is what handlers want of their entity's timers, until the call or run ends and the shard carries it out.
type wishes struct {
	fired     bool     // the message is a timer's, or tells of an end
	timerName string   // of that timer
	told      *told    // that end; nil: it is a timer's
	watches   bool     // the call or run has asked for a watch
	ended     EndCause // why the first instance has ended that was there when the call or run began, or came in it
	last      EndCause // why the last of these has
	more      bool     // it is another one
	touched   bool     // something is to be carried out
	renewed   bool     // the instance that was there when the call or run began is gone, or has cancelled its timers
	cancelled bool     // some timer that was set before was cancelled
	timerRoom int      // timers that may still be asked for
	timers    []timerWish
	timerData []byte // their payloads, one behind the other
}

type timerWish struct {
	at   time.Duration
	name string
	end  int // of its payload in timerData
}

// After delivers a copy of b to this entity, as a message that nobody asked, once d has passed, never before, and not
// before the calls that wait already are done. Timers go when the instance goes. ErrTimersFull when the entity has
// MaxTimers, route.ErrTooLarge for more bytes than a mailbox holds, route.ErrBudgetFull when the node's budget is used
// up, route.ErrShardStopping from Stop and in the last calls of a shard that is being stopped.
func (c *Context) After(d time.Duration, b []byte) error { return c.SetTimer("", d, b) }

// SetTimer is After for a timer with a name of this entity's own choice, by which Timer tells its message and
// CancelTimer stops it. It takes the place of this entity's timer of that name, if there is one, also when that is due
// and its message waits. On an error nothing has changed. Many timers may go by the empty name, which names none. The
// name's bytes count as the payload's do.
func (c *Context) SetTimer(name string, d time.Duration, b []byte) error {
	if kept(c) {
		return whose(c)
	}
	set, wish := c.timerNamed(name)
	room, size := c.timerRoom, len(name)+len(b)
	if set != nil || wish >= 0 {
		room++
	}
	switch {
	case c.halting || c.closing:
		return route.ErrShardStopping
	case room <= 0:
		return fmt.Errorf("%w: %d", ErrTimersFull, MaxTimers)
	case size > c.s.typ.MailboxBytes:
		return fmt.Errorf("%w: timer of %d bytes, at most %d", route.ErrTooLarge, size, c.s.typ.MailboxBytes)
	case !c.s.lease.budget.Take(size + RecordOverhead):
		return fmt.Errorf("%w: no budget for a timer of %d bytes", route.ErrBudgetFull, size)
	}
	c.cancel(set, wish)
	at := c.s.runtime.Now()
	if at += max(d, 0); at < 0 {
		at = math.MaxInt64 // for ever
	}
	c.touched = true
	c.timerRoom--
	c.timerData = append(c.timerData, b...)
	c.timers = append(c.timers, timerWish{at, name, len(c.timerData)})
	return nil
}

// CancelTimer stops this entity's timer of that name and reports whether there was one: running, or due with its
// message still waiting. That message is not delivered any more.
func (c *Context) CancelTimer(name string) bool {
	if kept(c) {
		return false
	}
	set, wish := c.timerNamed(name)
	c.cancel(set, wish)
	return set != nil || wish >= 0
}

// CancelTimers stops all timers of this entity, those that were asked for in this call included, and those that are due
// and wait in its mailbox.
func (c *Context) CancelTimers() {
	if kept(c) {
		return
	}
	for t := c.e.timers; t != nil; t = t.next { // also those with messages that wait
		if t.instance == c.e.instance {
			t.done = true
		}
	}
	c.renew()
	c.timerRoom = MaxTimers
}

// Timer reports whether the message is that of a timer of this entity, and the timer's name, which is empty for After.
func (c *Context) Timer() (name string, ok bool) {
	if kept(c) || !c.fired || c.told != nil {
		return "", false
	}
	return c.timerName, true
}

// openTimer readies c for the message of a timer and reports whether it is to be delivered: not when the timer was
// cancelled, or set by an instance that is gone.
func (c *Context) openTimer(r *record) bool {
	t := r.from.(*timer)
	if t.done || r.instance() != c.e.instance || c.e.h == nil {
		return false
	}
	c.open(nil, 0)
	c.fired, c.timerName, c.told = true, t.name, nil
	t.done = true
	c.timerRoom++
	return true
}

// openOwn readies c for a message of this entity's own: of a timer, or one that tells of an end.
func (c *Context) openOwn(r *record) bool {
	if t, is := r.from.(*told); is {
		return c.openEnd(t)
	}
	if !c.openTimer(r) {
		c.tally.TimersDropped++
		return false
	}
	return true
}

// timerNamed finds the timer of a name: one that was set in an earlier call, or the index of one that was asked for
// since, else nil and a negative index. While a run goes on without the shard's lock nobody else changes the entity's
// list of timers, nor what is read of them here.
func (c *Context) timerNamed(name string) (set *timer, wish int) {
	if name == "" {
		return nil, -1
	}
	wish = slices.IndexFunc(c.timers, func(w timerWish) bool { return w.name == name })
	for t := c.e.timers; t != nil && wish < 0; t = t.next {
		if t.name == name && !t.done && t.instance == c.e.instance {
			return t, -1
		}
	}
	return nil, wish
}

// cancel stops what timerNamed has found.
func (c *Context) cancel(set *timer, wish int) {
	switch {
	case set != nil:
		set.done = true
		c.touched, c.cancelled = true, true
		c.timerRoom++
	case wish >= 0:
		c.forgetWish(wish)
	}
}

// renew gives up all timers that were set or asked for: the instance is gone, or wants none.
func (c *Context) renew() {
	c.touched, c.renewed = true, true
	for len(c.timers) > 0 {
		c.forgetWish(len(c.timers) - 1)
	}
}

// forgetWish drops a timer that was asked for in this call or run.
func (c *Context) forgetWish(i int) {
	w, data := c.timers[i], c.wishData(i)
	c.s.lease.budget.Give(len(w.name) + len(data) + RecordOverhead)
	n := len(data)
	c.timerData = slices.Delete(c.timerData, w.end-n, w.end)
	c.timers = slices.Delete(c.timers, i, i+1)
	for k := i; k < len(c.timers); k++ {
		c.timers[k].end -= n
	}
	c.timerRoom++
	c.tally.TimersDropped++
}

func (c *Context) wishData(i int) []byte {
	at := 0
	if i > 0 {
		at = c.timers[i-1].end
	}
	return c.timerData[at:c.timers[i].end]
}

// carryOut starts the timers that were wished for during a call or a run of e, and stops those that were cancelled or
// have no instance any more.
func (s *Shard) carryOut(c *Context, e *Entity) {
	c.touched = false
	if c.ended != 0 || c.watches {
		watchedOut(s, e, c)
	}
	// Of a batch that is not done the timers that were handled stand in the list: they go before others come.
	part := e.act != nil && e.act.now != nil && e.act.now.timers
	if all := c.renewed || s.phase != serving; all || c.cancelled || part {
		s.dropTimers(e, all, c.renewed)
	}
	c.renewed, c.cancelled = false, false
	if s.phase != serving {
		c.renew()
		c.touched, c.renewed = false, false
		return
	}
	for i := range c.timers {
		w := &c.timers[i]
		s.timers.set(e, w.at, w.name, c.wishData(i))
	}
	clear(c.timers)
	c.timers, c.timerData = c.timers[:0], c.timerData[:0]
	if cap(c.timerData) > keepWishBytes {
		c.timerData = nil
	}
}
