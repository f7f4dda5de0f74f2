// Queues: what a user declares, and what sends to it and looks after its dead letters.

// Package delivery brings messages to entities that keep no state in a store: a queue keeps each message in a store
// until its receiver has acknowledged it, delivers it again after longer and longer rests, and makes a dead letter of
// one that is refused too often: docs/delivery.md.
package delivery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/internal/base/ground"
	"github.com/kith-io/kith/internal/base/logs"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/store"
)

// Defaults and bounds of a Queue.
const (
	DefaultShards      = 16
	DefaultMaxMessages = 10_000
	DefaultMaxBytes    = 8 << 20
	DefaultMaxDead     = 10_000
	DefaultMaxTries    = 10
	DefaultMaxAge      = 24 * time.Hour
	DefaultRetryFirst  = 100 * time.Millisecond
	DefaultRetryMost   = 30 * time.Second
	DefaultAckTime     = 10 * time.Second
	DefaultWindow      = 16
	DefaultPatience    = 5 * time.Second

	maxShards  = 1024
	maxOf      = 1 << 20 // messages, dead letters, tries
	maxBytes   = 1 << 30
	maxTime    = 365 * 24 * time.Hour
	maxWindow  = mostUnderWay
	typePrefix = "delivery/" // the name of a queue's type begins so, in the cluster and in the store
	maxName    = 255 - len(typePrefix)

	mailbox = 8 << 20 // bytes of requests that wait for one shard
)

// Queue declares a queue. Name, To and Store are needed. Name, Shards and Role must agree on all nodes; Store is the
// same data for all.
type Queue struct {
	// Name names the queue in the cluster and in the store: 1 to 246 bytes of UTF-8, none of them zero. The type of its
	// entities, which own its shards, is "delivery/" and the name.
	Name string
	// To is the region of the type that messages are for, which Consumer made.
	To *kith.Region
	// Store keeps the messages. The node does not close it.
	Store store.Store
	// Shards is how many shards receivers are spread over: 1 to 1024; zero means 16. Each is written by one commit after
	// the other. It must not change while messages wait.
	Shards uint32
	// Role limits the nodes that own shards to members with this role; empty means all.
	Role string
	// MaxMessages and MaxBytes bound what waits in one shard, which its owner has in memory: with more, Send returns
	// ErrFull. A message counts with its payload, its receiver's id and 128 bytes. Zero means 10,000 and 8 MiB; at most
	// 1,048,576 and 1 GiB. A message is taken, however large, where none waits.
	MaxMessages int
	MaxBytes    int64
	// MaxDead bounds the dead letters of one shard: with so many, what would become one more stays where it is, is
	// delivered again every RetryMost, and holds up its receiver's other messages. Zero means 10,000; at most 1,048,576.
	MaxDead int
	// MaxTries is how often a receiver may refuse a message before it is a dead letter, as one owner of the queue counts.
	// Zero means 10; at most 1,048,576.
	MaxTries int
	// MaxAge is from which age on a message is a dead letter when one more delivery fails, for whatever reason. Zero means
	// a day; at most a year.
	MaxAge time.Duration
	// RetryFirst is how long a message rests after a delivery that failed; it doubles up to RetryMost, and half of each
	// rest is left to chance. Zero means 100 ms and 30 s; RetryMost at most a year.
	RetryFirst, RetryMost time.Duration
	// AckTime is how long an acknowledgement is waited for before a message is delivered again, the time in the receiver's
	// mailbox included. Zero means 10 s; at most a year.
	AckTime time.Duration
	// Window is how many messages to one receiver are on their way at once: 1 to 256; zero means 16.
	Window int
	// Patience is how long one call of the store may take before it is given up and called again. Send returns ErrAway for
	// a store that does not answer after two or three times as long. Zero means 5 s; at most a year.
	Patience time.Duration
	// Logger takes a warning when the store does not answer, a record when it does again, and errors for what went back or
	// cannot be read: docs/logs.md. Nil is silent. Nobody waits for it.
	Logger *slog.Logger
}

// withDefaults returns q with zero fields replaced by their defaults.
func (q Queue) withDefaults() Queue {
	q.Shards = cmp.Or(q.Shards, DefaultShards)
	q.MaxMessages = cmp.Or(q.MaxMessages, DefaultMaxMessages)
	q.MaxBytes = cmp.Or(q.MaxBytes, DefaultMaxBytes)
	q.MaxDead = cmp.Or(q.MaxDead, DefaultMaxDead)
	q.MaxTries = cmp.Or(q.MaxTries, DefaultMaxTries)
	q.MaxAge = cmp.Or(q.MaxAge, DefaultMaxAge)
	q.RetryFirst = cmp.Or(q.RetryFirst, DefaultRetryFirst)
	q.RetryMost = cmp.Or(q.RetryMost, max(DefaultRetryMost, q.RetryFirst))
	q.AckTime = cmp.Or(q.AckTime, DefaultAckTime)
	q.Window = cmp.Or(q.Window, DefaultWindow)
	q.Patience = cmp.Or(q.Patience, DefaultPatience)
	q.Logger, _ = logs.Behind(q.Logger)
	return q
}

// Validate returns all faults of q joined, or nil. Zero fields have their defaults. To is not looked at.
func (q Queue) Validate() error {
	q = q.withDefaults()
	var errs []error
	fault := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if q.Name == "" || len(q.Name) > maxName || !utf8.ValidString(q.Name) {
		fault("Name has %d bytes, must have 1 to %d, of UTF-8", len(q.Name), maxName)
	} else if err := store.CheckShard(store.Shard{Type: typePrefix + q.Name}, route.MakeFence(1, 1, 1)); err != nil {
		errs = append(errs, err)
	}
	if q.Store == nil {
		fault("Store is nil")
	}
	for _, n := range []struct {
		name     string
		is, most int64
	}{{"Shards", int64(q.Shards), maxShards}, {"MaxMessages", int64(q.MaxMessages), maxOf},
		{"MaxBytes", q.MaxBytes, maxBytes}, {"MaxDead", int64(q.MaxDead), maxOf}, {"MaxTries", int64(q.MaxTries), maxOf},
		{"Window", int64(q.Window), maxWindow}} {
		if n.is < 1 || n.is > n.most {
			fault("%s is %d, must be 1 to %d", n.name, n.is, n.most)
		}
	}
	for _, d := range []struct {
		name string
		is   time.Duration
	}{{"MaxAge", q.MaxAge}, {"RetryFirst", q.RetryFirst}, {"RetryMost", q.RetryMost}, {"AckTime", q.AckTime},
		{"Patience", q.Patience}} {
		if d.is < time.Millisecond || d.is > maxTime {
			fault("%s is %v, must be 1 ms to %v", d.name, d.is, maxTime)
		}
	}
	if q.RetryMost < q.RetryFirst {
		fault("RetryMost is %v, below RetryFirst, %v", q.RetryMost, q.RetryFirst)
	}
	return errors.Join(errs...)
}

// Register makes a queue known to a node: members with its role own its shards, and each node that has registered it
// can send by it. Errors: kith.ErrBadConfig with all faults of q, and those of kith.Node.Register.
func Register(node *kith.Node, q Queue) (*Producer, error) {
	err := q.Validate()
	if q.To == nil {
		err = errors.Join(err, errors.New("To is nil"))
	}
	if err != nil {
		return nil, fmt.Errorf("%w: queue %q: %w", kith.ErrBadConfig, q.Name, err)
	}
	ctx, end := context.WithCancel(context.Background())
	d := q.withDefaults().desk(ctx, ground.Real{}, line{q.To})
	region, err := node.Register(q.entityType(d))
	if err != nil {
		end()
		return nil, err
	}
	d.line = line{region}
	go func() {
		<-node.Done()
		end()
	}()
	return &Producer{d, q.withDefaults().Shards}, nil
}

// On makes a queue known to a node that is none of package kith's; to names the type that messages are for. What it
// returns is registered there by its caller: package durabletest, for nodes of a simulated cluster, which are all
// that node may be. Errors are those of Register for what is wrong with q.
func On(node any, to string, q Queue) (*Producer, kith.EntityType, error) {
	n, ok := node.(ground.Node)
	if !ok {
		return nil, kith.EntityType{}, fmt.Errorf("%w: queue %q: %T is no node", kith.ErrBadConfig, q.Name, node)
	}
	if err := q.Validate(); err != nil {
		return nil, kith.EntityType{}, fmt.Errorf("%w: queue %q: %w", kith.ErrBadConfig, q.Name, err)
	}
	q = q.withDefaults()
	d := q.desk(context.Background(), n, n.Line(to))
	d.line = n.Line(d.typ)
	return &Producer{d, q.Shards}, q.entityType(d), nil
}

// line is a region, as what stands on a node sees it.
type line struct{ *kith.Region }

// Ask implements ground.Line.
func (l line) Ask(ctx context.Context, headers []byte, id string, body []byte) ([]byte, error) {
	return l.With(headers).Ask(ctx, id, body)
}

// AskFunc implements ground.Line.
func (l line) AskFunc(headers []byte, d time.Duration, id string, body []byte, done func([]byte, error)) error {
	return l.With(headers).AskFunc(d, id, body, done)
}

// desk is what the shards of the queue share on a node.
func (q Queue) desk(ctx context.Context, on ground.Ground, to ground.Line) *desk {
	return &desk{ctx: ctx, ground: on, store: q.Store, name: q.Name, typ: typePrefix + q.Name, log: q.Logger, to: to,
		limits: limits{messages: q.MaxMessages, dead: q.MaxDead, tries: q.MaxTries, window: q.Window, bytes: q.MaxBytes,
			age: q.MaxAge, retryFirst: q.RetryFirst, retryMost: q.RetryMost, ack: q.AckTime, patience: q.Patience},
		ledgers: map[kith.ShardID]*ledger{}}
}

// entityType is the type of the entities that own the shards: one for each, which has the shard's number as its id.
func (q Queue) entityType(d *desk) kith.EntityType {
	shards := q.withDefaults().Shards
	return kith.EntityType{Name: d.typ, Shards: shards, Role: q.Role, Hosted: d.hosts, MailboxBytes: mailbox,
		IdleAfter: time.Minute,
		ShardBy: kith.ShardBy{Name: "delivery", Of: func(id string) kith.ShardID {
			n, err := strconv.ParseUint(id, 10, 32)
			if err != nil {
				return kith.ShardID(shards) // none
			}
			return kith.ShardID(n)
		}},
		New: func(string, kith.Fence) kith.Handler { return owner{d} }}
}

// owner is the entity of a shard.
type owner struct{ d *desk }

// Stop waits until what the shard has taken is stored, so that the asker hears of it before the next owner claims.
func (o owner) Stop(c *kith.Context) {
	if l := o.d.ledger(c.Shard, c.Fence); l != nil {
		l.settles(c.Context())
	}
}

// Receive takes a request.
func (o owner) Receive(c *kith.Context, payload []byte) error {
	if !c.Asked() {
		return kith.ErrNoAsk
	}
	if failed := o.takes(c, payload); failed != nil {
		return c.Reply(failed.answer())
	}
	return nil
}

// takes does a request, or says why not.
func (o owner) takes(c *kith.Context, payload []byte) *failure {
	q, err := parseRequest(payload)
	if err != nil {
		return fails(codeBad, err)
	}
	if failed := o.d.ended(); failed != nil {
		return failed
	}
	l := o.d.ledger(c.Shard, c.Fence)
	if l == nil {
		return fails(codeLost, nil)
	}
	at := &op{request: q, kind: kinds[q.verb], asked: true}
	if q.verb == verbSend {
		at.m = &message{letter: letter{to: q.to, made: o.d.ground.Wall().UnixMilli(), body: q.body}}
	}
	return l.takes(at, c)
}

// kinds are what verbs begin with.
var kinds = map[verb]opKind{verbSend: opSend, verbList: opList, verbAgain: opFind, verbDiscard: opDrop}

// Producer sends by a queue, and looks after its dead letters, from any node that has registered it. Its methods are
// safe for concurrent use.
type Producer struct {
	d      *desk
	shards uint32
}

// Send has payload, of at most MaxPayload bytes, delivered to the entity id, and returns when it is stored. From then
// on it waits, is acknowledged, or is a dead letter. Messages to one receiver are delivered in the order in which they
// were stored: those of one goroutine in the order of its calls. Send blocks as kith.Region.Ask does, until ctx ends.
// kith.MayHaveRun says of an error whether the message may be stored all the same. Errors, beside those of Region.Ask:
// ErrFull, ErrTooLarge, ErrAway, ErrLost, kith.ErrBadID, and store.ErrStoreWentBack (Err).
func (p *Producer) Send(ctx context.Context, id string, payload []byte) error {
	if err := route.CheckID(id); err != nil {
		return route.NotRun(err)
	}
	if len(payload) > MaxPayload {
		return route.NotRun(fmt.Errorf("%w: %d bytes, must have at most %d", ErrTooLarge, len(payload), MaxPayload))
	}
	_, err := p.asks(ctx, kith.ShardOf(id, p.shards), &request{verb: verbSend, to: id, body: payload})
	return err
}

// asks asks the owner of a shard.
func (p *Producer) asks(ctx context.Context, s kith.ShardID, q *request) ([]byte, error) {
	b, err := p.d.line.Ask(ctx, nil, strconv.FormatUint(uint64(s), 10), q.append(nil))
	if err != nil {
		return nil, err
	}
	return answered(b)
}

// Dead returns a page of the dead letters, at most most of them, 1 to MaxPage, those behind after, and the Place behind
// which the next page begins: zero when there is none. A page may be shorter than most though others follow, and empty.
// What becomes a dead letter meanwhile may be left out.
func (p *Producer) Dead(ctx context.Context, after Place, most int) (page []Letter, next Place, err error) {
	if most < 1 || most > MaxPage || uint32(after.Shard) >= p.shards {
		return nil, Place{}, route.NotRun(fmt.Errorf("%w: a page of %d letters of shard %d, must be 1 to %d, of %d shards",
			kith.ErrBadPayload, most, after.Shard, MaxPage, p.shards))
	}
	size := 0
	for s := after; ; s = (Place{Shard: s.Shard + 1}) {
		b, err := p.asks(ctx, s.Shard, &request{verb: verbList, number: s.Number, most: most - len(page)})
		if err != nil {
			return nil, Place{}, err
		}
		more, list, err := parsePage(b, s.Shard)
		if err != nil {
			return nil, Place{}, fmt.Errorf("%w: %w", kith.ErrBadPayload, err)
		}
		page = append(page, list...)
		size += len(b)
		switch {
		case more && len(list) > 0:
			return page, list[len(list)-1].Place, nil
		case uint32(s.Shard)+1 == p.shards:
			return page, Place{}, nil
		case len(page) == most || len(page) > 0 && size >= pageBytes:
			return page, Place{Shard: s.Shard + 1}, nil
		}
	}
}

// SendAgain makes a dead letter the last message to its receiver, in one commit. ErrNoLetter if there is none, or not
// any more; the other errors are those of Send.
func (p *Producer) SendAgain(ctx context.Context, at Place) error {
	return p.digs(ctx, at, verbAgain)
}

// Discard takes a dead letter away for good. Errors are those of SendAgain.
func (p *Producer) Discard(ctx context.Context, at Place) error { return p.digs(ctx, at, verbDiscard) }

// digs has something done with a dead letter.
func (p *Producer) digs(ctx context.Context, at Place, v verb) error {
	if uint32(at.Shard) >= p.shards {
		return route.NotRun(fmt.Errorf("%w: shard %d of %d", ErrNoLetter, at.Shard, p.shards))
	}
	_, err := p.asks(ctx, at.Shard, &request{verb: v, number: at.Number})
	return err
}

// Err returns why this node has stopped the queue for good, or nil: store.ErrStoreWentBack. All that it owns of the
// queue returns that error until the process begins anew, when somebody has looked at the store.
func (p *Producer) Err() error {
	if err := p.d.stopped.Load(); err != nil {
		return *err
	}
	return nil
}

// Stats are figures of a queue on this node, for the shards that it owns or owned, since it was registered.
type Stats struct {
	Stored    uint64 // messages that were stored
	Acked     uint64 // that their receivers have acknowledged
	Had       uint64 // of them: handled by their receiver before
	Refused   uint64 // deliveries that ended with an error of the handler, or a panic
	Unheard   uint64 // deliveries without an answer: nobody had the receiver, or it did not say in time
	Gaps      uint64 // deliveries that came before an earlier message was handled
	Dead      uint64 // messages that became dead letters
	Again     uint64 // dead letters that were sent again
	Discarded uint64 // dead letters that were taken away
	DeadFull  uint64 // times that there was no room for one more dead letter
	Full      uint64 // requests that were refused since the queue was full

	Commits    uint64 // that succeeded
	Writes     uint64 // of them: records
	Unknown    uint64 // calls of Commit with an unknown outcome: each was called again
	Fenced     uint64 // shards that were found to have another owner
	Unreadable uint64 // messages that were found and could not be read: they stay in the store

	Waiting      int   // messages that wait now
	WaitingBytes int64 // of them
	DeadNow      int   // dead letters that there are now
	Failing      int   // shards that wait now for a store that does not answer
	StoreError   error // what it said last to one of them; nil while Failing is 0
}

// Stats returns the figures.
func (p *Producer) Stats() Stats {
	d := p.d
	s := Stats{Stored: d.stored.Load(), Acked: d.acked.Load(), Had: d.had.Load(), Refused: d.refused.Load(),
		Unheard: d.unheard.Load(), Gaps: d.gaps.Load(), Dead: d.buried.Load(), Again: d.again.Load(),
		Discarded: d.discarded.Load(), DeadFull: d.deadFull.Load(), Full: d.full.Load(), Commits: d.commits.Load(),
		Writes: d.writes.Load(), Unknown: d.unknown.Load(), Fenced: d.fenced.Load(), Unreadable: d.unreadable.Load()}
	d.mu.Lock()
	all := make([]*ledger, 0, len(d.ledgers))
	for _, l := range d.ledgers { // they are summed
		all = append(all, l)
	}
	d.mu.Unlock()
	for _, l := range all {
		messages, bytes, dead := l.waiting()
		s.Waiting += messages
		s.WaitingBytes += bytes
		s.DeadNow += dead
	}
	s.Failing, s.StoreError = d.failing()
	return s
}
