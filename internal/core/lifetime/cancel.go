// Cancels: asks that their askers have given up, found by the contexts of their handlers.

package lifetime

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
)

// Asked names an ask: the node that asked, and the number that it has there.
type Asked struct {
	From   peer.ID
	Number uint64
}

// Bounds of a Cancels.
const (
	MaxEarly = 1024    // cancels that are remembered before a handler asks for its context; the oldest goes first
	MaxGiven = 1 << 16 // contexts that can be cancelled at once; further ones end with their time alone
)

// sweepRest is how long nobody looks again for expired contexts while there is no room: one is over at any
// moment, and a look at all of them under the lock for each would hold up every handler that asks for its context.
const sweepRest = time.Second

// Cancels are the asks of one node's handlers that may be cancelled, and those that were before anybody looked. Its
// methods are safe for concurrent use. The zero value has none.
type Cancels struct {
	mu      sync.Mutex
	given   map[Asked]given
	sweepAt int           // contexts at which expired ones are looked for
	due     time.Duration // until when they are not looked for again while there is no room
	early   map[Asked]struct{}
	order   []Asked // of early, as a ring once it is full
	next    int
}

// given is a context that a handler has.
type given struct {
	ctx   *askContext
	limit time.Duration
	count *atomic.Uint64 // of contexts that were cancelled; nil: nobody counts
}

// cancel ends it.
func (g *given) cancel() {
	if g.count != nil {
		g.count.Add(1)
	}
	g.ctx.end(route.ErrAskCancelled)
}

// askContext is a context that ends with parent, and when its ask is cancelled.
type askContext struct {
	context.Context
	parent context.Context
	end    context.CancelCauseFunc
}

// Err is that of the parent, which may tell a deadline from another end, unless the ask was cancelled first.
func (c *askContext) Err() error {
	err := c.Context.Err()
	if err != nil && context.Cause(c.Context) != route.ErrAskCancelled {
		if of := c.parent.Err(); of != nil {
			return of
		}
	}
	return err
}

// Context returns the context of the handler of an ask that expires at limit: one that ends with that of parent,
// or when the ask is cancelled. It is the same for each call, until that has ended for another reason. Without a limit
// it is the parent's: nothing would tell when it is needed no more. count, if not nil, counts those that are cancelled.
func (c *Cancels) Context(ask Asked, now, limit time.Duration, count *atomic.Uint64,
	parent func() context.Context) context.Context {
	c.mu.Lock()
	g, ok := c.given[ask]
	c.mu.Unlock()
	if ok && (g.ctx.Err() == nil || context.Cause(g.ctx) == route.ErrAskCancelled) {
		return g.ctx
	}
	base := parent()
	if limit == 0 || base.Err() != nil {
		return base
	}
	inner, end := context.WithCancelCause(base)
	ctx := &askContext{inner, base, end}
	c.mu.Lock()
	g = given{ctx, limit, count}
	_, gone := c.early[ask]
	room := c.keep(ask, g, now)
	if room {
		delete(c.early, ask) // it is found among those that were given from now on; in order it stays
	}
	c.mu.Unlock()
	switch {
	case gone:
		g.cancel()
	case !room:
		return base
	}
	return ctx
}

// keep remembers a context that was given, if there is room. The lock is held.
func (c *Cancels) keep(ask Asked, g given, now time.Duration) bool {
	if n := len(c.given); n >= max(c.sweepAt, 64) || n >= MaxGiven && now >= c.due {
		c.due = math.MaxInt64
		for a, old := range c.given {
			if old.limit <= now {
				delete(c.given, a)
			} else {
				c.due = min(c.due, old.limit)
			}
		}
		c.due = max(c.due, now+sweepRest)
		c.sweepAt = 2 * len(c.given)
	}
	if len(c.given) >= MaxGiven {
		return false
	}
	if c.given == nil {
		c.given = map[Asked]given{}
	}
	c.given[ask] = g
	return true
}

// Cancel ends the context of a handler when its asker has given up; if there is none yet, the next one has ended. It
// reports whether one was ended. Nobody waits for an answer to an ask that is cancelled; one that is not known here, or
// was answered, or is cancelled again, is nobody else's: no number is used twice.
func (c *Cancels) Cancel(ask Asked) bool {
	c.mu.Lock()
	g, known := c.given[ask]
	if !known {
		c.note(ask)
	}
	c.mu.Unlock()
	if !known || g.ctx.Err() != nil {
		return false
	}
	g.cancel()
	return true
}

// note remembers a cancel that has ended nothing. The lock is held.
func (c *Cancels) note(ask Asked) {
	if _, known := c.early[ask]; known {
		return
	}
	if c.early == nil {
		c.early = map[Asked]struct{}{}
	}
	if len(c.order) < MaxEarly {
		c.order = append(c.order, ask)
	} else {
		delete(c.early, c.order[c.next])
		c.order[c.next] = ask
		c.next = (c.next + 1) % MaxEarly
	}
	c.early[ask] = struct{}{}
}

// Answered forgets the context of an ask that was answered: nobody cancels it any more. It does not end: what the
// handler has begun may go on with it.
func (c *Cancels) Answered(ask Asked) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.given, ask)
}
