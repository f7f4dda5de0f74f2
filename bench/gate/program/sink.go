// Sink: the entities, which count what reaches their handlers, answer what is asked, and pass on what goes round.

package main

import (
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/kith-io/kith"
)

// What the first byte of a payload asks of an entity.
const (
	opTell  = 0 // count
	opAsk   = 1 // count, and answer with as many bytes
	opFlush = 2 // publish the count, and answer
	opRing  = 3 // count, and tell the next entity
)

// publishEvery is how many messages an entity counts by itself before it publishes the count, where an atomic store for
// each would be a good part of what a message costs. A power of two.
const publishEvery = 16

// sink makes the entities of a type and knows how much has reached them.
type sink struct {
	name    string
	every   uint64
	ring    int         // how many entities stand in the ring
	stopped atomic.Bool // what goes round ends at its next entity

	mu  sync.Mutex
	all []*entity
}

// count returns how many messages have reached handlers, up to publishEvery-1 too few of each entity.
func (s *sink) count() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	var n uint64
	for _, e := range s.all {
		n += e.count.Load()
	}
	return n
}

// entity publishes its count in a cache line of its own, so that entities on several cores do not slow each other.
type entity struct {
	sink  *sink
	index int
	next  string // the one after it in the ring
	n     uint64 // the handler's own
	_     [16]byte
	count atomic.Uint64
	_     [56]byte
}

func (s *sink) entity(id string, _ kith.Fence) kith.Handler {
	e := &entity{sink: s}
	if n, err := strconv.Atoi(id[len(idPrefix):]); err == nil && s.ring > 0 {
		e.next = entityID((n + 1) % s.ring)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	e.index = len(s.all)
	s.all = append(s.all, e)
	return e
}

// Receive counts, and does what it was asked.
func (e *entity) Receive(c *kith.Context, payload []byte) error {
	op := payload[0]
	if op != opFlush {
		e.n++
	}
	if op == opAsk || op == opFlush || (e.n+uint64(e.index))&(e.sink.every-1) == 0 {
		e.count.Store(e.n)
	}
	switch {
	case op == opAsk || op == opFlush:
		return c.Reply(payload)
	case op == opRing && !e.sink.stopped.Load():
		return c.Tell(e.sink.name, e.next, payload)
	}
	return nil
}

// Stop publishes the count.
func (e *entity) Stop(*kith.Context) { e.count.Store(e.n) }

// idle is the one handler of all idle entities: what a process holds beside it is the library's.
type idle struct{ handled atomic.Int64 }

// Receive counts.
func (i *idle) Receive(*kith.Context, []byte) error {
	i.handled.Add(1)
	return nil
}

// Stop does nothing.
func (*idle) Stop(*kith.Context) {}

// idPrefix begins all ids; nine digits follow, 16 bytes together.
const idPrefix = "entity-"

func entityID(n int) string {
	digits := strconv.Itoa(n)
	return idPrefix + "000000000"[len(digits):] + digits
}
