// Types of durable entities: what a user declares, and what asks and tells them.

// Package durable runs entities with a state that survives their owner: what a handler leaves is committed to a store
// under the fence of the shard's owner, and the asker gets its answer when that has taken place, not before:
// docs/durable.md.
package durable

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/internal/base/ground"
	"github.com/kith-io/kith/internal/base/logs"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/store"
)

// Defaults and bounds of a Type.
const (
	DefaultMaxWaiting      = 4096
	DefaultMaxWaitingBytes = 64 << 20
	DefaultPatience        = 5 * time.Second
	DefaultIdleAfter       = 10 * time.Minute // what an entity holds in memory is stored: its next message reads it
	maxPatience            = time.Hour
	// MaxState is the most bytes that a state has when it is encoded.
	MaxState = store.MaxBytes - store.Overhead - route.MaxIDSize - markRoom
	markRoom = store.Overhead + store.MaxFrom + maxText + 64 // for a mark beside it
)

// Type declares a type of durable entities. Name, Store and Handle are needed. Name, Shards and Role must agree on all
// nodes, and so must Schema and the codecs but for what they can read of each other; Store is the same data for all.
type Type[S, M, R any] struct {
	// Name names the type in the cluster and in the store: 1 to 255 bytes of UTF-8, none of them zero. Handlers of other
	// types send by it.
	Name Name[M]
	// Store keeps the entities.
	Store store.Store
	// Handle handles one message: it changes tx.State, and what it leaves there is committed before the R answers the ask.
	// An error answers the ask and writes nothing of this message; a panic does too, and is one as in any handler. It may
	// block, as a Blocking handler; messages of one entity come one at a time. What it does beside tx.State, as a message
	// to another entity, is done at once, whatever becomes of the commit.
	Handle func(tx *Tx[S], m *M) (R, error)
	// Reminded, if not nil, handles one reminder of an entity (Tx.Remind), by its name and body, which is its own: it may
	// do what Handle may. The reminder is gone with what it leaves: its effect is had once, though late, and though a
	// crash may have it called again before that is stored. After an error or a panic it is called again, after 1 s and
	// then ever longer rests, up to a minute. Shards of a type that has it get homes though nobody sends.
	Reminded func(tx *Tx[S], name string, body []byte) error
	// ReminderRate is how many reminders of one shard are begun in a second, at most, the oldest ones first: after an
	// outage all come that were due meanwhile. Zero means 100; at most 1,048,576.
	ReminderRate int
	// State, Message and Reply encode and decode; nil: as JSON. What Message leaves of its bytes in an M is valid until
	// the handler returns, as those are: tx.State must not keep it.
	State   kith.Codec[S]
	Message kith.Codec[M]
	Reply   kith.Codec[R]
	// Schema numbers the form of S: 0 to 2,147,483,647. Records that are written have it. One of a higher number is not
	// read: the ask gets ErrRecord.
	Schema uint32
	// Upgrade makes a state of Schema of one that an earlier schema has encoded; nil: State reads it as it is. It is
	// written with the entity's next change. It is a pure function, called by any goroutine.
	Upgrade func(schema uint32, state []byte) ([]byte, error)
	// Shards, Role, ShardBy, MaxActive and MailboxBytes are those of kith.EntityType. So is IdleAfter, but that zero means
	// DefaultIdleAfter, for what an entity holds is stored; negative: never.
	Shards       uint32
	Role         string
	ShardBy      kith.ShardBy
	IdleAfter    time.Duration
	MaxActive    int
	MailboxBytes int
	// MaxWaiting is at how many messages of one shard that wait for their commit no further one is handled; those wait in
	// the mailboxes of their entities, those of asks as long as somebody waits for the answer. Messages that are being
	// handled then come to it: one of each entity. Each may hold a state and a reply in memory. Zero means 4096.
	MaxWaiting int
	// MaxWaitingBytes is at how many bytes of records and replies that wait for their commits, of all shards of the type
	// on this node, no further message is handled of a shard of which some waits already. Zero means 64 MiB.
	MaxWaitingBytes int64
	// Logger takes a warning when the store does not answer, a record when it does again, and an error when it went back:
	// docs/logs.md. Nil is silent. Nobody waits for it, as for Config.Logger.
	Logger *slog.Logger
	// SeenFor is how long an entity remembers which messages it has had of its senders, and which keys (AskOnce). Messages
	// that handlers send (Name.Send) are given up at two thirds of it. Zero means 7 days; 1 s to a year. Clocks of nodes
	// must not differ by more than a third of it.
	SeenFor time.Duration
	// Undelivered, if not nil, is called, as a message to the sender is handled, for what it sent and that did not arrive:
	// the receiver's handler refused it, or it was given up. What it leaves in tx.State, and sends, is committed when u is
	// taken off the outbox. If it panics it is called again later.
	Undelivered func(tx *Tx[S], u *Undelivered)
	// Patience is how long one call of the store may take before it is given up and called again. Zero means 5 s; at most
	// an hour.
	Patience time.Duration

	now func() time.Time // the owner's clock; nil: that of its ground
}

// Entities asks and tells the entities of a type, and shows what is stored of those that live here. Its methods are
// safe for concurrent use.
type Entities[M, R any] struct {
	region  *kith.Region // nil: the node is none of package kith's
	line    ground.Line
	message kith.Codec[M]
	reply   kith.Codec[R]
	desk    *desk
}

// Register makes a type known to a node. The node does not close the store. Errors: kith.ErrBadConfig with all faults
// of t, and those of kith.Node.Register.
func Register[S, M, R any](node *kith.Node, t Type[S, M, R]) (*Entities[M, R], error) {
	t = t.withDefaults()
	if err := t.validate(); err != nil {
		return nil, fmt.Errorf("%w: durable type %q: %w", kith.ErrBadConfig, t.Name, err)
	}
	ctx, end := context.WithCancel(context.Background())
	d := t.desk(ctx, ground.Real{}, officeOf(node))
	region, err := node.Register(t.entityType(d))
	if err != nil {
		end()
		return nil, err
	}
	d.line = line{region}
	d.office.knowsType(d.name, counter{d.line, t.Message})
	close(d.registered)
	go func() {
		<-node.Done()
		end()
	}()
	return &Entities[M, R]{region, d.line, t.Message, t.Reply, d}, nil
}

// line is a region, as what stands on a node sees it.
type line struct{ *kith.Region }

// Ask implements ground.Line.
func (l line) Ask(ctx context.Context, headers []byte, id string, body []byte) ([]byte, error) {
	if len(headers) == 0 {
		return l.Region.Ask(ctx, id, body)
	}
	return l.With(headers).Ask(ctx, id, body)
}

// AskFunc implements ground.Line.
func (l line) AskFunc(headers []byte, d time.Duration, id string, body []byte, done func([]byte, error)) error {
	return l.With(headers).AskFunc(d, id, body, done)
}

// On makes a type known to a node that is none of package kith's. What it returns is registered there by the caller of
// it: package durabletest, for nodes of a simulated cluster, which are all that node may be. Errors are those of
// Register for what is wrong with t.
func On[S, M, R any](node any, t Type[S, M, R]) (*Entities[M, R], kith.EntityType, error) {
	n, ok := node.(ground.Node)
	if !ok {
		return nil, kith.EntityType{}, fmt.Errorf("%w: durable type %q: %T is no node", kith.ErrBadConfig, t.Name, node)
	}
	t = t.withDefaults()
	if err := t.validate(); err != nil {
		return nil, kith.EntityType{}, fmt.Errorf("%w: durable type %q: %w", kith.ErrBadConfig, t.Name, err)
	}
	kept := n.Kept()
	if *kept == nil {
		*kept = newOffice(n)
	}
	d := t.desk(context.Background(), n, (*kept).(*office))
	d.line = n.Line(d.name)
	d.office.knowsType(d.name, counter{d.line, t.Message})
	close(d.registered)
	return &Entities[M, R]{nil, d.line, t.Message, t.Reply, d}, t.entityType(d), nil
}

// desk is what the shards of the type share on the node of an office.
func (t Type[S, M, R]) desk(ctx context.Context, on ground.Ground, o *office) *desk {
	d := &desk{ctx: ctx, most: t.MaxWaiting, mostBytes: t.MaxWaitingBytes, keepers: map[kith.ShardID]*keeper{},
		trouble:    trouble{log: t.Logger, typ: string(t.Name), patience: t.Patience},
		agendas:    map[kith.ShardID]ownAgenda{},
		registered: make(chan struct{}), now: t.now, rate: t.ReminderRate,
		mailroom: mailroom{store: t.Store, ground: on, name: string(t.Name), patience: t.Patience, seen: t.SeenFor,
			office: o, mails: map[kith.ShardID]*mail{}}}
	if d.now == nil {
		d.now = on.Wall
	}
	d.claimed = d.owns
	return d
}

// withDefaults returns t with zero fields replaced by their defaults.
func (t Type[S, M, R]) withDefaults() Type[S, M, R] {
	if t.State == nil {
		t.State = kith.JSON[S]()
	}
	if t.Message == nil {
		t.Message = kith.JSON[M]()
	}
	if t.Reply == nil {
		t.Reply = kith.JSON[R]()
	}
	if t.MaxWaiting == 0 {
		t.MaxWaiting = DefaultMaxWaiting
	}
	if t.ReminderRate == 0 {
		t.ReminderRate = DefaultReminderRate
	}
	if t.MaxWaitingBytes == 0 {
		t.MaxWaitingBytes = DefaultMaxWaitingBytes
	}
	t.Logger, _ = logs.Behind(t.Logger)
	if t.Patience == 0 {
		t.Patience = DefaultPatience
	}
	if t.SeenFor == 0 {
		t.SeenFor = DefaultSeenFor
	}
	return t
}

// validate returns all faults of t joined that kith.EntityType.Validate does not find.
func (t Type[S, M, R]) validate() error {
	var errs []error
	if !utf8.ValidString(string(t.Name)) {
		errs = append(errs, errors.New("Name is no UTF-8"))
	}
	if err := store.CheckShard(store.Shard{Type: string(t.Name)}, route.MakeFence(1, 1, 1)); err != nil {
		errs = append(errs, err)
	}
	if t.Store == nil {
		errs = append(errs, errors.New("Store is nil"))
	}
	if t.Handle == nil {
		errs = append(errs, errors.New("Handle is nil"))
	}
	if t.Schema > 1<<31-1 {
		errs = append(errs, fmt.Errorf("Schema is %d, must be at most 2147483647", t.Schema))
	}
	if t.MaxWaiting < 1 {
		errs = append(errs, fmt.Errorf("MaxWaiting is %d, must be at least 1", t.MaxWaiting))
	}
	if t.ReminderRate < 1 || t.ReminderRate > mostReminderRate {
		errs = append(errs, fmt.Errorf("ReminderRate is %d, must be 1 to %d", t.ReminderRate, mostReminderRate))
	}
	if t.MaxWaitingBytes < 1 {
		errs = append(errs, fmt.Errorf("MaxWaitingBytes is %d, must be at least 1", t.MaxWaitingBytes))
	}
	if t.Patience < 0 || t.Patience > maxPatience {
		errs = append(errs, fmt.Errorf("Patience is %v, must be at most %v", t.Patience, maxPatience))
	}
	if t.SeenFor < leastSeenFor || t.SeenFor > mostSeenFor {
		errs = append(errs, fmt.Errorf("SeenFor is %v, must be %v to %v", t.SeenFor, leastSeenFor, mostSeenFor))
	}
	return errors.Join(errs...)
}

// entityType is the type that durable entities are of.
func (t Type[S, M, R]) entityType(d *desk) kith.EntityType {
	return kith.EntityType{Name: string(t.Name), StateStored: true, Hosted: t.hosted(d),
		Shards: t.Shards, Role: t.Role, ShardBy: t.ShardBy,
		IdleAfter: cmp.Or(t.IdleAfter, DefaultIdleAfter),
		MaxActive: t.MaxActive, MailboxBytes: t.MailboxBytes, MaxState: MaxState + handedMost,
		New: func(string, kith.Fence) kith.Handler { return &instance[S, M, R]{t: &t, d: d} }}
}

// hosted is what each shard does beside its entities, as long as it lives here.
func (t Type[S, M, R]) hosted(d *desk) func(context.Context, kith.ShardID, kith.Fence) {
	if t.Reminded == nil {
		return d.sends
	}
	return func(ctx context.Context, s kith.ShardID, f kith.Fence) {
		both := ground.Crew{On: d.ground}
		both.Go(func() { d.sends(ctx, s, f) })
		d.reminds(ctx, s, f)
		both.Wait()
	}
}

// Ask sends m to an entity and waits for what its handler returns, which comes when what the handler left is committed.
// kith.MayHaveRun says of an error whether the message may have had its effect. Errors, beside those of Region.Ask:
//
//   - ErrRejected: the handler returned an error; it has its text. Nothing of the message was written.
//   - ErrLost: the shard has another owner by now.
//   - ErrBusy: too many messages of the shard wait for the store.
//   - ErrAway: the store does not answer, so the entity could not begin.
//   - ErrRecord: what is stored cannot be read.
//   - ErrTooLarge: the state that the handler left has more than MaxState bytes, or what it sent is too large. Nothing
//     was written.
//   - ErrOutboxFull, ErrNoType: the handler sent what can not be taken. Nothing was written.
//   - store.ErrStoreWentBack: the store has lost what it had reported as written: the type is stopped (Err).
func (e *Entities[M, R]) Ask(ctx context.Context, id string, m *M) (r R, err error) {
	return e.ask(ctx, nil, id, m)
}

// ask is Ask with headers.
func (e *Entities[M, R]) ask(ctx context.Context, headers []byte, id string, m *M) (r R, err error) {
	b, err := e.message.Append(nil, m)
	if err != nil {
		return r, route.NotRun(fmt.Errorf("%w: %w", kith.ErrBadPayload, err))
	}
	if b, err = e.line.Ask(ctx, headers, id, b); err != nil {
		return r, err
	}
	b, err = answered(b)
	if err != nil {
		return r, err
	}
	if err := e.reply.ParseInto(b, &r); err != nil {
		return r, route.Ran(fmt.Errorf("%w: %w", kith.ErrBadPayload, err))
	}
	return r, nil
}

// AskOnce is Ask for a message that may be repeated: all asks of an entity with one key have their effect once, and get
// the same reply, on whatever owner, for as long as the type's SeenFor. So a caller that gets an error that leaves open
// whether the message has had its effect asks again with the same key. A message that is refused (ErrRejected) leaves
// no key. key has 1 to MaxKey bytes, else ErrBadKey. Errors, beside those of Ask:
//
//   - ErrKeyUsed: the entity has had another message with this key: nothing was done by this one.
//   - ErrKeysFull: it remembers MaxKeys keys. Nothing was done.
//   - ErrTooLarge: the reply has more than MaxKeptReply bytes. Nothing was written.
func (e *Entities[M, R]) AskOnce(ctx context.Context, key, id string, m *M) (r R, err error) {
	if key == "" || len(key) > MaxKey {
		return r, route.NotRun(fmt.Errorf("%w: a key of %d bytes, must have 1 to %d", ErrBadKey, len(key), MaxKey))
	}
	return e.ask(ctx, (&note{kind: kindKey, from: key}).append(nil), id, m)
}

// Tell sends m to an entity, as kith.Region.Tell does: at most once, and nobody hears what comes of it.
func (e *Entities[M, R]) Tell(id string, m *M) error {
	b, err := e.message.Append(nil, m)
	if err != nil {
		return route.NotRun(fmt.Errorf("%w: %w", kith.ErrBadPayload, err))
	}
	return e.line.Tell(id, b)
}

// Region returns the region of the entities, with messages of bytes; nil in a simulated cluster.
func (e *Entities[M, R]) Region() *kith.Region { return e.region }

// Err returns why this node has stopped the type for good, or nil: store.ErrStoreWentBack. All its messages get that
// error here until the process begins anew, when somebody has looked at the store.
func (e *Entities[M, R]) Err() error {
	if err := e.desk.stopped.Load(); err != nil {
		return *err
	}
	return nil
}

// Stats are figures of a type on this node since it was registered.
type Stats struct {
	Commits  uint64 // that succeeded
	Writes   uint64 // of them: records
	Messages uint64 // that had their effect
	Unknown  uint64 // calls of Commit with an unknown outcome: each was called again
	Fenced   uint64 // shards that were found to have another owner

	Reminded        uint64 // reminders that were handled, though not all of it may be stored
	RemindersFailed uint64 // times that Reminded failed, or left what cannot be stored: each comes again

	Arrived     uint64 // messages that handlers sent and that were handled
	Resent      uint64 // times that one was to be sent again
	Undelivered uint64 // messages that were refused by their receivers, or given up

	Waiting      int   // messages that wait for their commits now
	WaitingBytes int64 // of records and replies that they hold
	Failing      int   // shards that wait now for a store that does not answer
	StoreError   error // what the store said last to one of them; nil while Failing is 0
}

// Stats returns the figures.
func (e *Entities[M, R]) Stats() Stats {
	d := e.desk
	s := Stats{Commits: d.commits.Load(), Writes: d.writes.Load(), Messages: d.messages.Load(), Unknown: d.unknown.Load(),
		Fenced: d.fenced.Load(), Reminded: d.reminded.Load(), RemindersFailed: d.remindersFailed.Load(),
		Waiting: int(d.waiting.Load()), WaitingBytes: d.bytes.Load()}
	s.Arrived, s.Resent, s.Undelivered = d.arrived.Load(), d.resent.Load(), d.undelivered.Load()
	s.Failing, s.StoreError = d.trouble.now(d.ground.Now())
	return s
}

// desk is what the shards of one type on one node share.
type desk struct {
	ctx       context.Context // ends with the node
	most      int
	mostBytes int64
	trouble   trouble
	mailroom

	waiting, bytes atomic.Int64 // messages that wait for their commits, and what they hold

	commits, writes, messages, unknown, fenced atomic.Uint64

	registered                chan struct{} // closed when line is there
	line                      ground.Line
	now                       func() time.Time
	rate                      int
	reminded, remindersFailed atomic.Uint64

	mu      sync.Mutex
	keepers map[kith.ShardID]*keeper
	agendas map[kith.ShardID]ownAgenda
}

// keeper returns that of a shard under a fence.
func (d *desk) keeper(s kith.ShardID, f kith.Fence) *keeper {
	d.mu.Lock()
	defer d.mu.Unlock()
	k := d.keepers[s]
	if k == nil || k.fence.Compare(f) < 0 || k.fence == f && k.over() {
		k = newKeeper(d, store.Shard{Type: d.name, N: s}, f)
		d.keepers[s] = k
	}
	if k.fence != f { // this instance lives on beside its successor's shard
		return nil
	}
	return k
}

// stop stops the type.
func (d *desk) stop(err error) {
	if d.stopped.CompareAndSwap(nil, &err) {
		d.trouble.log.Error("the store of a durable type went back: the type is stopped on this node", "type", d.name,
			"error", err)
	}
}
