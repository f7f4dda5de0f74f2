// Sink: the entities at the receiving end, which count what reaches their handlers.

package bench

import (
	"encoding/binary"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kith-io/kith"
)

// What the first byte of a payload asks of a sink's entity.
const (
	opTell  = 0 // count
	opAsk   = 1 // count and answer with as many bytes
	opStamp = 2 // count, and record the age of the stamp in bytes 8 to 15
	opFlush = 3 // do not count: make the count exact and answer with it, 8 bytes
)

// publishEvery is how many messages an entity counts by itself before it publishes the count: an atomic store for each
// would be a tenth of what an inline message costs its receiver. A power of two. A blocking message costs so much more
// that its entities publish each one. The others begin at different points of their turn: entities in step would all
// publish at once, and a short measure between two such moments would see that nothing arrived.
const publishEvery = 16

// MinStamped is the shortest payload that can carry a stamp.
const MinStamped = 16

// Sink makes entities and knows how much has reached them.
type Sink struct {
	mu    sync.Mutex
	all   []*sinkEntity
	clock func() int64 // nanoseconds on a clock that all processes of this machine share

	ages [16]struct {
		sync.Mutex
		l *Latency
	}
}

// NewSink returns a sink without entities.
func NewSink() *Sink { return &Sink{clock: sharedClock} }

// Type declares entities of this sink. The receiver's role keeps them off the sender.
func (s *Sink) Type(name string, shards uint32, mode kith.Mode, role string) kith.EntityType {
	every := uint64(publishEvery)
	if mode == kith.Blocking {
		every = 1
	}
	entity := func(string, kith.Fence) kith.Handler { return s.entity(every) }
	return kith.EntityType{Name: name, Shards: shards, Mode: mode, Role: role, New: entity}
}

func (s *Sink) entity(every uint64) *sinkEntity {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := &sinkEntity{sink: s, index: len(s.all), every: every}
	s.all = append(s.all, e)
	return e
}

// Count returns how many messages have reached handlers: up to fifteen too few of each entity that is not blocking,
// until Flush has asked it.
func (s *Sink) Count() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	var n uint64
	for _, e := range s.all {
		n += e.count.Load()
	}
	return n
}

// Ages returns how old stamped messages were when they reached their handler, and begins anew.
func (s *Sink) Ages() *Latency {
	sum := NewLatency()
	for i := range s.ages {
		a := &s.ages[i]
		a.Lock()
		if a.l != nil {
			sum.Merge(a.l)
			a.l = nil
		}
		a.Unlock()
	}
	return sum
}

func (s *Sink) age(index int, payload []byte) {
	age := time.Duration(s.clock() - int64(binary.LittleEndian.Uint64(payload[8:])))
	a := &s.ages[index%len(s.ages)]
	a.Lock()
	defer a.Unlock()
	if a.l == nil {
		a.l = NewLatency()
	}
	a.l.Record(age)
}

// sinkEntity publishes its count in a cache line of its own, so that entities on several loops do not slow each other.
type sinkEntity struct {
	sink  *Sink
	index int
	n     uint64 // the handler's own
	every uint64
	_     [24]byte
	count atomic.Uint64
	_     [56]byte
}

// Receive counts, and answers what was asked.
func (e *sinkEntity) Receive(c *kith.Context, payload []byte) error {
	op := byte(opTell)
	if len(payload) > 0 {
		op = payload[0]
	}
	if op != opFlush {
		e.n++
	}
	if op == opTell && (e.n+uint64(e.index))&(e.every-1) != 0 {
		return nil
	}
	e.count.Store(e.n)
	switch {
	case op == opTell:
		return nil
	case op == opStamp && len(payload) >= MinStamped:
		e.sink.age(e.index, payload)
		return nil
	case op == opFlush:
		return c.Reply(binary.LittleEndian.AppendUint64(nil, e.n))
	}
	return c.Reply(payload)
}

// Stop publishes the count.
func (e *sinkEntity) Stop(*kith.Context) { e.count.Store(e.n) }
