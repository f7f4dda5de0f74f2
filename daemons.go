// Workers on the members of a role: daemons, which are numbered and kept alive, each in one place; and pools, in which
// any worker may handle a message.

package kith

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/valyala/bytebufferpool"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/runtime/driver"
	"github.com/kith-io/kith/shard/strategy"
)

// Daemons declares N workers of one function, numbered from 0, that the cluster keeps alive, each in one place, spread
// over the members of a role and moved as shards are: docs/singletons.md. Name, N and Role must agree on all nodes. It
// needs Name, N and Run. Workers take no messages: a tell or ask to one is refused with ErrBadID where it lives.
type Daemons struct {
	// Name names them in the whole cluster, among types and singletons: 1 to 255 bytes.
	Name string
	// N is how many there are: 1 to MaxDaemons.
	N int
	// Role limits them to members with this role; empty means all.
	Role string
	// Run is the life of worker index. It is to return soon when ctx ends: the worker moves, the node leaves, ends, is
	// suspended or has lost it; context.Cause(ctx) says which, as for Context.Context. Until it has returned the worker
	// begins nowhere else, but where its node was lost, after the takeover time: so every store that it writes to is to be
	// given c.Fence, which grows from place to place. When Run returns, for whatever reason, it is called again after a
	// rest, as long as the worker lives here: what is to be done from time to time returns, and the rest is the time. An
	// error is a failure and goes to Config.Incident, unless ctx has ended; a panic always is one. c is valid on the
	// goroutine of the call, and sends to entities as that of a Blocking handler does; From sends on other goroutines.
	Run func(ctx context.Context, c *Context, index int) error
	// MinBackoff is the rest after Run has returned; it doubles with each failure that follows within MaxBackoff, up to
	// MaxBackoff. Zero means 1 s and 1 min; at most a day.
	MinBackoff, MaxBackoff time.Duration
}

// DaemonsRef shows the workers of one Daemons as this node sees them. Its methods are safe for concurrent use.
type DaemonsRef struct {
	region *driver.Region
	run    func(ctx context.Context, c *Context, index int) error

	mu   sync.Mutex
	here []DaemonStatus // of each index, what happened on this node
}

// DaemonStatus is one worker of a Daemons. But for Index and Home it is about this node alone.
type DaemonStatus struct {
	Index    int
	Home     ID        // where it lives; zero: nowhere, it moves, or this node does not know
	Running  bool      // Run is being called here
	Since    time.Time // since when, or when Run returned last; zero: it was never called here
	Fence    Fence     // of the last call
	Runs     uint64    // calls of Run
	Failures uint64    // of them, those that ended with an error before ctx, or with a panic
	Err      string    // of the last failure; "panic" for one
}

// Daemons makes workers known on this node: members with the role run them, every node that declared them sees where
// they live. Errors: ErrBadConfig with all faults of d; those of Register.
func (n *Node) Daemons(d Daemons) (*DaemonsRef, error) {
	t, k, err := d.Kept()
	if err != nil {
		return nil, err
	}
	ref := &DaemonsRef{run: d.Run, here: make([]DaemonStatus, d.N)}
	k.Run = ref.live
	ref.region, err = driver.RegisterKept(n.d, t, &driver.Keep{Keep: *k})
	if err != nil {
		return nil, differs(err)
	}
	return ref, nil
}

// errNoMessages is what is left for a message that came before the worker began: its shard refuses all others, at once,
// with ErrBadID.
var errNoMessages = errors.New("kith: a daemon takes no messages")

// noMessages is the handler of these.
type noMessages struct{}

// Receive refuses.
func (noMessages) Receive(*Context, []byte) error { return errNoMessages }

// Stop has nothing to do.
func (noMessages) Stop(*Context) {}

// Kept returns the type that daemons are, of one shard each, with one entity, and how these are kept alive: package sim
// takes it. The error has all faults.
func (d Daemons) Kept() (EntityType, *entity.Keep, error) {
	t := EntityType{Name: d.Name, Role: d.Role, Shards: 1, New: func(string, Fence) Handler { return noMessages{} },
		Strategy: strategy.LeastShards{Absolute: MaxDaemons, Percent: 100}} // few: all that move do so in one round
	err := backoff(&t, d.MinBackoff, d.MaxBackoff)
	if d.N < 1 || d.N > MaxDaemons {
		err = errors.Join(err, fmt.Errorf("N is %d, must be 1 to %d", d.N, MaxDaemons))
	} else {
		t.Shards = uint32(d.N)
	}
	k := &entity.Keep{ID: func(s ShardID) string { return strconv.Itoa(int(s)) },
		Run: func(ctx context.Context, c *Context) error { return d.Run(ctx, c, int(c.Shard)) }}
	if d.Run == nil {
		err = errors.Join(err, errors.New("Run is nil"))
	}
	return t, k, faults("daemons", t, err)
}

// live is one call of Run.
func (r *DaemonsRef) live(ctx context.Context, c *entity.Context) (err error) {
	i := int(c.Shard)
	r.mu.Lock()
	s := &r.here[i]
	s.Running, s.Since, s.Fence = true, time.Now(), c.Fence
	s.Runs++
	r.mu.Unlock()
	failure := "panic"
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		s.Running, s.Since = false, time.Now()
		if failure != "" {
			s.Failures++
			s.Err = failure
		}
	}()
	err = r.run(ctx, c, i)
	text := ""
	if err != nil && ctx.Err() == nil {
		text = err.Error() // user code: it may panic
	}
	failure = text
	return err
}

// Status returns all workers by index, as this node sees them. The slice is the caller's.
func (r *DaemonsRef) Status() []DaemonStatus {
	r.mu.Lock()
	list := append([]DaemonStatus(nil), r.here...)
	r.mu.Unlock()
	for i := range list {
		list[i].Index = i
		list[i].Home, _ = r.region.Home(ShardID(i))
	}
	return list
}

// Err returns why the cluster does not run these workers as they are declared here (ErrSettingsDiffer), or nil.
func (r *DaemonsRef) Err() error { return differs(r.region.Refused()) }

// differs says of which field of Daemons an error speaks that names both values.
func differs(err error) error {
	if errors.Is(err, ErrSettingsDiffer) {
		return fmt.Errorf("daemons must have one N and Role on all nodes, N is the number of shards: %w", err)
	}
	return err
}

// Defaults and bounds of a Pool.
const (
	DefaultPerNode  = 8
	MaxPerNode      = 1 << 10
	DefaultMaxNodes = 128
	MaxPoolNodes    = 10_000

	poolIdle = time.Minute
)

// Pool declares workers without a state of their own, of which any may handle a message: PerNode of them on every node
// of a role that declared the pool. A message goes to a worker of the node that sends it, as long as one has room, else
// to one of another node: docs/pools.md. Name, Role and MaxNodes must agree on all nodes. It needs Name, and New or
// Typed. A node without the role declares it to send to it.
type Pool struct {
	// Name names it in the whole cluster, among types, singletons and daemons: 1 to 255 bytes.
	Name string
	// Role limits its workers to members with this role; empty means all.
	Role string
	// PerNode is how many workers a node has, 1 to MaxPerNode, as the node that sends counts them: so many messages of
	// Blocking handlers are handled on one node at a time. It should agree on all nodes. Zero means 8. While a node comes
	// or goes another may have more for a moment.
	PerNode int
	// MaxNodes is how many nodes have workers at most: 1 to MaxPoolNodes; zero means 128. On more, some have none.
	MaxNodes int
	// Mode is how the handlers are executed; the zero value is Blocking.
	Mode Mode
	// New makes a worker when its first message comes, and again after a panic or a minute without a message. It gets one
	// call at a time. What it keeps from message to message it keeps for itself: the next message goes to another worker.
	New func() Handler
	// Typed takes the place of New for messages that are values, whose Type is Name; see EntityType.Typed.
	Typed Opener
	// MailboxBytes bounds what waits for one Blocking worker; see EntityType.MailboxBytes.
	MailboxBytes int
}

// PoolRef sends to the workers of a pool. Nothing is said of order: two messages may be handled by two workers at once.
// All methods are safe for concurrent use.
type PoolRef struct {
	p    *driver.Pool
	with *driver.Headers
}

// Register makes the pool known on a node: members with the role have workers, every node that declared it can send to
// them. Errors: ErrBadConfig with all faults of p; those of Node.Register.
func (p Pool) Register(n *Node) (*PoolRef, error) {
	t, perNode, err := p.Crew()
	if err != nil {
		return nil, err
	}
	r := driver.NewPool(t, perNode)
	if err := r.Register(n.d); err != nil {
		return nil, err
	}
	return &PoolRef{p: r}, nil
}

func (p Pool) workers() int {
	if p.PerNode == 0 {
		return DefaultPerNode
	}
	return p.PerNode
}

// Crew returns the type with the workers as its entities, of which each node gets some shards, and has its workers in
// these, and how many workers that are: package sim takes it. The error has all faults.
func (p Pool) Crew() (t EntityType, perNode int, err error) {
	t = EntityType{Name: p.Name, Role: p.Role, Shards: DefaultMaxNodes, Mode: p.Mode, MailboxBytes: p.MailboxBytes,
		IdleAfter: poolIdle, Strategy: strategy.LeastShards{Absolute: MaxPoolNodes, Percent: 100}}
	var errs []error
	if w := p.workers(); w < 1 || w > MaxPerNode {
		errs = append(errs, fmt.Errorf("PerNode is %d, must be 1 to %d", w, MaxPerNode))
	}
	switch {
	case p.MaxNodes < 0 || p.MaxNodes > MaxPoolNodes:
		errs = append(errs, fmt.Errorf("MaxNodes is %d, must be 1 to %d", p.MaxNodes, MaxPoolNodes))
	case p.MaxNodes > 0:
		t.Shards = uint32(p.MaxNodes)
	}
	t.Typed = p.Typed
	if p.New != nil {
		t.New = func(string, Fence) Handler { return p.New() }
	}
	return t, p.workers(), faults("pool", t, errors.Join(errs...))
}

// With returns the pool for messages that go with headers; see Region.With.
func (r *PoolRef) With(headers []byte) *PoolRef {
	if len(headers) == 0 {
		return &PoolRef{p: r.p}
	}
	return &PoolRef{r.p, &driver.Headers{B: headers}}
}

// Tell gives payload, which it copies, to a worker: of this node, or of another one where two here have no room. It
// never blocks: nil means accepted, an error that it was not. ErrNoHost: no member has the role; ErrMailboxFull and
// ErrLinkFull: two workers here and those of two other nodes have no room; else as Region.Tell. What is accepted may
// still be refused by another node with full mailboxes, or be lost with it: Config.Undelivered says so.
func (r *PoolRef) Tell(payload []byte) error { return r.p.TellWith(r.with, payload) }

// TellWait is Tell that waits for room until ctx ends; see Region.TellWait.
func (r *PoolRef) TellWait(ctx context.Context, payload []byte) error {
	return r.p.TellWaitWith(ctx, r.with, payload)
}

// Ask gives payload to a worker and waits for the reply, which belongs to the caller. Where a worker has certainly not
// handled it, being full or on a node that goes, the next one is asked, up to four in all. See Region.Ask.
func (r *PoolRef) Ask(ctx context.Context, payload []byte) ([]byte, error) {
	return r.p.AskWith(ctx, r.with, payload)
}

// AskWithin is Ask with a time limit instead of a context, for all workers together; see Region.AskWithin.
func (r *PoolRef) AskWithin(d time.Duration, payload, into []byte) ([]byte, error) {
	return r.p.AskWithinWith(d, r.with, payload, into)
}

// AskFunc is Ask without a waiting goroutine; see Region.AskFunc. It asks the next worker only where this node finds no
// room: a refusal by another node is the answer.
func (r *PoolRef) AskFunc(d time.Duration, payload []byte, f func(reply []byte, err error)) error {
	return r.p.AskFuncWith(d, r.with, payload, f)
}

// Workers returns how many workers messages of this node may go to, by node, this one included. A node that cannot be
// reached is absent, as is one that has no worker yet. The map is the caller's.
func (r *PoolRef) Workers() map[ID]int { return r.p.Workers() }

// Err returns why the cluster does not have this pool as it is declared here (ErrSettingsDiffer), or nil.
func (r *PoolRef) Err() error { return r.p.Region().Refused() }

// InPool returns the message over a pool, whose Name is Type: it has no id, any worker takes it.
func (m Message[M, R]) InPool(p *PoolRef) *TypedPool[M, R] { return &TypedPool[M, R]{p, m} }

// TypedPool is a Message over a pool (Message.InPool). All methods are safe for concurrent use.
type TypedPool[M, R any] struct {
	pool *PoolRef
	m    Message[M, R]
}

// Pool returns the untyped pool.
func (t *TypedPool[M, R]) Pool() *PoolRef { return t.pool }

// With is PoolRef.With: the typed pool for messages that go with headers, as those of a handler's Context.
func (t *TypedPool[M, R]) With(headers []byte) *TypedPool[M, R] {
	return t.m.InPool(t.pool.With(headers))
}

// Tell is PoolRef.Tell with a value; see Message.Tell.
func (t *TypedPool[M, R]) Tell(v *M) error {
	buf := bytebufferpool.Get()
	defer bytebufferpool.Put(buf)
	if err := t.m.encode(buf, v); err != nil {
		return err
	}
	return t.pool.Tell(buf.B)
}

// TellWait is PoolRef.TellWait with a value.
func (t *TypedPool[M, R]) TellWait(ctx context.Context, v *M) error {
	buf := bytebufferpool.Get()
	defer bytebufferpool.Put(buf)
	if err := t.m.encode(buf, v); err != nil {
		return err
	}
	return t.pool.TellWait(ctx, buf.B)
}

// Ask is PoolRef.Ask with values: the context says how long, not Message.Within. ErrBadPayload as for Message.Ask.
func (t *TypedPool[M, R]) Ask(ctx context.Context, v *M) (r R, err error) {
	buf := bytebufferpool.Get()
	defer bytebufferpool.Put(buf)
	if err := t.m.encode(buf, v); err != nil {
		return r, err
	}
	b, err := t.pool.Ask(ctx, buf.B)
	if err != nil {
		return r, err
	}
	return r, t.m.parse(b, &r)
}

// AskFunc is PoolRef.AskFunc with values; the reply is a value of f's own. It does not block, so handlers of every mode
// may call it.
func (t *TypedPool[M, R]) AskFunc(d time.Duration, v *M, f func(r R, err error)) error {
	buf := bytebufferpool.Get()
	defer bytebufferpool.Put(buf)
	if err := t.m.encode(buf, v); err != nil {
		return err
	}
	return t.pool.AskFunc(d, buf.B, t.m.answering(f))
}
