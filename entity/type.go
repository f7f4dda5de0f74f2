// Type, Mode, Handler and Keep: how a user declares a kind of entity, and a runtime one that is kept alive.

package entity

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/kith-io/kith/internal/base/enum"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/shard/strategy"
)

// Mode is how the handlers of a type are executed.
type Mode uint8

// The execution modes.
const (
	// Blocking handlers may block: each busy entity has a goroutine, an idle one has none. The default.
	Blocking Mode = 0
	// Worker handlers must not block: they run on the worker that owns their shard's table, without locks.
	Worker Mode = 1
	// Inline handlers must be tiny and must not block: they run on the event loop that received the message, or on the
	// goroutine of this node that asks and waits for the answer, while that loop has nothing to do.
	Inline Mode = 2
)

var modeNames = []string{Blocking: "blocking", Worker: "worker", Inline: "inline"}

// String names the mode.
func (m Mode) String() string { return enum.Name(modeNames, m, "mode") }

// MarshalText gives the name.
func (m Mode) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalText takes a name, as String gives it.
func (m *Mode) UnmarshalText(text []byte) error { return enum.Parse(m, text) }

// Restart is what becomes of an entity when its handler panicked.
type Restart uint8

// The restart policies.
const (
	// RestartFresh drops the instance; the next message makes a new one, after the type's back-off and as often as its
	// limit allows. The default.
	RestartFresh Restart = 0
	// RestartResume keeps the instance and goes on with the next message.
	RestartResume Restart = 1
	// RestartStop drops the instance and what waits for the entity, which is reported; asks among it get
	// route.ErrCrashed. The next message makes a new instance, after the type's back-off.
	RestartStop Restart = 2
)

var restartNames = []string{RestartFresh: "fresh", RestartResume: "resume", RestartStop: "stop"}

// String names the policy.
func (r Restart) String() string { return enum.Name(restartNames, r, "restart") }

// MarshalText gives the name.
func (r Restart) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText takes a name, as String gives it.
func (r *Restart) UnmarshalText(text []byte) error { return enum.Parse(r, text) }

// StopReason is why an instance gets Type.StopMessage and Handler.Stop.
type StopReason uint8

// The reasons of a stop. A node that ends without a leave (Close, a Down), and one that has lost a shard already, calls
// no Stop.
const (
	NotStopping    StopReason = 0 // neither Stop nor the stop message is being called
	StopPassivated StopReason = 1 // the handler called Context.Passivate
	StopIdle       StopReason = 2 // it had no message for Type.IdleAfter
	StopEvicted    StopReason = 3 // it was idle, and the node holds more than Type.MaxActive
	StopMoved      StopReason = 4 // another node is to host the shard
	StopLeaving    StopReason = 5 // the node leaves the cluster
)

var stopNames = []string{NotStopping: "not-stopping", StopPassivated: "passivated", StopIdle: "idle",
	StopEvicted: "evicted", StopMoved: "moved", StopLeaving: "leaving"}

// String names the reason.
func (r StopReason) String() string { return enum.Name(stopNames, r, "stop") }

// MarshalText gives the name.
func (r StopReason) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText takes a name, as String gives it.
func (r *StopReason) UnmarshalText(text []byte) error { return enum.Parse(r, text) }

// Defaults and bounds of a Type.
const (
	DefaultShards       = 1000
	DefaultMailboxBytes = 256 << 10
	DefaultMaxState     = 1 << 20
	MinMailboxBytes     = 1 << 10
	MaxStopMessage      = 64 << 10 // bytes of Type.StopMessage

	DefaultRestartWindow = time.Minute
	DefaultRecallBackoff = time.Second // RestartBackoff of a type with a Remembered
	MaxRestartWindow     = 24 * time.Hour
)

const maxRestarts = 1 << 20

// ways is what there is around the calls of a type's handlers, as bits.
type ways uint8

const (
	watched  ways = 1 << iota // the runtime hears of each
	enclosed                  // by an Around.Receive
)

// slowAfter is the limit of a call, and whether calls are watched while they run.
func (t *Type) slowAfter() (limit time.Duration, w ways) {
	switch {
	case t.SlowAfter > 0:
		return t.SlowAfter, watched
	case t.SlowAfter < 0 || t.Mode == Blocking:
		return math.MaxInt64, 0
	}
	return SlowAfter, 0
}

// receives reports whether anything is called in the place of Receive.
func (t *Type) receives() bool {
	return slices.ContainsFunc(t.Around, func(a Around) bool { return a.Receive != nil })
}

// Handler is one entity: user code that gets one call at a time.
type Handler interface {
	// Receive handles one message. payload, c and c.ID are valid until it returns. An error reaches the caller of an ask
	// and leaves the entity alive; a panic follows the type's restart policy.
	Receive(c *Context, payload []byte) error
	// Stop is called once before the entity goes: hand-off, passivation or shutdown. It flushes under c.Fence. It is not
	// called for an instance that a panic ended, nor when the shard is lost already.
	// c.StopReason says why, c.Context how long it has.
	Stop(c *Context)
}

// Opener makes the entities of a type in the place of New and Open (Type.Typed), and knows what is wrong with itself.
type Opener interface {
	// Open makes an entity, as Type.Open does.
	Open(c *Context) (Handler, error)
	// Validate returns all faults as what makes the entities of a type of that name, joined, or nil.
	Validate(typ string) error
}

// ShardBy maps entities to shards in the place of the hash of their ids, so that what belongs together shares a shard:
// it lives on one node, and moves together. The zero value is the hash.
type ShardBy struct {
	// Name says which function it is: 1 to 64 bytes, none of them zero. All nodes must have the type with the same name:
	// one that differs is refused as one with another number of shards is. A function that gives other shards than before
	// wants another name.
	Name string
	// Of returns the shard of an entity id, below the number of shards. It is called at each send, by any goroutine: it is
	// a pure function of the id, fast, and the same on all nodes. A shard that the type does not have, and a panic, is
	// route.ErrBadShard of the send, and no handler has seen the message.
	Of func(id string) route.ShardID
}

// of calls the function.
func (b *ShardBy) of(id string, shards uint32) (n route.ShardID, err error) {
	defer func() {
		if v := recover(); v != nil {
			n, err = route.NoShard, route.NotRun(fmt.Errorf("%w: %s panicked: %.200v", route.ErrBadShard, b.Name, v))
		}
	}()
	if n = b.Of(id); uint32(n) >= shards {
		return route.NoShard, route.NotRun(fmt.Errorf("%w: %s says %d, of %d shards", route.ErrBadShard, b.Name, n, shards))
	}
	return n, nil
}

// maxShardBy is the longest name of a shard function.
const maxShardBy = 64

// maxPlace is how many bytes role and name of the shard function have together at most (shard.MaxRole less one).
const maxPlace = 254

// validate returns what is wrong with a shard function, in words, or "".
func (b *ShardBy) validate(role string) string {
	switch {
	case (b.Name == "") != (b.Of == nil):
		return "ShardBy has a Name or an Of, must have both or none"
	case len(b.Name) > maxShardBy:
		return fmt.Sprintf("Name of ShardBy has %d bytes, must have 1 to %d", len(b.Name), maxShardBy)
	case strings.IndexByte(b.Name, 0) >= 0:
		return "Name of ShardBy has a zero byte"
	case b.Name != "" && len(role)+len(b.Name) > maxPlace:
		return fmt.Sprintf("Role and Name of ShardBy have %d bytes together, must have at most %d", len(role)+len(b.Name),
			maxPlace)
	}
	return ""
}

// Type declares a kind of entity. The zero value of every field but Name and New (or Open, or Typed) is a good default.
// Name, Shards, Role and the name of ShardBy must agree on all nodes; the others may differ.
type Type struct {
	// Name names the type in the whole cluster: 1 to 255 bytes.
	Name string
	// Shards is how many shards the ids are spread over: 1 to 1,048,576; zero means 1000.
	Shards uint32
	// ShardBy maps an id to its shard; zero: its hash does.
	ShardBy ShardBy
	// Role limits the hosting nodes to members with this role; empty means all.
	Role string
	// Mode is how handlers are executed; the zero value is Blocking.
	Mode Mode
	// Strategy decides which node gets a shard without a home, and which shards move for balance; nil is
	// strategy.LeastShards with its defaults. That of the node that coordinates the type counts, the oldest in its role:
	// nodes that differ go by one after the other. It is asked under guard (strategy.Check). Give each node a value of its
	// own: it is asked from a goroutine of the node.
	Strategy strategy.Strategy
	// New makes the entity when its first message comes. id is the type's own copy and may be kept; f is the fence of
	// the ownership under which it lives, to be given to every store that it writes to.
	New func(id string, f route.Fence) Handler
	// Open takes the place of New for entities that may fail to be made, as one that reads its state from a store: set one
	// of the two. An error, and a panic in either, ends the message that wanted the entity: an ask gets
	// route.ErrNewFailed with the text, a tell is dropped, counted and reported, and no handler has seen either. Then it
	// goes on as after a panic: by Restart, RestartBackoff and MaxRestarts. c has all but the ask: the message is for
	// the handler to answer. Open blocks only where a handler of the type's Mode may.
	Open func(c *Context) (Handler, error)
	// Typed takes the place of both for handlers of values, each kind of message with a method of its own
	// (kith.Methods): what it makes fails, and blocks, as what Open makes.
	Typed Opener
	// StopMessage, if not nil, is a message of the application's own that each instance gets as its last one before it
	// stops, by Receive: behind all that it handles, and before HandOver and Stop. Context.StopReason says why, in that
	// call and in Stop alone. It goes where Stop is called and nowhere else: an entity that does not live gets none, nor
	// does one of a lost shard or a killed node. It is no ask, has no headers, and counts as no message; an error of it is
	// counted as Failed, and a panic ends the instance without HandOver and Stop, unless Restart is RestartResume. Each
	// instance gets a copy. At most 64 KiB.
	StopMessage []byte
	// MailboxBytes bounds what waits for one Blocking entity, RecordOverhead of each message included; zero means
	// 256 KiB, at least 1 KiB. A single message may exceed it when nothing else waits, and so may messages of TellWait
	// that were under way when it was reached: of each data connection its window, what its link gathers, and two frames.
	MailboxBytes int
	// MaxState bounds, in bytes, the state that one entity hands over when its shard moves, if its handler is Stateful;
	// zero means 1 MiB. What is larger is lost, as StateLost tells.
	MaxState int
	// StateStored says that what Stateful handlers hand over is a copy of what a store has: one that reaches no next
	// instance is no lost state, and nothing tells of it.
	StateStored bool
	// IdleAfter stops an entity that had no message for so long, at most a quarter later; its timers do not keep it alive,
	// their messages do. Zero and negative mean never: what a handler has in memory alone would be gone, and the node
	// cannot know whether a store has it. Give a time to each type with entities that load their state, and to each with
	// ids that strangers choose: without one, and without MaxActive, its entities only grow in number, which a node logs
	// when there are many.
	IdleAfter time.Duration
	// MaxActive bounds the entities of this type on one node, idle ones included: each new one over it has the one
	// stopped that is idle for about the longest. It is divided among the type's shards on the node, and softly: busy
	// entities are not stopped. Zero means no bound.
	MaxActive int
	// Restart is what becomes of an entity when its handler panicked; the zero value drops the instance.
	Restart Restart
	// RestartBackoff is how long an entity rests after a panic before New may make its next instance; it doubles with
	// each further panic within RestartWindow, up to that. Meanwhile messages to a Blocking entity wait in its mailbox
	// (under RestartFresh), all others are refused with route.ErrCrashed. Zero means no rest.
	RestartBackoff time.Duration
	// MaxRestarts is how many panics within RestartWindow may lead to a new instance. One more and the entity is
	// given up for RestartWindow: what waits for it is dropped and reported, what comes is refused with
	// route.ErrCrashed, and a GaveUp incident tells so. Zero means no limit.
	MaxRestarts int
	// RestartWindow is for how long a panic counts, from the end of the rest that it led to; zero means a minute, at most
	// a day.
	RestartWindow time.Duration
	// SlowAfter is how long a call of a handler may take before it is reported. Zero means 10 ms for Worker and Inline,
	// reported when the call returns, and no limit for Blocking. A limit given here is watched: the entity is named
	// while the call still runs, and again when it returns. That costs about a tenth of a microsecond for each call.
	// Negative means no report.
	SlowAfter time.Duration
	// Remembered, if not nil, lists the entities of a shard that live without messages: those that the application
	// remembers, in the store that has their state. It is called when the shard begins to live on a node, and each entity
	// that it names begins there, without a message. Shards of such a type get homes though nobody sends. An entity of the
	// type that fails, named or not, begins again when its rest is over, once it has lived: RestartBackoff zero means 1 s.
	// One ends by Context.Passivate alone, and should forget itself in the store before: IdleAfter and MaxActive must be
	// none, Restart must be RestartFresh.
	//
	// It is called on a goroutine of its own and may block; ctx ends when the shard is being stopped or lost, and when
	// the node is suspended. An error, a panic, and an id that is none or is of another shard (Type.ShardOf), is a
	// RecallFailed incident; after the first two the list is asked for again, after 1 s and then ever longer rests, up to
	// a minute. Of all shards on a node at most four lists are read at a time, no further ahead than 64 entities.
	Remembered func(ctx context.Context, shard route.ShardID, f route.Fence) iter.Seq2[string, error]
	// Hosted, if not nil, is called for each shard when it begins to live on a node, on a goroutine of its own, whatever
	// Mode is: for what a shard does beside its entities, as reading a queue or keeping a cache warm. It may block. It is
	// to return soon after ctx has ended: the shard is being stopped or is lost, or the node is suspended or has ended;
	// context.Cause(ctx) says which, as for Context.Context. Until it has returned the shard begins nowhere else, but
	// where its node was lost, after the takeover time: so every store that it writes to is to be given f. When that takes
	// too long it is reported as a stop call that hangs (StopHangs), or as an Overrun of a suspended node.
	//
	// It does not delay the shard's first message. If it returns before ctx ends it is not called again as long as the
	// shard lives here. It is called again under the same fence when a suspension has ended it and the node goes on, and
	// after a panic, which is a Panicked incident without an ID: after 1 s and then ever longer rests, up to a minute.
	// Shards of a type that has it get homes though nobody sends.
	Hosted func(ctx context.Context, shard route.ShardID, f route.Fence)
	// Around is what is called around the type's messages, on the node that sends one and on the node that handles it:
	// authentication, limits, logs. The first one is the outermost on either side. At most 16.
	Around []Around
}

// Around is called around every tell and every ask of a type. Send and Receive are apart: a node that only sends calls
// Send alone, and either may be nil. Both are called by many goroutines at once.
type Around struct {
	// Send is called on the goroutine that sends, before anything of the message has left it: by a region's Tell,
	// TellWait, TellBulk, Ask, AskWithin and AskFunc, and by Tell and Ask of a handler, to this type. It may give the
	// message other Headers and another Payload. An error ends the message: it is what the sender gets, and
	// route.MayHaveRun of it says that nothing has run.
	//
	// done, unless it is nil, is called once, with what the sender gets: the answer of an ask, which is a view that must
	// not be changed, or none for a tell that was accepted; or the error. For AskFunc that is on the goroutine that calls
	// its function, before it, and must not block. A panic in Send ends the message with route.ErrPanic, one in done
	// changes nothing; both are counted and logged as those of other callbacks.
	Send func(m *Sending) (done func(reply []byte, err error), err error)
	// Receive is called in the place of Handler.Receive, in the same call and under the same rules: by the type's Mode, on
	// that goroutine, with a Context that is valid until it returns. next is what it stands around: the next Around, at
	// last the handler. It is called once or not at all, on this goroutine; a second time it returns ErrNextTwice, and
	// elsewhere ErrContextKept. What Receive returns is answered as if the handler had returned it. An error without a
	// call of next turns the message away: its asker gets it as a handler's error, and route.MayHaveRun says false (to
	// nodes of wire version 8 and before it says true). One that calls no next and returns nil has answered the message by
	// itself, with c.Reply. A panic is one of the handler. Messages of an entity's own (timers, the end of a watched
	// entity, Type.StopMessage) go by no Around.
	Receive func(c *Context, payload []byte, next func(payload []byte) error) error
}

// Sending is a message that is about to be sent, as Around.Send sees it. It is valid until Send returns, and so are the
// slices that it was given with.
type Sending struct {
	Type, ID string // of its receiver; to be read only
	Asks     bool   // an answer is waited for
	// Context is that of Ask, TellWait and TellBulk, else context.Background. To be read only.
	Context context.Context
	// Within is the time limit of AskWithin, AskFunc and a handler's Ask, else zero. To be read only.
	Within time.Duration
	// Headers and Payload may be replaced, but their bytes must not be changed.
	Headers, Payload []byte
}

// MaxAround is the most that Type.Around may hold.
const MaxAround = 16

// EnterSend calls what is around a message that is about to be sent, guard around each call: it returns an error when
// that did not return. The error is why the message is not to be sent. Else done is to be called with what came of it.
func EnterSend(list []Around, m *Sending, guard func(name string, f func()) error) (
	done func(reply []byte, err error), err error,
) {
	var after []func(reply []byte, err error)
	done = func(reply []byte, err error) {
		for i := len(after) - 1; i >= 0; i-- {
			_ = guard("Around.done", func() { after[i](reply, err) }) // counted there
		}
	}
	for i := range list {
		if list[i].Send == nil {
			continue
		}
		var f func(reply []byte, err error)
		var refused error
		if caught := guard("Around.Send", func() { f, refused = list[i].Send(m) }); caught != nil {
			f, refused = nil, fmt.Errorf("%w: %w", route.ErrPanic, caught)
		}
		if refused != nil {
			refused = route.NotRun(refused)
			done(nil, refused)
			return nil, refused
		}
		if f != nil {
			after = append(after, f)
		}
	}
	return done, nil
}

// SendsAround reports whether anything is called when a message is sent to the type.
func SendsAround(t *Type) bool {
	return slices.ContainsFunc(t.Around, func(a Around) bool { return a.Send != nil })
}

// WithDefaults returns t with zero fields replaced by their defaults.
func (t Type) WithDefaults() Type {
	if t.Shards == 0 {
		t.Shards = DefaultShards
	}
	if t.MailboxBytes == 0 {
		t.MailboxBytes = DefaultMailboxBytes
	}
	if t.MaxState == 0 {
		t.MaxState = DefaultMaxState
	}
	if t.RestartWindow == 0 {
		t.RestartWindow = DefaultRestartWindow
	}
	if t.Remembered != nil && t.RestartBackoff == 0 {
		t.RestartBackoff = min(DefaultRecallBackoff, t.RestartWindow)
	}
	return t
}

// open calls Open, or what takes its place.
func (t *Type) open(c *Context) (Handler, error) {
	if t.Open == nil {
		return t.Typed.Open(c)
	}
	return t.Open(c)
}

// ShardOf returns the shard of an entity id: by ShardBy, else by the hash (route.ShardOf). The error matches
// route.ErrBadShard, and the shard is route.NoShard then.
func (t *Type) ShardOf(id string) (route.ShardID, error) {
	if t.ShardBy.Of == nil {
		return route.ShardOf(id, t.Shards), nil
	}
	return t.ShardBy.of(id, t.Shards)
}

// Validate returns all faults of t joined, or nil. It judges t as given, so apply WithDefaults first.
func (t Type) Validate() error {
	var errs []error
	fault := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("type %q: "+format, append([]any{t.Name}, args...)...))
	}
	if t.Name == "" || len(t.Name) > route.MaxTypeName {
		fault("Name has %d bytes, must have 1 to %d", len(t.Name), route.MaxTypeName)
	}
	if t.Shards < 1 || t.Shards > route.MaxShards {
		fault("Shards is %d, must be 1 to %d", t.Shards, route.MaxShards)
	}
	if text := t.ShardBy.validate(t.Role); text != "" {
		fault("%s", text)
	}
	if t.Mode > Inline {
		fault("Mode is %d, must be Blocking, Worker or Inline", t.Mode)
	}
	if l, ok := t.Strategy.(strategy.LeastShards); ok && l.Threshold < 0 {
		fault("Threshold of LeastShards is %d, must not be negative", l.Threshold)
	}
	if err := CheckMakers(t.Name, t.New != nil, t.Open != nil, t.Typed); err != nil {
		fault("%w", err)
	}
	if t.MailboxBytes < MinMailboxBytes {
		fault("MailboxBytes is %d, must be at least %d", t.MailboxBytes, MinMailboxBytes)
	}
	if len(t.StopMessage) > MaxStopMessage {
		fault("StopMessage has %d bytes, must have at most %d", len(t.StopMessage), MaxStopMessage)
	}
	for i, negative := range []bool{t.MaxState < 0, t.MaxActive < 0} {
		if negative {
			fault("%s is negative", []string{"MaxState", "MaxActive"}[i])
		}
	}
	if len(t.Around) > MaxAround {
		fault("Around has %d entries, must have at most %d", len(t.Around), MaxAround)
	}
	if t.Restart > RestartStop {
		fault("Restart is %d, must be RestartFresh, RestartResume or RestartStop", t.Restart)
	}
	if t.Remembered != nil && (t.IdleAfter > 0 || t.MaxActive != 0 || t.Restart != RestartFresh) {
		fault("Remembered needs RestartFresh, and neither IdleAfter nor MaxActive")
	}
	if t.RestartWindow < 0 || t.RestartWindow > MaxRestartWindow {
		fault("RestartWindow is %v, must be at most %v", t.RestartWindow, MaxRestartWindow)
	}
	if t.RestartBackoff < 0 || t.RestartBackoff > t.RestartWindow {
		fault("RestartBackoff is %v, must be at most RestartWindow, %v", t.RestartBackoff, t.RestartWindow)
	}
	if t.MaxRestarts < 0 || t.MaxRestarts > maxRestarts {
		fault("MaxRestarts is %d, must be 0 to %d", t.MaxRestarts, maxRestarts)
	}
	if t.Restart != RestartFresh && t.MaxRestarts > 0 || t.Restart == RestartResume && t.RestartBackoff > 0 {
		fault("RestartBackoff and MaxRestarts need a Restart that makes new instances")
	}
	return errors.Join(errs...)
}

// CheckMakers judges a declaration of that name by which of New, Open and Typed it has: one of them makes its entities.
// It returns all faults joined, or nil.
func CheckMakers(name string, hasNew, hasOpen bool, typed Opener) error {
	switch {
	case !hasNew && !hasOpen && typed == nil:
		return errors.New("New is nil, and so are Open and Typed")
	case hasNew && hasOpen:
		return errors.New("New and Open are both set, must be one of them")
	case typed != nil && (hasNew || hasOpen):
		return errors.New("Typed is set, and so is New or Open, must be one of them")
	case typed != nil:
		return typed.Validate(name)
	}
	return nil
}

// Keep says which entity of each shard of a type is kept alive, and what it is. The type must have a RestartBackoff and
// RestartFresh: after a failure the entity begins again when its rest is over.
type Keep struct {
	// ID is the entity's id, by its shard.
	ID func(route.ShardID) string
	// Run, if not nil, is what the entity does, in the place of messages, which its shard refuses with route.BadID: it is
	// called when the entity begins, and called again after a rest when it has returned. It returns soon after ctx has
	// ended: its shard is being stopped or lost, or the node is suspended. An error is a failure unless ctx has ended, a
	// panic always: the rest doubles. The type is Blocking. Nil: the entity is the handler that New or Open makes.
	Run func(ctx context.Context, c *Context) error
}
