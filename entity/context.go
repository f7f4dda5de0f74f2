// Context and ReplyToken: what a handler may do while it handles one message, and later.

package entity

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kith-io/kith/internal/base/incall"
	"github.com/kith-io/kith/route"
)

// Errors that a Context returns by itself.
var (
	// ErrWouldBlock is returned by Ask in a handler that must not block, and to an entity that asks itself.
	ErrWouldBlock = errors.New("kith: ask would block this handler")
	// ErrNoAsk is returned when a message that is no ask is replied to.
	ErrNoAsk = errors.New("kith: nobody asked")
	// ErrReplied is returned by the second answer to one ask.
	ErrReplied = errors.New("kith: already answered")
	// ErrContextKept is returned by every method of a Context that is used after its call has returned, or on another
	// goroutine than the one that the call runs on. The token of Detach is what answers there.
	ErrContextKept = errors.New("kith: a Context is valid in its call alone, on the goroutine of that call")
	// ErrNextTwice is returned by the next of an Around that is called a second time.
	ErrNextTwice = errors.New("kith: next of an Around is called once for a message")
	// ErrTimersFull is returned by After and SetTimer when the entity has MaxTimers running.
	ErrTimersFull = errors.New("kith: too many timers of one entity")
)

// MaxTimers is how many timers one entity may have: those that run, and those that have a message in its mailbox.
const MaxTimers = 32

// MaxErrorText is the most bytes of an error's text that reach the caller of an ask.
const MaxErrorText = 1 << 10

// Context is what a handler is given with a message. It belongs to the handler until the call returns and must not be
// used afterwards, nor on another goroutine: the node gives it to other calls then. Methods that are called so do
// nothing and return ErrContextKept, which names the entity; those that return no error say what they say of nothing,
// Context returns one that has ended because of ErrContextKept, Suspended is true, and Now is the zero time. What is to
// be answered later, or by another goroutine, is answered by the token of Detach.
type Context struct {
	// ID is the id of this entity. It may be kept.
	ID string
	// Fence is the ownership under which the entity lives, to be given to every store that it writes to.
	Fence route.Fence
	// Shard is the shard that the entity belongs to.
	Shard route.ShardID

	at    uintptr // the goroutine on which the call runs (incall.Here), zero between calls; see kept
	spent bool    // no other call gets it
	doing
}

// doing is what the call that has a Context is about, and what follows from it.
type doing struct {
	s      *Shard
	e      *Entity
	tally  *Tally
	from   Origin
	corr   uint64
	failed error // of the last Reply that did not go out

	limit   time.Duration // from when on nobody waits for the answer, on the runtime's clock; zero: not known
	headers []byte        // what came with the message
	sends   []byte        // headers of what the call sends (SetHeaders)

	answered  bool // a reply went out
	detached  bool
	passivate bool
	given     bool       // the context of the ask
	aside     bool       // Type.Around is being called, and has not called the handler
	halting   bool       // Stop is being called
	why       StopReason // of the last Stop
	closing   bool       // the shard was being stopped when the run began
	crashed   bool       // a panic has ended the instance, and the type's restart policy has more to say
	calm      bool       // with crashed: it was no failure, but Keep.Run that returned
	unmade    bool       // with crashed: no instance could be made for a message
	parted    bool       // an instance has let itself go

	wishes
}

// Type returns the name of the entity's type.
func (c *Context) Type() string {
	if kept(c) {
		return ""
	}
	return c.s.typ.Name
}

// Asked reports whether the message is an ask: its sender waits for Reply.
func (c *Context) Asked() bool { return !kept(c) && c.from != nil }

// Headers returns what the sender has given with the message, apart from its payload, empty when it gave nothing. It is
// a view that is valid during the call. A message of a timer has none, nor has a call of Stop. Headers go no further by
// themselves: a handler that wants them to gives them to With.
func (c *Context) Headers() []byte {
	if kept(c) {
		return nil
	}
	return c.headers
}

// Tell sends a message to the entity id of type typ, or of this entity's own type when typ is empty; to any worker when
// id is empty and typ is a pool. Accepted or a typed error, as Region.Tell says; it never blocks and never runs the
// receiver before it returns.
func (c *Context) Tell(typ, id string, payload []byte) error {
	if kept(c) { // as Headed.Tell, which is one call more
		return whose(c)
	}
	if typ == "" {
		typ = c.s.typ.Name
	}
	return c.s.runtime.Tell(c.sends, typ, id, payload)
}

// Ask sends a message to the entity id of type typ, or of this entity's own type when typ is empty, and waits at most d
// for the answer, which belongs to the caller. Only Blocking handlers may ask: others get ErrWouldBlock, and so does an
// entity that asks itself, because it has one call at a time. An empty id is that of any worker of a pool, but not of
// its own.
func (c *Context) Ask(d time.Duration, typ, id string, payload []byte) ([]byte, error) {
	if kept(c) {
		return nil, whose(c)
	}
	return Headed{c, c.sends}.Ask(d, typ, id, payload)
}

// SetHeaders gives headers to all that this call sends from here on by Tell and Ask, as what stands around a handler
// wants for a trace; nil: none again. With takes others for one message. They are read with each message that is sent,
// and must not change before the call returns: then it is over. It returns those that were set before.
func (c *Context) SetHeaders(headers []byte) (before []byte) {
	if kept(c) {
		return nil
	}
	before, c.sends = c.sends, headers
	return before
}

// With returns a sender that gives its messages headers; nil: none. More than 4 KiB are refused with
// *route.HeadersError by each send. The sender reads headers when it sends and keeps no part of them; it is valid where
// c is.
func (c *Context) With(headers []byte) Headed { return Headed{c, headers} }

// Headed sends for the handler of a Context, with headers. See Context.With.
type Headed struct {
	c       *Context
	headers []byte
}

// Tell is Context.Tell with the headers.
func (h Headed) Tell(typ, id string, payload []byte) error {
	c := h.c
	if kept(c) {
		return whose(c)
	}
	if typ == "" {
		typ = c.s.typ.Name
	}
	return c.s.runtime.Tell(h.headers, typ, id, payload)
}

// Ask is Context.Ask with the headers.
func (h Headed) Ask(d time.Duration, typ, id string, payload []byte) ([]byte, error) {
	c := h.c
	if kept(c) {
		return nil, whose(c)
	}
	if typ == "" {
		typ = c.s.typ.Name
	}
	if c.s.typ.Mode != Blocking {
		return nil, fmt.Errorf("%w: type %q is %v", ErrWouldBlock, c.s.typ.Name, c.s.typ.Mode)
	}
	if id == c.ID && typ == c.s.typ.Name {
		return nil, fmt.Errorf("%w: entity %q asks itself", ErrWouldBlock, id)
	}
	return c.s.runtime.Ask(h.headers, d, typ, id, payload)
}

// Reply answers the ask with b, which is copied. ErrNoAsk when the message is a tell, ErrReplied when it was answered
// or detached before; any other error says why the answer did not go out, and Reply may be tried again.
func (c *Context) Reply(b []byte) error {
	switch {
	case kept(c):
		return whose(c)
	case c.from == nil:
		return ErrNoAsk
	case c.answered || c.detached:
		return ErrReplied
	}
	c.failed = c.from.Reply(c.corr, route.OK, b)
	c.answered = c.failed == nil
	return c.failed
}

// Detach takes the duty to answer away from this call: the token answers later, from any goroutine. The token of a tell
// answers nobody and returns ErrNoAsk.
func (c *Context) Detach() ReplyToken {
	if kept(c) {
		return ReplyToken{from: refusing{whose(c)}}
	}
	if c.from == nil || c.answered || c.detached {
		return ReplyToken{used: c.from != nil}
	}
	c.detached = true
	return ReplyToken{from: c.from, corr: c.corr}
}

// Detached reports whether the duty to answer was taken away from a call.
func Detached(c *Context) bool { return !kept(c) && c.detached }

// Passivate lets the entity go when this call returns: Stop is called, and the next message makes a fresh instance.
func (c *Context) Passivate() {
	if !kept(c) {
		c.passivate = true
	}
}

// StopReason says why Stop is called or Type.StopMessage has come, NotStopping in every other call. How long they have
// is said by the deadline of Context.
func (c *Context) StopReason() StopReason {
	if kept(c) || !c.halting {
		return NotStopping
	}
	return c.why
}

// Context returns a context that ends when the handler should come to an end, for calls that take one. It carries the
// cause (context.Cause):
//   - route.ErrSuspended: the node has suspended itself, as Suspended says;
//   - route.ErrShardStopping: the entity's shard is being stopped. Calls that work off what waited then, and Stop, get
//     a context of their own; its deadline is how long they have: none while only this shard moves, the time limit of
//     the leave (Config.LeaveTimeout) when the node leaves. It ends once more when the shard moves and its DrainTime is
//     over: then no other message is handled here;
//   - route.ErrStopped: the node has ended, or it has lost the shard: what the handler does is done for nothing;
//   - route.ErrTimeout: the deadline has passed. That of an ask is the moment from which on its caller waits no more,
//     where that is known;
//   - route.ErrAskCancelled: the asker gave up before that, because its own context has ended. It is reported when
//     it can be; not by nodes before wire version 10.
//
// It does not end when the call returns, so what the handler has begun may go on with it. Making it costs nothing but
// for an ask with a time limit, and nothing at all when Context is not called. In package sim it ends on virtual time.
// A handler that is running is never interrupted: one that waits for something else must look at this context.
func (c *Context) Context() context.Context {
	if kept(c) {
		return incall.Over(whose(c))
	}
	c.given = c.given || c.from != nil
	return c.s.runtime.Context(c.limit, c.from, c.corr)
}

// Suspended reports whether this node has suspended itself while the handler runs, because it may own its entities no
// longer. A handler that works for long should look, and write to no store that does not check Fence when it is true.
// Once the node has, Tell and Ask return route.ErrSuspended.
func (c *Context) Suspended() bool { return kept(c) || c.s.runtime.Suspended() }

// Now returns the time of day, as time.Now does; under package sim it is virtual. Clocks of nodes differ, and are set:
// it orders nothing between nodes.
func (c *Context) Now() time.Time {
	if kept(c) {
		return time.Time{}
	}
	return c.s.runtime.Wall()
}

// open readies c for a message from an origin, nil for a tell.
func (c *Context) open(from Origin, corr uint64) {
	c.from, c.corr, c.failed = from, corr, nil
	c.limit, c.headers, c.sends = 0, nil, nil
	c.answered, c.detached, c.passivate, c.halting, c.fired, c.aside = false, false, false, false, false, false
}

// Contexts are used again: by the next call of their goroutine, or of their entity. So one that was kept serves another
// message, perhaps that of another entity, or none. Two things keep it from that. It is usable on the goroutine of its
// call alone, and only while that call runs: one word says which, written by that goroutine, and any other one that
// reads it finds a number that is not its own. And what is kept for a later call on the same goroutine is kept to
// answer later: an ask that its call has neither answered nor detached leaves its Context behind, and no other call
// gets that one.

// kept reports whether c is used by a goroutine that does not have it: its call has returned, or runs elsewhere.
//
// Nothing orders a goroutine that has kept c against calls that have it since. It needs no order: it reads one word,
// and while that is its own number it is the last to have written it. So the race detector is kept from looking at it.
//
//go:norace
func kept(c *Context) bool { return c.at != incall.Here() }

// whose is the error for a goroutine that has kept c. It names the entity that c was for if no other has got c since,
// as is so while its call runs, and for good if its ask was neither answered nor detached. Else it names the one that
// has c now.
//
//go:norace
func whose(c *Context) error {
	if e := c.e; e != nil {
		return fmt.Errorf("%w: that of entity %q is used after it or elsewhere; Detach gives what answers later",
			ErrContextKept, e.id)
	}
	return fmt.Errorf("%w: it is used after it; Detach gives what answers later", ErrContextKept)
}

// enterCall begins a call into user code, on this goroutine; leaveCall is its end.
func enterCall(c *Context) { c.at = incall.Here() }

func leaveCall(c *Context) { c.at = 0 }

// forNext returns the Context for the next call: c, or one that takes its place because c is spent.
func forNext(c *Context) *Context {
	if !c.spent {
		return c
	}
	next := &Context{doing: c.doing}
	if c.s != nil {
		next.ID, next.Fence, next.Shard = c.e.id, c.s.fence, c.s.id
	}
	c.doing = doing{e: c.e}
	return next
}

// poison spends c whatever its call has done, and has nobody take what it shows for that of an entity.
func poison(c *Context) {
	c.spent = true
	c.ID, c.Fence, c.Shard = "a Context that was kept; its entity was "+c.e.id, route.Fence{}, ^route.ShardID(0)
}

// refusing is an Origin that gets no answer, because of err.
type refusing struct{ err error }

func (r refusing) Reply(uint64, route.Reason, []byte) error { return r.err }

// ReplyToken answers an ask after its Receive has returned. It is used once; copies of one token count as one for the
// caller, which takes the first answer. Methods of one token are not for concurrent use.
type ReplyToken struct {
	from Origin
	corr uint64
	used bool
}

// Reply answers with b, which is copied. ErrNoAsk when nobody asked, ErrReplied when the token was used; any other
// error says why the answer did not go out, and Reply may be tried again.
func (t *ReplyToken) Reply(b []byte) error { return t.answer(route.OK, b) }

// Fail answers with err, as Receive does that returns it: the caller gets its text, at most MaxErrorText bytes of it,
// wrapped in route.ErrHandler, and its identity (route.Error).
func (t *ReplyToken) Fail(err error) error { return t.answer(failure(err)) }

func (t *ReplyToken) answer(reason route.Reason, b []byte) error {
	if t.used {
		return ErrReplied
	}
	if t.from == nil {
		return ErrNoAsk
	}
	err := t.from.Reply(t.corr, reason, b)
	t.used = err == nil
	return err
}
