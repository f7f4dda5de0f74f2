// Driver: one running node, its start and its end.

package driver

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"iter"
	"log/slog"
	"net"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kith-io/kith/internal/base/life"
	"github.com/kith-io/kith/internal/base/logs"
	"github.com/kith-io/kith/internal/core/node"
	"github.com/kith-io/kith/internal/runtime/exec"
	"github.com/kith-io/kith/internal/runtime/transport"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/shard"
	"github.com/kith-io/kith/shutdown"
	"github.com/kith-io/kith/wire"
)

// ErrTypeExists is returned by Register for a name that is registered on this node already.
var ErrTypeExists = shard.ErrTypeExists

// mustNotBlock are functions of this package below which user code holds up others: those of AskFunc, hooks.
var mustNotBlock = func() []string {
	here := reflect.TypeFor[Driver]().PkgPath()
	return []string{here + ".(*askTable).finish", here + ".callHooks"}
}()

// Driver is one running node. All methods are safe for concurrent use.
type Driver struct {
	leaving   // its end: Shutdown, OnShutdown, ShutdownDone, ShutdownReason
	resolver  // Decisions
	health    // Health
	dispatch  // the routes of messages
	peerTable // other nodes
	reports   // the log, and hooks

	cfg   Config
	log   *slog.Logger
	start time.Time
	self  peer.ID

	wires  *transport.Transport
	inbox  *inbox
	events *broadcaster
	asks   *askTable
	large  largeTable
	mail   budget // of mailboxes
	origin selfOrigin

	exec      exec.Exec
	queueFull error // of a worker or loop

	regions  atomic.Pointer[regionTable]
	room     waitLine
	failed   undeliveredTable
	bounds   bounds
	nonsense invalidFrames
	count    counters

	takeover takeover
	counts   atomic.Pointer[node.Counts]
	stopping atomic.Bool
	sleeps   sleepWatch
	recorder *recordKeeper
	life     *life.Lock // nil: none

	lastCluster uint64 // that the record named at the start

	control control // owned by the control goroutine

	threads sync.WaitGroup // ticker, hooks and workers
	done    chan struct{}
	err     atomic.Pointer[shutdown.EndedError]
}

// Start validates cfg, which has its defaults filled in, binds the listener and begins to join.
func Start(ctx context.Context, cfg Config) (*Driver, error) { return start(ctx, cfg, legacy{}) }

// start is Start, of a node to which another one of this process may have left something.
func start(ctx context.Context, cfg Config, left legacy) (*Driver, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("kith: start: %w", err)
	}
	logger, logged := logs.Behind(cfg.Logger)
	cfg.Logger = logger
	seeds := make([]peer.Addr, 0, len(cfg.Seeds))
	for _, s := range cfg.Seeds {
		a, err := peer.ParseAddr(s)
		if err != nil {
			return nil, fmt.Errorf("%w: seed: %w", ErrBadConfig, err)
		}
		seeds = append(seeds, a)
	}
	keeps, err := openRecord(cfg, left)
	if err != nil {
		return nil, err
	}
	d, seed, err := newDriver(cfg)
	if err != nil {
		keeps.release()
		logged.Flush(logs.FlushTime)
		return nil, err
	}
	d.recorder = keeps
	d.warnInsecure()
	sharding := cfg.Sharding.machine()
	sharding.Moves, sharding.NoStates = d.moves, d.noStates
	sharding.Costs, sharding.Strains = d.speaks(wire.KindMoveCost), d.speaks(wire.KindShardStrains)
	nc := node.Config{Self: d.self, Seed: seed, Membership: cfg.members(), Shard: sharding, Resolver: cfg.Resolver,
		Patience: cfg.Patience, ProcessDeathIsProof: cfg.Sharding.ProcessDeathIsProof,
		Session: cfg.Sharding.Session.config(), Tenure: cfg.Sharding.Tenure.config()}
	d.control.session.init(nc.Session)
	d.control.tenure.on = nc.Tenure.On()
	d.control.node = recorded(d, nc)
	d.sleeps.stalls.tolerated = nc.Membership.AcceptablePause
	d.exec.Gate.Init(nc.GapLimit())
	d.wires.Start()
	d.startThreads()
	join := membership.JoinCommand{Seeds: seeds, WallMillis: uint64(time.Now().UnixMilli()),
		NeverForm: cfg.NeverForm, FormNew: cfg.FormNew, Await: cfg.AwaitSeeds}
	join.Record, join.Former = keeps.known(d.self.Addr)
	join.Dead = beginLife(d)
	d.lastCluster = join.Record.ClusterID
	keeps.start(d.self.Addr.String(), func(rec membership.Record) {
		d.inbox.post(func() { _ = d.command(membership.RecordedCommand{Record: rec}) })
	})
	d.inbox.post(func() { d.command(join) })
	return d, nil
}

// Succession is why a node follows another one.
type Succession uint8

// The reasons. Of the first two the seeds of the next node are an operator's (Told).
const (
	JoinsAnother  Succession = iota // it was alone, and joins the cluster of the seeds
	LeftToJoin                      // it left its cluster, and joins that of the seeds
	ReturnsToJoin                   // the cluster ended it
)

// Succeed starts the node that follows d, which has ended, and logs that a node comes back, or why it cannot.
func Succeed(ctx context.Context, d *Driver, cfg Config, why Succession) (*Driver, error) {
	left := legacy{goesOver: why == LeftToJoin}
	if why == ReturnsToJoin {
		left.record = d.recorder.final
	}
	next, err := start(ctx, cfg, left)
	switch {
	case why != ReturnsToJoin:
		if err == nil && len(cfg.Seeds) > 0 {
			told := slices.Clone(cfg.Seeds)
			next.told.Store(&told)
		}
	case err != nil:
		d.log.Error("does not come back yet", "event", "node-not-back", "node", d.self, "error", err)
	default:
		next.log.Warn("comes back as a new member", "event", "node-comes-back", "node", next.self, "after",
			d.Err().Error())
	}
	return next, err
}

// newDriver makes everything but the node and starts nothing.
func newDriver(cfg Config) (*Driver, uint64, error) {
	var random [16]byte
	if _, err := rand.Read(random[:]); err != nil {
		return nil, 0, fmt.Errorf("kith: start: %w", err)
	}
	logger, logged := logs.Behind(cfg.Logger)
	cfg.Logger = logger
	losses, incidents, logged := unheard(&cfg, logged)
	incarnation := binary.LittleEndian.Uint64(random[:]) | 1 // never zero, which means any incarnation
	d := &Driver{
		cfg: cfg, log: logger, start: time.Now(), inbox: newInbox(), asks: newAskTable(cfg.MaxAsks, cfg.askSampling()),
		mail: budget{limit: int64(cfg.MailboxBudget)}, done: make(chan struct{}),
	}
	d.reports = reports{logged, make(chan struct{}, 1), make(chan struct{})}
	d.sleeps.clocks = cfg.clocks
	d.exec.Clock.Init(d.start)
	d.sleeps.init(d.start, &d.exec.Clock)
	d.origin.d, d.asks.at = d, func() int64 { return int64(d.now() / wheelTick) }
	d.large.init(d)
	d.dispatch.init(d)
	d.peerTable.init(d)
	d.count.callbacks.Log, d.asks.callbacks = d.log, &d.count.callbacks
	d.failed.log, d.failed.hook, d.failed.callbacks = losses, cfg.Undelivered, &d.count.callbacks
	d.nonsense.log, d.nonsense.clock = d.log, &d.exec.Clock
	d.exec.Waits.Also = mustNotBlock
	if cfg.Undelivered != nil || cfg.Incident != nil {
		d.exec.Waits.CallingOut()
	}
	d.leaving = leaving{log: d.log, timeout: cfg.LeaveTimeout, inbox: d.inbox, over: d.done, now: d.now,
		command: d.command, end: d.end, why: &d.err, mayWait: d.inbox.mayWait,
		sums: func() map[*Region]abandonedCount { return d.regions.Load().abandoned() }}
	if err := d.makePhases(cfg.Phases); err != nil {
		return nil, 0, err
	}
	d.health.init(d)
	d.regions.Store(&regionTable{})
	d.takeover.init(&d.cfg, d.log)
	t, err := transport.New(transport.Config{
		Listen: cfg.Listen, Advertise: cfg.Advertise, Incarnation: incarnation, Name: cfg.Name,
		Terms:     cfg.terms().Hello(),
		DataLoops: cfg.DataLoops, DataConnections: cfg.DataConnections, PollFor: cfg.PollFor, Window: cfg.Window,
		LinkBuffer: cfg.LinkBuffer, LinkBudget: cfg.LinkBudget, MaxFrame: cfg.maxFrame(), PartialBudget: cfg.PartialBudget,
		Flights: flights{&d.peerTable}, Bulk: &d.large, MaxBulk: cfg.MaxMessage, BulkRoom: cfg.BulkBudget,
		BulkStall:    cfg.bulkStall(),
		HelloTimeout: cfg.helloTimeout, TLS: cfg.TLS, Now: d.now, StepAge: d.stepAge, Share: d.share, Logger: cfg.Logger,
	}, &d.peerTable)
	if err != nil {
		return nil, 0, fmt.Errorf("kith: start: %w", unusable{err})
	}
	d.wires, d.large.wires, d.peerTable.wires = t, t, t
	d.self = peer.ID{Addr: t.Addr(), Inc: incarnation}
	d.events = newBroadcaster(&membership.View{Self: d.self})
	d.leaving.events = d.events
	d.resolver.init(d)
	d.dispatch.self = d.self
	d.bounds = bounds{d.self, &d.cfg}
	d.queueFull = &RefusedError{Peer: d.self, Reason: route.QueueFull, Limit: cfg.localBuffer()}
	d.execution(incidents)
	return d, openBeside(d, binary.LittleEndian.Uint64(random[8:])), nil
}

// unheard returns where losses and incidents are logged, and the queue of the log. On a node that logs nothing else
// what has a hook is logged nowhere.
func unheard(cfg *Config, all *logs.Queue) (losses, incidents *slog.Logger, logged *logs.Queue) {
	if cfg.Unheard == nil {
		return cfg.Logger, cfg.Logger, all
	}
	losses, logged = logs.Behind(cfg.Unheard)
	incidents = losses
	if cfg.Undelivered != nil {
		losses = cfg.Logger
	}
	if cfg.Incident != nil {
		incidents = cfg.Logger
	}
	return losses, incidents, logged
}

func (d *Driver) warnInsecure() {
	if d.cfg.FormNew {
		d.log.Warn("this node forms a new cluster when it finds none, whatever is remembered: an operator wants it once",
			"form_new", true)
	}
	if host, _, err := net.SplitHostPort(d.cfg.Listen); err == nil && !isLoopback(host) && !d.cfg.TLS.On() {
		d.log.Warn("connections are neither encrypted nor authenticated", "listen", d.cfg.Listen, "insecure", true)
	}
}

func (d *Driver) startThreads() {
	d.exec.Gate.Step(d.now())
	d.exec.Start(&d.threads)
	d.threads.Go(d.tick)
	serveBeside(d)
	d.threads.Go(func() { callHooks(d) })
	go d.run()
}

// now is monotonic time since the node's start, with the sleeps of the machine that were noticed.
func (d *Driver) now() time.Duration { return d.exec.Clock.Now() }

// stepAge is how long ago the control goroutine last stepped.
func (d *Driver) stepAge() time.Duration { return d.exec.Gate.StepAge(d.now()) }

// Self returns the identity of this node.
func (d *Driver) Self() peer.ID { return d.self }

// View returns the current snapshot, never nil.
func (d *Driver) View() *membership.View { return d.events.view.Load() }

// Events yields a snapshot and every change after it; see broadcaster.
func (d *Driver) Events(ctx context.Context) iter.Seq[Event] { return d.events.stream(ctx) }

// ShardEvents yields what happens in sharding from now on, as a node sees it: what its coordinators decide, and what
// the owners here do. It ends with ctx or with the node.
func ShardEvents(ctx context.Context, d *Driver) iter.Seq[ShardEvent] {
	return d.events.shards.Stream(ctx, func() ShardEvent { return ShardEvent{At: d.start.Add(d.now())} })
}

// Config returns the configuration, defaults filled in.
func (d *Driver) Config() Config { return d.cfg }

// Done is closed when the node has ended and everything of it has been closed.
func (d *Driver) Done() <-chan struct{} { return d.done }

// Err returns why the node ended, nil while it runs.
func (d *Driver) Err() error {
	if e := d.err.Load(); e != nil {
		return e
	}
	return nil
}

// Ready waits until this node is Up.
func (d *Driver) Ready(ctx context.Context) error {
	if err := d.inbox.mayWait(); err != nil {
		return err
	}
	for ev := range d.Events(ctx) {
		if m, ok := ev.View.SelfMember(); ok && m.Status.Working() {
			return nil
		}
	}
	select {
	case <-d.done:
		return d.Err()
	default:
	}
	if err := ctx.Err(); err != nil {
		return notReady(d, err)
	}
	<-d.done // the stream ends a moment before the node has
	return d.Err()
}

// Leave leaves gracefully and waits until that is done or ctx ends.
func (d *Driver) Leave(ctx context.Context) error {
	if err := d.shutDown(ctx, shutdown.ReasonLeft, ""); err != nil {
		return fmt.Errorf("kith: leave: %w", err)
	}
	return d.outcome()
}

// Close stops the node at once and waits until it has ended. It returns what was abandoned.
func (d *Driver) Close() error {
	d.inbox.post(func() { d.end(&shutdown.EndedError{Kind: shutdown.EndClosed, At: time.Now()}) })
	if err := d.inbox.mayWait(); err != nil {
		return fmt.Errorf("kith: the node closes: %w", err)
	}
	<-d.done
	return d.gaveUp()
}

// Down marks the member at addr as gone.
func (d *Driver) Down(ctx context.Context, addr string) error {
	a, err := peer.ParseAddr(addr)
	if err != nil {
		return fmt.Errorf("kith: down: %w", err)
	}
	if err := d.call(ctx, membership.DownCommand{ID: peer.ID{Addr: a}}); err != nil {
		return fmt.Errorf("kith: down %s: %w", addr, err)
	}
	return nil
}

// SetMetadata sets one key of the metadata that the cluster's state carries; an empty value deletes it.
func (d *Driver) SetMetadata(ctx context.Context, key string, value []byte) error {
	// A copy: when ctx ends first, the command may still be carried out.
	cmd := membership.SetMetadataCommand{Key: key, Value: slices.Clone(value)}
	if err := d.call(ctx, cmd); err != nil {
		return fmt.Errorf("kith: metadata %q: %w", key, err)
	}
	return nil
}

// PrepareForFullShutdown prepares the whole cluster for its end.
func (d *Driver) PrepareForFullShutdown(ctx context.Context) error {
	if err := d.call(ctx, membership.PrepareShutdownCommand{}); err != nil {
		return fmt.Errorf("kith: prepare for full shutdown: %w", err)
	}
	return nil
}

// Refound gives a person's word that the lost have ended.
func (d *Driver) Refound(ctx context.Context) error {
	if err := d.call(ctx, node.RefoundCommand{}); err != nil {
		return fmt.Errorf("kith: found the electorate anew: %w", err)
	}
	return nil
}

// Convergence explains this node's convergence.
func (d *Driver) Convergence(ctx context.Context) (membership.Convergence, error) {
	return asked(ctx, d, func(n *node.Node) membership.Convergence { return n.Convergence() })
}

// Versions says which version each member is known to have.
func (d *Driver) Versions(ctx context.Context) ([]membership.KnownVersion, error) {
	return asked(ctx, d, func(n *node.Node) []membership.KnownVersion { return n.Versions() })
}

// Suspicions says how a node judges the silence of each peer that it watches.
func Suspicions(ctx context.Context, d *Driver) ([]membership.Suspicion, error) {
	return asked(ctx, d, node.Suspicions)
}

// asked asks the control goroutine a question about the node.
func asked[T any](ctx context.Context, d *Driver, question func(*node.Node) T) (t T, err error) {
	if err := cmp.Or(ctx.Err(), d.inbox.mayWait()); err != nil {
		return t, err
	}
	answer := make(chan T, 1)
	if !d.inbox.post(func() { answer <- question(d.control.node.Node) }) {
		return t, d.ended()
	}
	select {
	case t = <-answer:
		return t, nil
	case <-ctx.Done():
		return t, ctx.Err()
	case <-d.done:
		return t, d.ended()
	}
}

// call makes the control goroutine carry out a command, unless ctx has ended by then, and returns what the node says to
// it.
func (d *Driver) call(ctx context.Context, cmd any) error {
	if err := d.inbox.mayWait(); err != nil {
		return err
	}
	answer := make(chan error, 1)
	if !d.inbox.post(func() {
		err := ctx.Err()
		if err == nil {
			err = d.command(cmd)
		}
		answer <- err
	}) {
		return d.ended()
	}
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-d.done:
		select {
		case err := <-answer:
			return err
		default:
			return d.ended()
		}
	}
}

// ended returns why nothing is accepted any more.
func (d *Driver) ended() error {
	if err := d.Err(); err != nil {
		return err
	}
	return route.ErrStopped
}
