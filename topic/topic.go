// Topics: the subscribers, and how a message gets there.

package topic

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/internal/base/ground"
	"github.com/kith-io/kith/internal/runtime/footing"
	"github.com/kith-io/kith/replicated"
)

// Errors of Open, Publish and Subscribe; match them with errors.Is.
var (
	ErrBadName  = errors.New("topic: a name has 1 to 200 bytes")
	ErrTooLarge = errors.New("topic: the payload is larger than Config.MaxPayload allows")
)

// PartialError says that some nodes with subscribers will not get a message, which went to all others: there was no
// room on the way to them, or they have just begun. Their subscribers learn with the next message that they missed one.
type PartialError struct {
	Missed []kith.ID // the nodes; the caller's
	Err    error     // why the first of them will not
}

// Error names the nodes, at most eight of them.
func (e *PartialError) Error() string {
	return fmt.Sprintf("topic: %d nodes with subscribers will not get the message, %v among them: %v", len(e.Missed),
		e.Missed[:min(len(e.Missed), 8)], e.Err)
}

// Unwrap returns why the first of them will not.
func (e *PartialError) Unwrap() error { return e.Err }

// shared is what the topics of a node have in common.
type shared struct {
	node footing.Topics
	self kith.ID
	crew footing.Crew

	mu      sync.Mutex
	changed []*Topic // with a first subscriber that has come, or a last one that has gone
	wake    chan struct{}
}

// tell notes that the first subscriber of a topic has come, or the last one has gone.
func (s *shared) tell(t *Topic) {
	s.mu.Lock()
	s.changed = append(s.changed, t)
	s.mu.Unlock()
	s.node.Ring(s.wake)
}

// Topic is a name under which messages are published. All methods are safe for concurrent use.
type Topic struct {
	shared   *shared
	name     string
	interest value
	nodes    atomic.Pointer[[]kith.ID] // that have subscribers, in address order, this one included

	mu      sync.Mutex
	sent    map[kith.ID]uint64 // number of the last message, by node
	streams map[kith.ID]*stream
	came    uint64 // messages that subscribers here were given, and subscribers
	first   uint64 // came when the first of the subscribers began: nothing is sent here before
	subs    []*subscriber
	room    []byte // of the frame that is sent

	count counts
}

// interest is the set of nodes that have subscribers.
type interest = replicated.ORSet[string]

// value is that set, the same on every node in the end.
type value struct{ footing.Value }

// get returns it as this node has it.
func (v value) get() interest { return v.Load().(interest) }

// change changes it on this node, and waits until all members have the change where all is true.
func (v value) change(ctx context.Context, all bool, change func(in interest) interest) error {
	return v.Update(ctx, all, func(v any) any { return change(v.(interest)) })
}

// Name returns the name.
func (t *Topic) Name() string { return t.name }

// Publish gives payload, which it copies, to the subscribers of this node, and sends it once to each other node that
// has some, as far as this node knows. It never blocks. Messages that one goroutine publishes here come in this order
// to each subscriber, each at most once. Errors: ErrTooLarge, after which nobody gets it; a *PartialError, after which
// some do; why the node has ended.
func (t *Topic) Publish(payload []byte) error {
	if most := t.shared.node.MaxPayload() - overhead; len(payload) > most {
		return fmt.Errorf("%w: %d bytes, at most %d", ErrTooLarge, len(payload), most)
	}
	if err := t.shared.node.Err(); err != nil {
		return err
	}
	t.count.published.Add(1)
	t.mu.Lock()
	defer t.mu.Unlock()
	var partial *PartialError
	t.fanOut(t.shared.self, 0, payload)
	for _, to := range *t.nodes.Load() {
		if to == t.shared.self {
			continue
		}
		if err := t.send(to, payload); err != nil {
			if partial == nil {
				partial = &PartialError{Err: err}
			}
			partial.Missed = append(partial.Missed, to)
		}
	}
	if partial != nil {
		return partial
	}
	return nil
}

// send sends a payload to a node. It is numbered whether it goes or not, so that its subscribers hear what they missed.
func (t *Topic) send(to kith.ID, payload []byte) error {
	number := t.sent[to] + 1
	t.sent[to] = number
	t.room = appendFrame(t.room[:0], &frame{to.Inc, number, t.name, t.shared.self, payload})
	err := t.shared.crew.TellAt(to, t.room)
	if err != nil {
		t.count.unsent.Add(1)
		return err
	}
	t.count.sent.Add(1)
	return nil
}

// receive gives the subscribers here what came from another node.
func (t *Topic) receive(f *frame) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.count.received.Add(1)
	t.fanOut(f.from, f.number, f.payload)
}

// fanOut gives a message to the subscribers here. number is zero for one that was published here.
func (t *Topic) fanOut(from kith.ID, number uint64, payload []byte) {
	missed, since := uint64(0), t.came+1
	if number > 0 {
		s := t.streams[from]
		if s == nil {
			s = &stream{at: t.first}
			t.streams[from] = s
		}
		var ok bool
		if missed, since, ok = s.next(number, t.came+1); !ok {
			return
		}
	}
	t.came++
	if len(t.subs) == 0 {
		return
	}
	m := Message{From: from, Payload: slices.Clone(payload)}
	for _, s := range t.subs {
		its := missed
		if s.since > since { // it began behind what was missed, or among it
			its = 0
		}
		t.count.missed.Add(its)
		if !s.put(m, its) {
			t.count.missed.Add(1)
			continue
		}
		t.count.delivered.Add(1)
		t.shared.node.Ring(s.wake)
	}
}

// Subscribe begins a subscription with the default Bounds; see SubscribeWithin.
func (t *Topic) Subscribe(ctx context.Context) iter.Seq[Message] {
	seq, _ := t.SubscribeWithin(ctx, Bounds{}) // the defaults are valid
	return seq
}

// SubscribeWithin begins a subscription at once and returns its messages, for one range statement: it ends when ctx or
// the node has ended and what waits has been read, or when the loop is left. Other nodes hear of the first subscriber
// here within a second, mostly in 0.1 s; Known waits for that. A subscriber that never reads keeps what its Bounds
// allow until ctx ends. Errors: ErrBadBounds.
func (t *Topic) SubscribeWithin(ctx context.Context, b Bounds) (iter.Seq[Message], error) {
	if err := b.Validate(); err != nil {
		return nil, err
	}
	s := &subscriber{queue: newQueue(b.withDefaults())}
	t.add(s)
	stop := context.AfterFunc(ctx, func() { t.remove(s) })
	return func(yield func(Message) bool) {
		defer func() {
			if stop() {
				t.remove(s)
			}
		}()
		for {
			over := ctx.Err() != nil || t.shared.node.Err() != nil
			for m, ok := s.take(); ok; m, ok = s.take() {
				if !yield(m) {
					return
				}
			}
			if over {
				return
			}
			t.shared.node.Wait(ctx, ground.Forever, s.wake) // the end of the node wakes it too
		}
	}, nil
}

func (t *Topic) add(s *subscriber) {
	t.mu.Lock()
	t.came++ // so that of two that begin behind one message the later one counts nothing of what came before it
	if s.since = t.came; len(t.subs) == 0 {
		t.first = s.since
	}
	t.subs = append(t.subs, s)
	n := len(t.subs)
	t.count.subscribers.Store(int64(n))
	t.mu.Unlock()
	if n == 1 {
		t.shared.tell(t)
	}
}

func (t *Topic) remove(s *subscriber) {
	t.mu.Lock()
	t.subs = slices.DeleteFunc(t.subs, func(o *subscriber) bool { return o == s })
	n := len(t.subs)
	t.count.subscribers.Store(int64(n))
	t.mu.Unlock()
	if n == 0 {
		t.shared.tell(t)
	}
}

// over lets all subscribers see that the node has ended.
func (t *Topic) over() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, s := range t.subs {
		t.shared.node.Ring(s.wake)
	}
}

// subscribed reports whether there is a subscriber here.
func (t *Topic) subscribed() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.subs) > 0
}

// Stats are what a node has done with one topic.
type Stats struct {
	Published   uint64 // here
	Sent        uint64 // to other nodes, one for each
	Unsent      uint64 // to other nodes, for which there was no room, or no way yet
	Received    uint64 // from other nodes
	Delivered   uint64 // put where subscribers here take them from, one for each
	Missed      uint64 // by subscribers here, one for each, as far as they know
	Subscribers int    // here
	Nodes       int    // with subscribers, as far as this node knows
}

type counts struct {
	published, sent, unsent, received, delivered, missed atomic.Uint64
	subscribers                                          atomic.Int64
}

// Stats returns the counters of this topic on this node.
func (t *Topic) Stats() Stats {
	c := &t.count
	return Stats{c.published.Load(), c.sent.Load(), c.unsent.Load(), c.received.Load(), c.delivered.Load(),
		c.missed.Load(), int(c.subscribers.Load()), len(*t.nodes.Load())}
}
