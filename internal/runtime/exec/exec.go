// Exec: the execution of handlers on one node, its start and its end, and what it needs of the node around it.

package exec

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/base/callback"
	"github.com/kith-io/kith/internal/core/lifetime"
	"github.com/kith-io/kith/internal/core/plane"
	"github.com/kith-io/kith/internal/runtime/loop"
	"github.com/kith-io/kith/internal/runtime/transport"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

// Config says how handlers are run.
type Config struct {
	Workers       int
	Loops         []*loop.Loop  // the data loops, by their index
	MaxPayload    int           // bytes of a message that came in a frame
	LocalBuffer   int           // bytes that wait for one worker or loop from this node itself, or for a try-lock
	Backlog       int           // bytes that a loop keeps while the gate is closed; more is refused
	Mailboxes     entity.Budget // of all Blocking entities together
	MailboxUsed   func() int    // bytes of it that are out
	MailboxBudget int           // its bound
	Origin        entity.Origin // answers the asks of this node itself
	// Latency takes how long one of LatencyEvery messages, or rarer, took to be worked off. Nil: not measured.
	Latency      func(typ string, took time.Duration)
	LatencyEvery int
	Incident     func(entity.Incident) // the embedder's hook, nil for none
	Callbacks    *callback.Guard       // what calls the embedder's functions
	Logger       *slog.Logger          // of incidents
	Alone        bool                  // the transport has another one
}

// Needs is what execution needs of its node beside clock and gate. All of it is safe for concurrent use, returns soon,
// and is called from loops, workers and goroutines of entities.
type Needs struct {
	// Source returns the way back to the sender on a connection; it is remembered for the connection.
	Source func(c *transport.InConn) *Source
	// Reply takes an answer to an ask of this node: a whole frame, valid during the call.
	Reply func(from *Source, f []byte)
	// InvalidFrames counts a frame that a peer sent and that made no sense.
	InvalidFrames func(from peer.ID, kind wire.Kind, err error)
	// Marked takes the marker of a move, which no message of its sender to that shard stands behind: all that came before
	// it was given to its host.
	Marked func(from peer.ID, m wire.Marker)
	// Refused tells the sender of a message that it was not taken; it has been counted here. t is nil when the type is not
	// registered; from is nil for this node: its callers learn of it by what Send returns when they still can. env
	// is valid during the call.
	Refused func(t *Type, from *Source, env *wire.Envelope, reason route.Reason)
	// Large returns the large message for which an envelope stands, or why there is none to be had.
	Large func(from *Source, env *wire.Envelope) (Large, route.Reason)
	// Parcel takes the body of a parcel; it keeps nothing of that. Loops call it.
	Parcel func(c *transport.InConn, body []byte)
	// Asker returns the node that asked, by that way back.
	Asker func(from entity.Origin) peer.ID
	// Room says that the mailbox of an entity, by the hash of its id, has room again: Send has refused a message to it,
	// and its sender waits for room. A lock of the host is held.
	Room func(t route.TypeID, shard route.ShardID, hash uint64)
	// Stopped says that the entities of a shard have stopped. A lock of the host may be held.
	Stopped func(h *Host)
	// Overdue says that a shard is at the deadline of its move: its handlers are to wait for no answer any more.
	Overdue func(h *Host)
	// Unhandled says that an accepted message has ended before a handler got it; an asker has its answer. A lock of
	// the host may be held.
	Unhandled func(t *Type, shard route.ShardID, id string, why route.Reason, ask bool)
	// Watches says that hosts have something of watches for the node: WatchTurn takes it. A lock of a host may be held.
	Watches func()
}

// Large is a large message that came by another way than its envelope.
type Large struct {
	Payload []byte
	Release func()             // called once when nobody needs the payload any more, if the shard has taken it
	Done    func(route.Reason) // says what the shard said; it is called before Release when that was not route.OK
}

// Exec runs the handlers of one node's entities. Init comes first, then Start. Methods are safe for concurrent use
// unless said otherwise.
type Exec struct {
	Clock      Clock
	Gate       Gate
	Waits      Waits      // the callers that must not wait
	Attendants Attendants // calls of Type.Hosted

	cfg       Config
	needs     Needs
	types     atomic.Pointer[Types]
	hosts     hostList
	workers   []*worker
	passes    []*pass
	pool      blockingPool
	recaller  recaller
	incidents incidents
	strained  strained
	parting   parting
	watching  watchers
	cancels   lifetime.Cancels // of asks with handlers at work here

	weighs       atomic.Bool // some type's handlers are timed by shard
	readsOn      readsOn
	unregistered atomic.Uint64
	stopping     atomic.Bool
	ended        atomic.Bool   // before stopping: what is refused from here on is abandoned
	settled      atomic.Bool   // all that was left of this node's own is reported (Settle)
	opened       time.Duration // when the gate was last found closed; the ticker's
}

// Init makes everything and starts nothing. Clock and Gate have been initialised.
func (x *Exec) Init(cfg Config, needs Needs) {
	x.cfg, x.needs = cfg, needs
	x.Gate.clock, x.Gate.closes = &x.Clock, x.suspend
	x.types.Store(&Types{})
	x.pool.x, x.pool.most = x, maxBusy
	x.recaller.x, x.Attendants.x = x, x
	x.incidents.log, x.incidents.alone, x.incidents.hook = cfg.Logger, cfg.Alone, cfg.Incident
	for _, l := range cfg.Loops {
		x.passes = append(x.passes, newPass(x, l))
	}
	for range cfg.Workers {
		x.workers = append(x.workers, newWorker(x))
	}
}

// Start starts the workers. They are among threads until StopWorkers.
func (x *Exec) Start(threads *sync.WaitGroup) {
	for _, w := range x.workers {
		threads.Go(w.run)
	}
}

// suspend tells handlers that run that the gate has closed.
func (x *Exec) suspend() {
	for _, h := range x.hosts.snapshot() {
		h.life.Suspend()
	}
}

// Tick does what is due: the gate opens for waiting messages, hosts are ticked, workers that could not be woken are
// woken. One goroutine calls it, every few milliseconds, and Watch now and then.
func (x *Exec) Tick(now time.Duration) {
	x.Clock.Tick(now)
	x.Gate.Notice(now)
	if !x.Gate.Held(now) {
		x.Resume()
		x.hosts.cut(now)
		x.hosts.tick(now) // a timer that fires into handlers waits for the gate too
		x.recaller.tick(now)
		x.Attendants.tick(now)
	}
	x.relieve()
	for _, p := range x.passes {
		p.local.poke()
	}
}

// Resume makes all that wait for the gate look again, also loops that keep messages.
func (x *Exec) Resume() {
	x.Gate.Release(false)
	for _, p := range x.passes {
		if p.waits.Load() && p.waits.CompareAndSwap(true, false) && p.loop.Execute(p) != nil {
			p.waits.Store(true)
		}
	}
}

// Watch reports calls that take long, stop calls that hang and goroutines that stand still. The goroutine of Tick.
func (x *Exec) Watch(now time.Duration) {
	x.watchCalls()
	x.watchStalls(now)
	watchStops(x, now, x.Clock.Slewed())
}

// ReportAny logs an incident of no type and passes it to the hook. It waits for nobody.
func (x *Exec) ReportAny(i entity.Incident) { x.incidents.tell(i) }

// Untold reports whether incidents wait for the embedder's hook.
func Untold(x *Exec) bool {
	x.incidents.mu.Lock()
	defer x.incidents.mu.Unlock()
	return len(x.incidents.list) > 0
}

// TellHook calls the embedder's hook for each incident that waits for it.
func (x *Exec) TellHook() {
	for _, i := range x.incidents.take() {
		_ = x.cfg.Callbacks.Call("Incident", func() { x.incidents.hook(i) })
	}
}

// Data takes the whole frames of one read, on the loop of their connection. The credit of each is given back.
func (x *Exec) Data(c *transport.InConn, frames []byte) {
	p := x.passes[c.Loop().Index()]
	if p.conn != c {
		p.flush()
		p.conn, p.from = c, p.source(c)
	}
	p.sit()
	from, now := p.from, x.Clock.Now()
	if x.Gate.Held(now) || !p.backlog.empty() {
		wire.ArriveAll(frames, plane.MomentAfter(now))
		p.keep(c, from, frames)
		p.rise()
		return
	}
	p.count.enter(x)
	p.mayKeep()
	p.ahead.fresh, p.ahead.arrived = true, plane.MomentAfter(now)
	p.read(now, c, from, frames)
	p.ahead.fresh = false
	p.count.leave()
	p.rise()
}

// PassDone ends a read pass on its loop: what it has gathered goes to the goroutines that work it off, and wakes them.
func (x *Exec) PassDone(l *loop.Loop) {
	p := x.passes[l.Index()]
	p.flush()
	p.conn, p.from = nil, nil // a connection that is gone is not held
}

// Handled counts the messages that loops and workers gave to their hosts.
func (x *Exec) Handled() (n uint64) {
	for _, w := range x.workers {
		n += w.count.handled.Load()
	}
	for _, p := range x.passes {
		n += p.count.handled.Load()
	}
	return n
}

// Busy counts what may stand in user code beside workers and loops: Blocking entities that have a goroutine, shards
// with more of them that are ready, lists of remembered entities that are being read, and calls of Type.Hosted.
func (x *Exec) Busy() int64 { return int64(x.pool.count() + x.recaller.count()) }

// Unregistered counts the messages that were refused because their type is not registered here.
func (x *Exec) Unregistered() uint64 { return x.unregistered.Load() }
