// Package parcels carries messages between the same service of two nodes, past entities, on their data connections: in
// pieces, with a share of each link and of each receiver's memory, and without a promise: what finds no room is dropped
// and counted, and its sender says it again.
package parcels

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/kith-io/kith/internal/core/quorum"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/quorum/disk"
	"github.com/kith-io/kith/stats"
	"github.com/kith-io/kith/wire"
)

// Bounds, in bytes. A message that is longer than a share is taken when nothing else waits.
const (
	MaxMessage = 40 << 20
	shareOut   = 4 << 20 // that waits for one node, of all services
	shareIn    = 8 << 20 // that has come from one node and is not taken yet, of one service
	rest       = time.Second
	again      = 2 * time.Millisecond // after a link that had no room
)

// Errors of the office.
var (
	ErrName = errors.New("parcels: a service of this name is open on the node")
	ErrOver = errors.New("parcels: the node has ended")
)

// Needs is what an office needs of its node.
type Needs struct {
	// Send has the link to a node take a frame. again: it has no room now. Else an error says that it never will.
	Send    func(to peer.ID, frame []byte) (again bool, err error)
	Invalid func(from peer.ID, kind wire.Kind, err error)
}

// Office is the parcels of a node. All methods are safe for concurrent use.
type Office struct {
	needs    Needs
	wake     chan struct{} // capacity 1
	over     chan struct{}
	services atomic.Pointer[map[uint64]*Service]
	dropped  atomic.Uint64
	leaving  atomic.Bool

	mu    sync.Mutex
	out   map[peer.ID]*queue
	order []peer.ID // of those that have something to send
}

// queue is what waits for one node.
type queue struct {
	list  []message
	bytes int
	at    int // of the first message: bytes that have gone
}

type message struct {
	service uint64
	body    []byte
}

// Letter is a message that has come. Its body is the receiver's.
type Letter struct {
	From peer.ID
	Body []byte
}

// Service is one on this node.
type Service struct {
	office *Office
	id     uint64
	notify func()
	values atomic.Pointer[func() stats.Values]
	store  atomic.Pointer[Store]

	mu      sync.Mutex
	letters []Letter
	bytes   map[peer.ID]int
	whole   map[peer.ID]*partial
}

// partial is a message of which pieces have come.
type partial struct {
	connection uint32
	body       []byte
}

// New returns an office.
func New(n Needs) *Office {
	o := &Office{needs: n, wake: make(chan struct{}, 1), over: make(chan struct{}), out: map[peer.ID]*queue{}}
	o.services.Store(&map[uint64]*Service{})
	return o
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Open has messages to the service of a name come to this node; notify is called when some have come, from event loops,
// and must not block. Errors: ErrName, ErrOver.
func (o *Office) Open(name string, notify func()) (*Service, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	select {
	case <-o.over:
		return nil, ErrOver
	default:
	}
	s := &Service{office: o, id: xxhash.Sum64String(name), notify: notify, bytes: map[peer.ID]int{},
		whole: map[peer.ID]*partial{}}
	next := map[uint64]*Service{s.id: s}
	for id, other := range *o.services.Load() {
		if id == s.id {
			return nil, ErrName
		}
		next[id] = other
	}
	o.services.Store(&next)
	return s, nil
}

// Close has nothing more come.
func (s *Service) Close() {
	o := s.office
	o.mu.Lock()
	defer o.mu.Unlock()
	next := map[uint64]*Service{}
	for id, other := range *o.services.Load() {
		if other != s {
			next[id] = other
		}
	}
	o.services.Store(&next)
}

// Report gives the node the figures of a store of values, for its Stats.
func (s *Service) Report(values func() stats.Values) { s.values.Store(&values) }

// Store is a store of values on this node, as operators look at it.
type Store interface {
	// Report returns what the store says of itself. Errors: the context's, and quorum.ErrClosed.
	Report(ctx context.Context) (*quorum.Report, error)
	// Look asks all replicas of a key what they have, and returns how many values that is without those that others
	// replace. Errors: the context's, quorum.ErrTooLarge, ErrBusy, ErrMembers, ErrNotFounded, ErrClosed.
	Look(ctx context.Context, key []byte) (looks []quorum.Look, values int, err error)
	// HandOn has the disk hand on what it has to others, or takes that back. It does not wait: the counts say the rest.
	HandOn(on bool)
	// Leaves says that the node leaves: the disk hands on what it has if the store wants it to.
	Leaves()
}

// Show has operators look at a store of values, by Stores.
func (s *Service) Show(store Store) {
	s.store.Store(&store)
	if s.office.leaving.Load() {
		store.HandOn(true)
	}
}

// HandOn has all stores hand on what their disks have, those that are opened later too, or takes that back.
func (o *Office) HandOn(on bool) {
	o.leaving.Store(on)
	for _, store := range o.Stores() { // in any order
		store.HandOn(on)
	}
}

// Leaves says that the node leaves.
func (o *Office) Leaves() {
	for _, store := range o.Stores() { // in any order
		store.Leaves()
	}
}

// Needed returns the stores with disks here that hand on what they have and are needed still, nil for none. hopeless:
// that nothing will change.
func (o *Office) Needed() (e *disk.NeededError, hopeless bool) {
	e, hopeless = &disk.NeededError{}, true
	for _, v := range o.Values() {
		if h := v.HandOn; h.Leaves && h.Disks+h.Shards > 0 {
			e.Stores = append(e.Stores, disk.Needed{Store: v.Store, Disks: h.Disks, Shards: h.Shards})
			hopeless = hopeless && h.Alone
		}
	}
	if len(e.Stores) == 0 {
		return nil, false
	}
	return e, hopeless
}

// HandedOn waits until the disks that hand on what they have are needed no more, or that is hopeless, and returns nil,
// or which are needed still, with the error of ctx.
func (o *Office) HandedOn(ctx context.Context) *disk.NeededError {
	for tick := time.NewTicker(20 * time.Millisecond); ; {
		e, hopeless := o.Needed()
		if e == nil || hopeless {
			tick.Stop()
			return e
		}
		select {
		case <-tick.C:
		case <-o.over:
			tick.Stop()
			return e
		case <-ctx.Done():
			tick.Stop()
			e.Err = ctx.Err()
			return e
		}
	}
}

// Stores returns all stores of values that are shown, by name.
func (o *Office) Stores() map[string]Store {
	list := map[string]Store{}
	for _, s := range *o.services.Load() {
		if f, store := s.values.Load(), s.store.Load(); f != nil && store != nil {
			list[(*f)().Store] = *store
		}
	}
	return list
}

// Values returns the counts of all stores of values, by name.
func (o *Office) Values() (list []stats.Values) {
	for _, s := range *o.services.Load() {
		if f := s.values.Load(); f != nil {
			v := (*f)()
			v.Dropped = o.dropped.Load()
			list = append(list, v)
		}
	}
	slices.SortFunc(list, func(a, b stats.Values) int { return cmp.Compare(a.Store, b.Store) })
	return list
}

// Dropped returns how many messages found no room, here or on the way, or were not whole.
func (o *Office) Dropped() uint64 { return o.dropped.Load() }

// Over is closed when the node has ended.
func (o *Office) Over() <-chan struct{} { return o.over }

// Take takes a piece, which it copies. connection is the generation of that it came on. From event loops.
func (o *Office) Take(from peer.ID, connection uint32, body []byte) {
	p, err := wire.ParseParcel(body)
	if err != nil {
		o.needs.Invalid(from, wire.KindParcel, err)
		return
	}
	if s := (*o.services.Load())[p.Service]; s != nil {
		s.take(from, connection, &p)
	}
}

func (s *Service) take(from peer.ID, connection uint32, p *wire.Parcel) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.whole[from]
	if p.First {
		w = &partial{connection: connection}
	}
	if w == nil || w.connection != connection {
		s.office.dropped.Add(1)
		delete(s.whole, from)
		return
	}
	room := shareIn - s.bytes[from]
	if s.bytes[from] == 0 {
		room = MaxMessage
	}
	if len(w.body)+len(p.Piece) > room {
		s.office.dropped.Add(1)
		delete(s.whole, from) // what follows has no beginning
		return
	}
	w.body = append(w.body, p.Piece...)
	if !p.Last {
		s.whole[from] = w
		return
	}
	delete(s.whole, from)
	s.bytes[from] += len(w.body)
	if s.letters = append(s.letters, Letter{from, w.body}); len(s.letters) == 1 {
		s.notify()
	}
}

// Letters returns what has come since the last call.
func (s *Service) Letters() []Letter {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.letters
	s.letters = nil
	clear(s.bytes)
	return list
}

// Forget drops what is not whole of nodes that are no members any more.
func (s *Service) Forget(is func(peer.ID) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id := range s.whole {
		if !is(id) {
			delete(s.whole, id)
		}
	}
}

// Send sends a message, which the office keeps until it has gone. It never waits: what has no room is dropped.
func (s *Service) Send(to peer.ID, body []byte) {
	o := s.office
	o.mu.Lock()
	defer o.mu.Unlock()
	q := o.out[to]
	if q == nil {
		q = &queue{}
		o.out[to] = q
		o.order = append(o.order, to)
	}
	if len(body) == 0 || len(body) > MaxMessage || q.bytes > 0 && q.bytes+len(body) > shareOut {
		o.dropped.Add(1)
		return
	}
	q.list = append(q.list, message{s.id, body})
	q.bytes += len(body)
	signal(o.wake)
}

// Run sends what waits, until ctx ends.
func (o *Office) Run(ctx context.Context) {
	defer func() {
		o.mu.Lock()
		close(o.over)
		o.mu.Unlock()
	}()
	timer := time.NewTimer(rest)
	defer timer.Stop()
	for {
		timer.Reset(o.turn())
		select {
		case <-ctx.Done():
			return
		case <-o.wake:
		case <-timer.C:
		}
	}
}

// turn sends what has room, and returns how long nothing is to be done.
func (o *Office) turn() time.Duration {
	o.mu.Lock()
	list := slices.Clone(o.order)
	o.mu.Unlock()
	next := rest
	for _, to := range list {
		if !o.sendAll(to) {
			next = again
		}
	}
	return next
}

// sendAll sends what waits for a node, and reports whether nothing is left.
func (o *Office) sendAll(to peer.ID) bool {
	var frame []byte
	for {
		o.mu.Lock()
		q := o.out[to]
		if len(q.list) == 0 {
			delete(o.out, to)
			o.order = slices.DeleteFunc(o.order, func(id peer.ID) bool { return id == to })
			o.mu.Unlock()
			return true
		}
		m, at := q.list[0], q.at
		o.mu.Unlock()
		end := min(at+wire.MaxParcelPiece, len(m.body))
		frame = wire.AppendParcel(frame[:0], &wire.Parcel{Service: m.service, First: at == 0, Last: end == len(m.body),
			Piece: m.body[at:end]})
		full, err := o.needs.Send(to, frame)
		if full {
			return false
		}
		o.mu.Lock()
		if q.at = end; end == len(m.body) || err != nil {
			q.bytes -= len(m.body)
			q.list, q.at = q.list[1:], 0
		}
		o.mu.Unlock()
		if err != nil {
			o.dropped.Add(1)
		}
	}
}
