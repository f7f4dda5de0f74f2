// What an Entity is given and what is recorded of it, and the runtime of its shard, with its clock.

package sim

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/core/lifetime"
	"github.com/kith-io/kith/route"
)

// EntityConfig says in which surroundings an Entity lives. The zero value of a field takes its default.
type EntityConfig struct {
	Fence route.Fence // of the first ownership; zero: 1.1.1
	Start time.Time   // what the handler's clock shows first; zero: 2020-01-01 UTC
	// Answer answers what the handler asks others. Nil: nobody is there (route.ErrNotRegistered).
	Answer func(m Sent) ([]byte, error)
	// Refuse returns the error of the handler's Tell, nil when it is accepted. Nil: all are.
	Refuse func(m Sent) error
}

// Message is what an entity gets.
type Message struct {
	Payload []byte
	Headers []byte        // nil: none
	Ask     bool          // its sender waits for a reply
	Within  time.Duration // for so long, which ends Context.Context; zero: nobody knows
}

// Sent is what a handler has sent.
type Sent struct {
	Type, ID string
	Payload  []byte
	Headers  []byte        // nil: none
	Ask      bool          // by Context.Ask
	Within   time.Duration // of an ask
}

// Timer is a timer of an entity.
type Timer struct {
	Name    string
	In      time.Duration // from now
	Payload []byte
}

// Call is what came of a message, of time that passed, or of a stop.
type Call struct {
	Received  int                 // calls of Receive
	Err       error               // what Receive returned, joined when it was called several times
	Refused   error               // why no handler got the message: the entity could not be made, rests, or is suspended
	Sent      []Sent              // by the handler, in order, those included that were refused
	Set       []Timer             // timers that were set and run now
	Cancelled []Timer             // timers that ran before and neither fired nor run now
	Stopped   []entity.StopReason // calls of Stop
	Incidents []entity.Incident   // panics, and entities that could not be made or were given up
	asked     *asked
	before    []Timer
}

// Reply returns what the caller has got until now: the reply, or the error as Region.Ask returns it. It is
// route.ErrTimeout while nobody has answered, as after Detach, and entity.ErrNoAsk when nobody asked.
func (c *Call) Reply() ([]byte, error) {
	if c.asked == nil {
		return nil, entity.ErrNoAsk
	}
	return c.asked.get()
}

// asked is the caller of an ask. Answers may come from any goroutine, the first one counts.
type asked struct{ first atomic.Pointer[answer] }

type answer struct {
	reply []byte
	err   error
}

// Reply implements entity.Origin.
func (a *asked) Reply(_ uint64, why route.Reason, payload []byte) error {
	got := &answer{err: route.ReplyError(why, payload)}
	if why == route.OK {
		got.reply = append([]byte{}, payload...)
	}
	a.first.CompareAndSwap(nil, got)
	return nil
}

func (a *asked) get() ([]byte, error) {
	got := a.first.Load()
	if got == nil {
		return nil, route.ErrTimeout
	}
	return got.reply, got.err
}

// solo is the runtime of an entity that is alone.
type solo struct {
	cfg       EntityConfig
	call      *Call // what is going on is recorded here
	now       time.Duration
	suspended bool
	life      *lifetime.Shard
	entity    *entity.Entity // as the last call has named it
	limits    []limit
	watches   []soloWatch
	numbered  uint64 // of these
	asks      uint64 // that the entity has been asked
	cancels   lifetime.Cancels
}

// limit is a context that ends at a moment.
type limit struct {
	at  time.Duration
	end func()
}

// pass moves the clock.
func (r *solo) pass(to time.Duration) {
	r.now = to
	left := r.limits[:0]
	for _, l := range r.limits {
		if l.at <= to {
			l.end()
		} else {
			left = append(left, l)
		}
	}
	r.limits = left
}

// Tell implements entity.Runtime.
func (r *solo) Tell(headers []byte, typ, id string, payload []byte) error {
	m := r.sent(Sent{Type: typ, ID: id, Payload: slices.Clone(payload), Headers: slices.Clone(headers)})
	if r.suspended {
		return route.ErrSuspended
	}
	if r.cfg.Refuse != nil {
		return r.cfg.Refuse(m)
	}
	return nil
}

// Ask implements entity.Runtime.
func (r *solo) Ask(headers []byte, d time.Duration, typ, id string, payload []byte) ([]byte, error) {
	m := r.sent(Sent{typ, id, slices.Clone(payload), slices.Clone(headers), true, d})
	switch {
	case r.suspended:
		return nil, route.ErrSuspended
	case r.cfg.Answer == nil:
		return nil, route.ErrNotRegistered
	}
	return r.cfg.Answer(m)
}

func (r *solo) sent(m Sent) Sent {
	r.call.Sent = append(r.call.Sent, m)
	return m
}

// Report implements entity.Runtime.
func (r *solo) Report(i entity.Incident) { r.call.Incidents = append(r.call.Incidents, i) }

// Unhandled implements entity.Runtime.
func (r *solo) Unhandled(_ *entity.Entity, why route.Reason, _ bool, _ []byte) {
	r.call.Refused = why.Err()
}

// Shards implements entity.Runtime.
func (r *solo) Shards() int { return 1 }

// Calling and Returned implement entity.Runtime.
func (r *solo) Calling(e *entity.Entity, _ entity.Call) { r.entity = e }

// Returned implements entity.Runtime.
func (r *solo) Returned(*entity.Entity, entity.Call) {}

// Suspended implements entity.Runtime.
func (r *solo) Suspended() bool { return r.suspended }

// Context implements entity.Runtime.
func (r *solo) Context(limit time.Duration, from entity.Origin, corr uint64) context.Context {
	parent := func() context.Context { return r.life.Context(r.now, limit, r.Suspended, r.inTime) }
	if from == nil {
		return parent()
	}
	return r.cancels.Context(lifetime.Asked{Number: corr}, r.now, limit, nil, parent)
}

// Answered implements entity.Runtime.
func (r *solo) Answered(_ entity.Origin, corr uint64) {
	r.cancels.Answered(lifetime.Asked{Number: corr})
}

// inTime is a lifetime.Limiter.
func (r *solo) inTime(parent context.Context, d time.Duration, cause error) context.Context {
	ctx, end := lifetime.At(parent, r.Wall().Add(d), cause)
	if d <= 0 {
		end()
	}
	r.limits = append(r.limits, limit{r.now + d, end})
	return ctx
}

// Now implements entity.Runtime.
func (r *solo) Now() time.Duration { return r.now }

// Slewed implements entity.Runtime.
func (r *solo) Slewed() time.Duration { return r.now }

// Wall implements entity.Runtime.
func (r *solo) Wall() time.Time { return r.cfg.Start.Add(r.now - origin) }

// origin is what the clock shows first. Zero would mean that a message has no limit.
const origin = time.Hour
