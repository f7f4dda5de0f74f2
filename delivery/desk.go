// Desks: what the shards of one queue on one node share.

package delivery

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/internal/base/ground"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/store"
)

// limits are those of a Queue.
type limits struct {
	messages, dead, tries, window int
	bytes                         int64
	age, retryFirst, retryMost    time.Duration
	ack, patience                 time.Duration
}

// desk is what the shards of a queue share.
type desk struct {
	limits
	ctx     context.Context // ends with the node
	ground  ground.Ground
	store   store.Store
	name    string // of the queue
	typ     string // of its entities, and in the store
	log     *slog.Logger
	line    ground.Line           // to the queue's owners
	to      ground.Line           // to its consumers
	stopped atomic.Pointer[error] // why nothing is done any more
	counters
	trouble trouble

	mu      sync.Mutex
	ledgers map[kith.ShardID]*ledger
}

// counters are what a desk counts.
type counters struct {
	stored, acked, had, refused, unheard, gaps, buried, again, discarded, deadFull, full, unreadable atomic.Uint64
	commits, writes, unknown, fenced                                                                 atomic.Uint64
}

// marks is how many numbers there are for each millisecond of the clock.
const marks = 1 << 19

// ledger returns that of a shard under a fence, nil when another owner has followed.
func (d *desk) ledger(s kith.ShardID, f kith.Fence) *ledger {
	d.mu.Lock()
	defer d.mu.Unlock()
	l := d.ledgers[s]
	if l == nil || l.fence.Compare(f) < 0 {
		l = newLedger(d, store.Shard{Type: d.typ, N: s}, f)
		d.ledgers[s] = l
	}
	if l.fence != f {
		return nil
	}
	return l
}

// ended returns why the queue is stopped on this node, nil if it is not.
func (d *desk) ended() *failure {
	switch err := d.stopped.Load(); {
	case err != nil:
		return fails(codeWentBack, *err)
	case d.ctx.Err() != nil:
		return fails(codeLost, nil)
	}
	return nil
}

// within is the context of one call of the store.
func (d *desk) within() (context.Context, context.CancelFunc) {
	return d.ground.Within(d.ctx, d.patience)
}

// spawn runs f beside its caller, which may hold locks.
func (d *desk) spawn(f func()) { d.ground.Begin(f) }

// begins returns a number that those of an owner before are below, as long as clocks do not go back: so numbers go on
// though the store was emptied.
func (d *desk) begins() uint64 {
	return uint64(min(max(d.ground.Wall().UnixMilli(), 0), 1<<42)) * marks
}

// write returns a write of one record: a message has its number as its first version, and a dead letter the next one.
func (d *desk) write(number, version uint64) store.Write {
	w := store.Write{Record: store.Record{ID: idOf(number), Version: version}}
	for w.Nonce == [16]byte{} {
		d.ground.Fill(w.Nonce[:])
	}
	return w
}

// stop stops the queue.
func (d *desk) stop(err error) {
	if d.stopped.CompareAndSwap(nil, &err) {
		d.log.Error("the store of a queue went back: the queue is stopped on this node", "queue", d.name, "error", err)
	}
}

// rest returns how long to wait behind so many failures.
func rest(g ground.Ground, first, most time.Duration, failures int) time.Duration {
	d := most
	if failures < 30 && first<<failures < most {
		d = first << failures
	}
	return d/2 + time.Duration(g.Chance(int64(d/2)+1))
}

// linesEvery is how soon a second line says that a store does not answer.
const linesEvery = time.Minute

// trouble is what a queue on one node knows of a store that does not answer. Methods are safe for concurrent use.
type trouble struct {
	mu     sync.Mutex
	shards map[route.ShardID]error
	line   time.Time
	told   bool
}

// fails notes that a call failed of which nobody knows whether it had its effect.
func (d *desk) fails(s route.ShardID, err error) {
	t, now := &d.trouble, d.ground.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.shards == nil {
		t.shards = map[route.ShardID]error{}
	}
	t.shards[s] = err
	if !t.told && now.Sub(t.line) >= linesEvery {
		t.told, t.line = true, now
		d.log.Warn("the store of a queue does not answer", "queue", d.name, "error", err, "shards", len(t.shards))
	}
}

// works notes that a call has had an answer, or that nobody calls any more.
func (d *desk) works(s route.ShardID) {
	t := &d.trouble
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, failed := t.shards[s]; !failed {
		return
	}
	if delete(t.shards, s); len(t.shards) == 0 && t.told {
		t.told = false
		d.log.Info("the store of a queue answers again", "queue", d.name)
	}
}

// failing returns how many shards wait for the store, and what it said last to one of them.
func (d *desk) failing() (n int, last error) {
	d.trouble.mu.Lock()
	defer d.trouble.mu.Unlock()
	for _, last = range d.trouble.shards { // any one will do
		break
	}
	return len(d.trouble.shards), last
}
