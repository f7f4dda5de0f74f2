// Region: sending to the entities of one type.

package kith

import (
	"context"
	"time"

	"github.com/kith-io/kith/internal/runtime/driver"
	"github.com/kith-io/kith/route"
)

// Region sends to the entities of one type, wherever they live. All methods are safe for concurrent use; messages from
// one goroutine to one entity keep their order.
type Region struct {
	r    *driver.Region
	with *driver.Headers // nil: none
}

// With returns the region for messages that go with headers: bytes beside the payload that mean something to the
// application alone, such as a trace or a tenant, at most 4 KiB of them. They reach the handler (Context.Headers)
// wherever it is, also of messages that wait and of large ones; they go with no answer, and no further by themselves. A
// node of an older version (before wire version 4) gets the message without them. They are copied when a message is
// sent, and must not change meanwhile. A message with more is refused with *HeadersError, which matches ErrTooLarge.
// With costs nothing but its result; none, nil or empty, is the region without.
func (r *Region) With(headers []byte) *Region {
	if len(headers) == 0 {
		return &Region{r: r.r}
	}
	return &Region{r.r, &driver.Headers{B: headers}}
}

// Type returns the declaration of the region's type, defaults filled in.
func (r *Region) Type() EntityType { return r.r.Type() }

// Shard returns the shard of an entity id: by EntityType.ShardBy where the type has it, 1<<32-1 when that gives none.
func (r *Region) Shard(id string) ShardID { return r.r.Shard(id) }

// ShardOf returns the shard of an entity id in a type of so many shards, 1 to 1,048,576, that has no ShardBy. A store
// keeps it with each entity, so that EntityType.Remembered can list them by shard. It is the same on all nodes and in
// all versions.
func ShardOf(id string, shards uint32) ShardID { return route.ShardOf(id, shards) }

// Tell sends payload, which it copies, to the entity id. It never blocks: nil means accepted, an error that it was not
// (ErrLinkFull, ErrParkFull, ErrMailboxFull, ErrBadID, ErrTooLarge, ErrPeerLost, ErrStopped). What is accepted may
// still be lost with its receiver; Config.Undelivered says which losses it gets. Known remote homes cost no allocation.
func (r *Region) Tell(id string, payload []byte) error { return r.r.TellWith(r.with, id, payload) }

// TellWait is Tell that waits for room until ctx ends: on the way, in the mailbox of a Blocking entity wherever that
// lives, and in its node's budget. What it has accepted is not refused for a full mailbox (but by nodes of wire version
// 3 and earlier); a slow entity holds up its own callers and no others. When ctx ends first the error matches that of
// the bound (ErrLinkFull, ErrParkFull, ErrMailboxFull with a *RefusedError that names node and bound) and the
// context's. It may block; like Ask it looks where it is called before it does, and returns ErrWouldBlock in a handler
// that must not.
func (r *Region) TellWait(ctx context.Context, id string, payload []byte) error {
	return r.r.TellWaitWith(ctx, r.with, id, payload)
}

// TellBulk is TellWait for a payload that may be large (over Config.MaxPayload, up to Config.MaxMessage): it does not
// copy a large one, so the payload must not change until it returns, and it waits until the receiver's host has taken
// it. nil means that it has; an error that it was not, but for ErrPeerLost, when it is not known, and the end of ctx,
// which gives the message up: what of it was sent is dropped at both ends, unless its entity has it already. progress,
// if not nil, is called on the caller's goroutine, with how many of the payload's bytes have been sent, about every MiB
// and at the end.
//
// Tell, TellWait and the asks take large payloads too. They copy them, within Config.BulkBudget (an error that wraps
// ErrLinkFull above it), and do not wait for them to be sent.
func (r *Region) TellBulk(ctx context.Context, id string, payload []byte, progress func(sent, total int)) error {
	return r.r.TellBulkWith(ctx, r.with, id, payload, progress)
}

// Ask sends payload and waits for the reply, which belongs to the caller. It fails fast when there is no room. Beside
// the errors of Tell: ErrTimeout (wrapping the context's error), ErrHandler (with the text of the handler's error),
// ErrPanic, ErrNoReply, ErrNotOwner, ErrNotRegistered, ErrShardStopping, ErrPeerLost, ErrAsksFull.
//
// It blocks, so a handler of a Worker or Inline type must not call it: it would hold up its worker or event loop, with
// every entity and connection of that, and when the answer needs the same one, until the time limit. It looks, and
// returns ErrWouldBlock there, in functions of AskFunc and in hooks. Such code uses AskFunc; Blocking handlers use
// Context.Ask, which also refuses an entity's ask to itself.
//
// The handler of an Inline entity of this node may be called on the goroutine that asks, before Ask looks at ctx again;
// AskWithin does the same. So nobody may ask it under a lock that such a handler takes.
func (r *Region) Ask(ctx context.Context, id string, payload []byte) ([]byte, error) {
	return r.r.AskWith(ctx, r.with, id, payload)
}

// AskWithin is Ask with a time limit instead of a context. The reply is appended to into[:0] and returned; nothing is
// allocated when it fits. The limit is coarse: up to 20 ms late; with one that is not positive nothing is sent, and the
// error is ErrTimeout, as for AskFunc. Like Ask it blocks, but it does not look where it is called: a Worker or Inline
// handler that calls it is only reported, as Slow or Stalled.
func (r *Region) AskWithin(d time.Duration, id string, payload, into []byte) ([]byte, error) {
	return r.r.AskWithinWith(d, r.with, id, payload, into)
}

// AskFunc is Ask without a waiting goroutine: f is called exactly once, unless AskFunc itself returns an error and f is
// not called. f runs on the event loop or worker that got the answer: it must not block, and reply is valid only during
// the call. A failure that is found here, as a time limit or the loss of the node that was asked, comes on a goroutine
// of its own.
func (r *Region) AskFunc(d time.Duration, id string, payload []byte, f func(reply []byte, err error)) error {
	return r.r.AskFuncWith(d, r.with, id, payload, f)
}

// Home is where an entity lives, as this node knows it.
type Home struct {
	Shard   ShardID
	Node    ID        // zero: it is not known here, or the shard lives nowhere just now
	Here    bool      // it is this node
	Fence   Fence     // under which its shard lives there; zero with Node
	Since   time.Time // when this node learnt that; of one that is Here: since when its shard lives here; zero with Node
	Waiting int       // messages of this node that wait until the home is known
	// Activity is what goes on at an entity that is Here; nil elsewhere, where nobody but the owner knows it.
	Activity *Activity
}

// Activity is what goes on at an entity and in its shard.
type Activity struct {
	Entities uint64 // that live in its shard, idle ones included, up to a tenth of a second ago
	Handled  uint64 // messages that its shard has handled since it lives here, as old as that
	// The rest is of Blocking entities, which have a mailbox of their own; of others nil. Those share a worker or a loop,
	// which says nothing of one of them.
	Mailbox *Mailbox
}

// Mailbox is what waits for one Blocking entity.
type Mailbox struct {
	Lives   bool          // it has an instance, or messages for one
	Busy    bool          // its handler runs, or is about to
	Waiting int           // messages that no run has taken up
	Bytes   int           // of them, those that are being worked off included
	Idle    time.Duration // since it handled a message last; zero while it is busy
}

// Home says where an entity lives, as this node knows it: it asks nobody, blocks for nobody, and costs the node nothing
// but a look. A node learns the homes of shards that it sends to, or hosts; Report asks all. What it says may be over
// when it returns: decide by a Fence, never by this. Errors: ErrBadID, ErrBadShard, ErrSettingsDiffer, and that of a
// node that has ended.
func (r *Region) Home(id string) (Home, error) {
	f, err := driver.Find(id, r.r)
	if err != nil {
		return Home{}, err
	}
	h := Home{Shard: f.Shard, Node: f.Node, Here: f.Here, Fence: f.Fence, Waiting: f.Waiting}
	if !f.Node.IsZero() {
		h.Since = time.Now().Add(-f.Since)
	}
	if f.Here {
		h.Activity = &Activity{Entities: f.Entities, Handled: f.Handled}
	}
	if f.Looked {
		d := f.Doing
		h.Activity.Mailbox = &Mailbox{d.Lives, d.Busy, d.Waiting, d.Bytes, d.Idle}
	}
	return h, nil
}
