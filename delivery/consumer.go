// Consumers: entities that acknowledge what a queue delivers to them, and drop what they have had.

package delivery

import (
	"errors"
	"fmt"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/route"
)

// maxKnown is the most shards of queues that one consumer remembers; with more it begins anew.
const maxKnown = 4096

// Message is what a queue says of a message that it delivers.
type Message struct {
	// Queue is the name of the queue.
	Queue string
	// Key names the message, among all of its queue, also when it is delivered again: for a consumer that remembers in a
	// store of its own what it has handled. A dead letter that is sent again gets another one.
	Key string
	// Try counts from 1, and begins anew when the queue has another owner.
	Try int
	// Again is whether the receiver may have handled it before: an earlier delivery had no answer, or was that of another
	// owner of the queue. What this instance of the receiver has handled does not reach its handler again.
	Again bool
}

// Of returns what a queue says of the message that a handler has; false for one that came otherwise.
func Of(c *kith.Context) (Message, bool) {
	n, is, err := parseNote(c.Headers())
	if !is || err != nil {
		return Message{}, false
	}
	return Message{Queue: n.queue, Key: fmt.Sprintf("%s/%d/%s", n.queue, n.shard, idOf(n.number)), Try: n.try,
		Again: n.again}, true
}

// Consumer returns t with handlers that acknowledge what queues deliver. Receive handles a delivered message as any
// other one, and Of says that it is one. Nil acknowledges it; an error, or a panic, has it delivered again later. One
// that Receive has detached (kith.Context.Detach) is acknowledged by the token's Reply, and refused by its Fail; such a
// message is not dropped when it comes twice. Other messages reach the handler as they do without. Every node that
// hosts the type must register it so.
func Consumer(t kith.EntityType) kith.EntityType {
	if made := t.New; made != nil {
		t.New = func(id string, f kith.Fence) kith.Handler { return consumes(made(id, f)) }
	}
	if opens := t.Open; opens != nil {
		t.Open = func(c *kith.Context) (kith.Handler, error) {
			h, err := opens(c)
			if err != nil {
				return nil, err
			}
			return consumes(h), nil
		}
	}
	return t
}

// consumes returns a handler that acknowledges.
func consumes(h kith.Handler) kith.Handler {
	if h == nil {
		return nil
	}
	if s, is := h.(kith.Stateful); is {
		return &statefulConsumer{consumer{Handler: h}, s}
	}
	return &consumer{Handler: h}
}

// source is a shard of a queue, as consumers know it.
type source struct {
	queue string
	shard route.ShardID
}

// had is what a consumer has had of a source.
type had struct {
	fence  kith.Fence // the highest that was seen
	number uint64     // of the last message that was handled
}

// consumer is one that acknowledges. What it remembers ends with it.
type consumer struct {
	kith.Handler
	had map[source]had
}

// Receive handles one message.
func (h *consumer) Receive(c *kith.Context, payload []byte) error {
	n, is, err := parseNote(c.Headers())
	switch {
	case !is || !c.Asked():
		return h.Handler.Receive(c, payload)
	case err != nil:
		return fmt.Errorf("%w: %w", kith.ErrBadPayload, err)
	}
	o := h.takes(&n)
	if o != outcomeHandled {
		return c.Reply(o.tells())
	}
	if err := h.Handler.Receive(c, payload); err != nil {
		return err
	}
	if entity.Detached(c) { // it is not handled yet
		return nil
	}
	h.handled(&n)
	if err := c.Reply(o.tells()); !errors.Is(err, kith.ErrReplied) { // a handler that replies has acknowledged
		return err
	}
	return nil
}

// takes says what is to be done with a message, outcomeHandled: to handle it, and remembers its owner.
func (h *consumer) takes(n *note) outcome {
	from := source{n.queue, n.shard}
	was := h.had[from]
	o := judge(n, was)
	was.fence = maxFence(was.fence, n.fence)
	h.keeps(from, was)
	return o
}

// handled remembers that a message was handled.
func (h *consumer) handled(n *note) {
	from := source{n.queue, n.shard}
	h.keeps(from, had{h.had[from].fence, n.number})
}

// judge says what is to be done with a message.
func judge(n *note, was had) outcome {
	switch {
	case n.fence.Compare(was.fence) < 0:
		return outcomeStale
	case n.number <= was.number:
		return outcomeHad
	case n.before > was.number:
		return outcomeGap
	}
	return outcomeHandled
}

func maxFence(a, b kith.Fence) kith.Fence {
	if a.Compare(b) < 0 {
		return b
	}
	return a
}

// keeps remembers what was had of a source.
func (h *consumer) keeps(s source, was had) {
	if _, known := h.had[s]; !known && (h.had == nil || len(h.had) >= maxKnown) {
		h.had = map[source]had{}
	}
	h.had[s] = was
}

// statefulConsumer is one that hands over its handler's state.
type statefulConsumer struct {
	consumer
	s kith.Stateful
}

// HandOver is the handler's.
func (h *statefulConsumer) HandOver(c *kith.Context) ([]byte, error) { return h.s.HandOver(c) }

// TakeUp is the handler's.
func (h *statefulConsumer) TakeUp(c *kith.Context, state []byte) error { return h.s.TakeUp(c, state) }
