// Events: a stream per reader that begins with a snapshot, misses nothing, and is bounded (MEM-3).

package driver

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"sync/atomic"
	"time"

	"github.com/kith-io/kith/internal/base/feed"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/shard"
)

// Snapshot is the kind of an Event that carries a View from which a reader starts, or starts again.
const Snapshot membership.EventKind = 0

// Event is one change of membership, or a Snapshot.
type Event struct {
	membership.Event
	// View is the snapshot of the Snapshot, or the one that this change led to. Never nil.
	View *membership.View
	// Missed, in a Snapshot, says that the reader was too slow and changes before it were dropped.
	Missed bool
}

// String prints the event as one line.
func (e Event) String() string {
	switch {
	case e.Kind == Snapshot && e.Missed:
		return "snapshot (missed)"
	case e.Kind == Snapshot:
		return "snapshot"
	}
	return e.Event.String()
}

// broadcaster holds the current view and hands changes to every reader.
type broadcaster struct {
	view    atomic.Pointer[membership.View]
	members feed.Feed[Event]
	shards  feed.Feed[ShardEvent]
}

func newBroadcaster(first *membership.View) *broadcaster {
	b := &broadcaster{}
	b.view.Store(first)
	return b
}

// publish makes v current and hands out the events that led to it. A reader that has missed some gets v, which contains
// them all, those not handed out yet included.
func (b *broadcaster) publish(v *membership.View, events []membership.Event) {
	list := make([]Event, len(events))
	for i, e := range events {
		list[i] = Event{Event: e, View: v}
	}
	b.members.Hand(list, Event{View: v, Missed: true}, func() { b.view.Store(v) })
}

// snapshot is the first event of a reader.
func (b *broadcaster) snapshot() Event { return Event{View: b.view.Load()} }

// stream is the iterator of one reader of membership.
func (b *broadcaster) stream(ctx context.Context) iter.Seq[Event] {
	return b.members.Stream(ctx, b.snapshot)
}

// end lets all readers finish what they have and then stop.
func (b *broadcaster) end() {
	b.members.End()
	b.shards.End()
}

// ShardEvent is one fact about sharding, as this node saw it; of kind zero: that earlier ones were not reported.
type ShardEvent struct {
	shard.Event
	Name string    // of the type; empty when it is not registered here
	At   time.Time // on this node's wall clock
}

// String prints the event as one line.
func (e ShardEvent) String() string {
	if e.Kind == 0 {
		return "begin"
	}
	text := fmt.Sprintf("%s %s", e.Kind, cmp.Or(e.Name, fmt.Sprintf("%08x", uint32(e.Type))))
	switch e.Kind {
	case shard.CoordinatorStarted, shard.CoordinatorReady, shard.CoordinatorStopped:
		return fmt.Sprintf("%s at %s, term %d", text, e.Home, e.Term)
	case shard.ShardsWait:
		return fmt.Sprintf("%s of %s: %d shards", text, e.Home, e.Shards)
	case shard.StrategyFault:
		return fmt.Sprintf("%s, %d times: %v", text, e.Shards, e.Err)
	case shard.MoveBegan, shard.MoveMarked, shard.MoveHandedOver, shard.MoveDone, shard.MoveAborted, shard.MoveUntaken,
		shard.MoveReturned:
		text = fmt.Sprintf("%s/%d from %s to %s, move %d.%d", text, e.Shard, e.Home, e.To, e.Number.Term, e.Number.Seq)
		if e.Err != nil {
			text += ": " + e.Err.Error()
		}
		return text
	}
	return fmt.Sprintf("%s/%d at %s under %s", text, e.Shard, e.Home, e.Fence)
}

// publishShards hands out what has happened in sharding. It costs next to nothing while nobody reads.
func (b *broadcaster) publishShards(now time.Time, name func(route.TypeID) string, events []shard.Event) {
	if len(events) == 0 || !b.shards.Read() {
		return
	}
	list := make([]ShardEvent, len(events))
	for i, e := range events {
		list[i] = ShardEvent{Event: e, At: now, Name: name(e.Type)}
	}
	b.shards.Hand(list, ShardEvent{At: now}, func() {})
}
