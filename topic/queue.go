// Queues: what waits for one subscriber.

package topic

import (
	"errors"
	"fmt"
	"sync"

	"github.com/kith-io/kith"
)

// How much waits for a subscriber.
const (
	DefaultMessages = 1024    // that wait for a subscriber
	DefaultBytes    = 1 << 20 // of their payloads
	MaxMessages     = 1 << 20
)

// ErrBadBounds is wrapped by the faults of Bounds; match it with errors.Is.
var ErrBadBounds = errors.New("topic: bounds of a subscriber")

// Message is what a subscriber gets.
type Message struct {
	From    kith.ID // the node that published it
	Payload []byte  // shared with other subscribers: it must not be changed, and may be kept
	// Missed is how many messages this subscriber missed since the one before: it had no room, or they were lost on the
	// way here. What was lost behind the last message shows with the next one.
	Missed uint64
}

// Bounds are how much waits for a subscriber. What comes beyond is missed, and counted. The zero value holds the
// defaults.
type Bounds struct {
	Messages int // zero means DefaultMessages; at most MaxMessages
	Bytes    int // of payloads; zero means DefaultBytes. One message over it waits alone
}

// Validate returns all faults of b, each wrapping ErrBadBounds, or nil.
func (b Bounds) Validate() error {
	var errs []error
	if b.Messages < 0 || b.Messages > MaxMessages {
		errs = append(errs, fmt.Errorf("%w: Messages is %d, must be 1 to %d", ErrBadBounds, b.Messages, MaxMessages))
	}
	if b.Bytes < 0 {
		errs = append(errs, fmt.Errorf("%w: Bytes is %d, must be 1 or more", ErrBadBounds, b.Bytes))
	}
	return errors.Join(errs...)
}

func (b Bounds) withDefaults() Bounds {
	if b.Messages == 0 {
		b.Messages = DefaultMessages
	}
	if b.Bytes == 0 {
		b.Bytes = DefaultBytes
	}
	return b
}

// subscriber is one of this node.
type subscriber struct {
	*queue
	since uint64 // Topic.came when it began
}

// queue is what waits for a subscriber, within its bounds. What has no room is missed and counted.
type queue struct {
	bounds Bounds
	wake   chan struct{} // has room for one; fanOut rings it

	mu     sync.Mutex
	ring   []Message
	first  int
	count  int
	bytes  int
	missed uint64 // since the message that waits last
}

func newQueue(b Bounds) *queue { return &queue{bounds: b, wake: make(chan struct{}, 1)} }

// put adds a message, before which so many were missed on the way here, and reports whether there was room.
func (q *queue) put(m Message, missed uint64) bool {
	q.mu.Lock()
	q.missed += missed
	// One that is over the bound of bytes by itself is taken when nothing else waits.
	if q.count == q.bounds.Messages || q.count > 0 && q.bytes+len(m.Payload) > q.bounds.Bytes {
		q.missed++
		q.mu.Unlock()
		return false
	}
	m.Missed, q.missed = q.missed, 0
	q.add(m)
	q.mu.Unlock()
	return true
}

func (q *queue) add(m Message) {
	if q.count == len(q.ring) {
		next := make([]Message, min(max(2*len(q.ring), 8), q.bounds.Messages))
		for i := range q.count {
			next[i] = q.ring[(q.first+i)%len(q.ring)]
		}
		q.ring, q.first = next, 0
	}
	q.ring[(q.first+q.count)%len(q.ring)] = m
	q.count++
	q.bytes += len(m.Payload)
}

// take removes the oldest message; false: there is none.
func (q *queue) take() (m Message, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.count == 0 {
		return m, false
	}
	m, q.ring[q.first] = q.ring[q.first], Message{}
	q.first = (q.first + 1) % len(q.ring)
	q.count--
	q.bytes -= len(m.Payload)
	return m, true
}
