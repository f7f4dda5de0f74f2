// Mail: what sends the parcels of one shard, as long as the shard lives here.

package durable

import (
	"container/heap"
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/internal/base/ground"
	"github.com/kith-io/kith/store"
)

const (
	mostUnderWay = 256              // parcels of one shard that are on their way
	mostAgain    = mostUnderWay / 2 // of them: those that go again, since nobody has answered
	hold         = time.Second      // how long such a one waits for others of its kind
	mostInShard  = 8 * MaxOutbox    // parcels of one shard in memory
	mostWoken    = 16               // entities of one shard that are woken at once
	askTime      = 5 * time.Second  // how long one answer is waited for
	lazily       = time.Second      // how long what was handled waits for a commit that it leaves with
	settleAt     = 64               // parcels that were handled at which that is not waited for
	restFirst    = 50 * time.Millisecond
	restMost     = 30 * time.Second
	scanEvery    = 30 * time.Second // how often the store is asked for outboxes
	forgetAtOnce = 1000             // marks
)

// sending is one parcel that is not known to have left its outbox.
type sending struct {
	*parcel
	under bool    // on its way
	ended outcome // handled, void, or given up (old); zero: not known
	text  string
	next  time.Time // when it goes again
	tries int
	gap   bool // its receiver had not had the one before it: it waits until that is gone
}

// box is the outbox of one entity as it is stored.
type box struct {
	id       string
	version  uint64
	list     []*sending
	due      time.Time // when to look at it again
	at       int       // its place in the heap
	settling bool
	next     time.Time // when it may be settled again
	tries    int
}

// mailroom is what the mail of all shards of a type on one node shares.
type mailroom struct {
	store    store.Store
	ground   ground.Ground
	name     string
	patience time.Duration
	seen     time.Duration
	office   *office
	stopped  atomic.Pointer[error]                   // why nothing is done any more
	claimed  func(s kith.ShardID, f kith.Fence) bool // whether a shard is claimed under a fence

	arrived, resent, undelivered atomic.Uint64

	mailMu sync.Mutex
	mails  map[kith.ShardID]*mail
}

// mail sends the parcels of a shard under one fence. Methods are safe for concurrent use.
type mail struct {
	d     *mailroom
	shard store.Shard
	fence kith.Fence
	bell  chan struct{} // holds one: look
	again chan struct{} // holds one: ask the store for outboxes

	mu     sync.Mutex
	boxes  map[string]*box
	order  byDue
	count  int  // parcels in boxes
	under  int  // of them: on their way
	repeat int  // of these: those that go again
	missed bool // an outbox had no room here
	closed bool
}

// byDue is a heap of boxes.
type byDue []*box

func (h byDue) Len() int           { return len(h) }
func (h byDue) Less(i, j int) bool { return h[i].due.Before(h[j].due) }

// Swap keeps the places.
func (h byDue) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].at, h[j].at = i, j
}

// Push adds a box.
func (h *byDue) Push(x any) {
	b := x.(*box)
	b.at = len(*h)
	*h = append(*h, b)
}

// Pop takes the last one.
func (h *byDue) Pop() any {
	last := len(*h) - 1
	b := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return b
}

// mailOf returns the mail of a shard under a fence, nil while there is none: Hosted then finds what is stored.
func (d *mailroom) mailOf(s kith.ShardID, f kith.Fence) *mail {
	d.mailMu.Lock()
	defer d.mailMu.Unlock()
	if m := d.mails[s]; m != nil && m.fence == f {
		return m
	}
	return nil
}

// sends sends the parcels of a shard until ctx ends.
func (d *mailroom) sends(ctx context.Context, s kith.ShardID, f kith.Fence) {
	m := &mail{d: d, shard: store.Shard{Type: d.name, N: s}, fence: f, bell: make(chan struct{}, 1),
		again: make(chan struct{}, 1), boxes: map[string]*box{}}
	d.mailMu.Lock()
	d.mails[s] = m
	d.mailMu.Unlock()
	all := ground.Crew{On: d.ground}
	all.Go(func() { m.scans(ctx) })
	all.Go(func() { m.forgets(ctx) })
	m.turns(ctx)
	all.Wait()
	d.mailMu.Lock()
	defer d.mailMu.Unlock()
	if d.mails[s] == m {
		delete(d.mails, s)
	}
}

// turns looks at the boxes that are due, until ctx ends.
func (m *mail) turns(ctx context.Context) {
	for ctx.Err() == nil {
		next := m.turn(m.d.ground.Now())
		m.d.ground.Wait(ctx, max(next.Sub(m.d.ground.Now()), 0), m.bell)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed, m.boxes, m.order = true, nil, nil
}

// set says what the outbox of an entity is, since a commit is known or since it was read.
func (m *mail) set(id string, version uint64, list []*parcel) {
	m.mu.Lock()
	defer m.mu.Unlock()
	b := m.boxes[id]
	switch {
	case m.closed, b != nil && b.version > version, b == nil && len(list) == 0:
		return
	case b == nil && m.count >= mostInShard:
		m.missed = true
		return
	case b == nil:
		b = &box{id: id}
		m.boxes[id] = b
		heap.Push(&m.order, b)
	}
	had := make(map[uint64]*sending, len(b.list))
	for _, p := range b.list {
		had[p.number] = p
	}
	m.count += len(list) - len(b.list)
	b.version, b.list = version, make([]*sending, len(list))
	for i, p := range list {
		if b.list[i] = had[p.number]; b.list[i] == nil {
			b.list[i] = &sending{parcel: p}
		}
	}
	if len(list) == 0 {
		delete(m.boxes, id)
		heap.Remove(&m.order, b.at)
		if m.missed && m.count < mostInShard/2 {
			m.missed = false
			m.d.ground.Ring(m.again)
		}
		return
	}
	m.look(b)
}

// look wakes a box. The lock is held.
func (m *mail) look(b *box) {
	b.due = time.Time{}
	heap.Fix(&m.order, b.at)
	m.d.ground.Ring(m.bell)
}

// room reports whether handlers may send.
func (m *mail) room() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.count < mostInShard
}

// ended returns what is known of the parcels of an entity.
func (m *mail) ended(id string) map[uint64]*sending {
	m.mu.Lock()
	defer m.mu.Unlock()
	b := m.boxes[id]
	if b == nil {
		return nil
	}
	known := map[uint64]*sending{}
	for _, p := range b.list {
		if p.ended != 0 {
			c := *p
			known[p.number] = &c
		}
	}
	return known
}

// shipment is what leaves: a parcel, or the word to an entity that it is to settle.
type shipment struct {
	b    *box
	p    *sending // nil: the word
	note note
}

// turn sends all that is due and returns when the next is.
func (m *mail) turn(now time.Time) (next time.Time) {
	next = now.Add(time.Hour)
	if m.d.stopped.Load() != nil {
		return next
	}
	var leave []shipment
	m.mu.Lock()
	for len(m.order) > 0 && m.under < mostUnderWay {
		b := m.order[0]
		if b.due.After(now) {
			next = b.due
			break
		}
		b.due = now.Add(restMost)
		leave = m.parcels(b, now, leave)
		leave = m.settles(b, now, leave)
		heap.Fix(&m.order, b.at)
	}
	m.mu.Unlock()
	for _, s := range leave {
		m.ship(s)
	}
	return next
}

// parcels adds what of a box is to be sent now. One that another one before it waits for waits too: its receiver would
// not take it.
func (m *mail) parcels(b *box, now time.Time, leave []shipment) []shipment {
	before, wall := map[string]*sending{}, m.d.ground.Wall().UnixMilli()
	for _, p := range b.list {
		if p.ended == outcomeHandled {
			continue
		}
		to := senderName(p.typ, p.id)
		last := before[to]
		before[to] = p
		if p.under || p.ended != 0 {
			continue
		}
		age := time.Duration(wall-p.made) * time.Millisecond
		if age >= giveUpAfter(m.d.seen) {
			p.ended = outcomeOld
			continue
		}
		switch {
		case last != nil && (p.gap || !last.under):
		case p.next.After(now):
			b.wants(p.next)
		case m.under >= mostUnderWay:
			b.due = now
			return leave
		case p.tries > 0 && m.repeat >= mostAgain:
			b.wants(now.Add(hold))
		default:
			n := note{kind: kindParcel, from: senderName(m.shard.Type, b.id), number: p.number, made: p.made}
			if age >= voidAfter(m.d.seen) {
				n.kind = kindVoid
			}
			if last != nil {
				n.before = last.number
			}
			p.under = true
			m.under++
			if p.tries > 0 {
				m.repeat++
			}
			leave = append(leave, shipment{b, p, n})
		}
	}
	return leave
}

// wants makes the box due by a time.
func (b *box) wants(by time.Time) {
	if by.Before(b.due) {
		b.due = by
	}
}

// settles adds the word that a box has something to settle: at once what was not delivered, and what was handled later,
// for it leaves with any commit of its sender.
func (m *mail) settles(b *box, now time.Time, leave []shipment) []shipment {
	handled, others := 0, 0
	for _, p := range b.list {
		switch p.ended {
		case 0:
		case outcomeHandled:
			handled++
		default:
			others++
		}
	}
	switch {
	case b.settling:
	case handled+others == 0:
		b.next, b.tries = time.Time{}, 0
	case b.next.IsZero() && others == 0 && handled < settleAt:
		b.next = now.Add(lazily)
		b.wants(b.next)
	case b.next.After(now) && (b.tries > 0 || others == 0 && handled < settleAt):
		b.wants(b.next)
	default:
		b.settling = true
		leave = append(leave, shipment{b, nil, note{kind: kindSettle}})
	}
	return leave
}

// ship sends one.
func (m *mail) ship(s shipment) {
	typ, id, body := m.shard.Type, s.b.id, []byte(nil)
	if s.p != nil {
		typ, id = s.p.typ, s.p.id
		if s.note.kind == kindParcel {
			body = s.p.body
		}
	}
	over := func(answer []byte, err error) {
		if s.p == nil {
			m.settled(s.b, err == nil && len(answer) == 1 && code(answer[0]) == codeOK)
			return
		}
		o, text := outcomeOf(answer, err)
		m.arrived(s.b, s.p, o, text)
	}
	c, ok := m.d.office.typeNamed(typ)
	if !ok {
		over(nil, ErrNoType)
		return
	}
	if err := c.line.AskFunc(s.note.append(nil), askTime, id, body, over); err != nil {
		over(nil, err)
	}
}

// rest returns how long to wait behind so many failures.
func rest(g ground.Ground, tries int) time.Duration {
	d := min(restFirst<<min(tries, 16), restMost)
	return d/2 + time.Duration(g.Chance(int64(d)))
}

// arrived says what became of a parcel that was on its way.
func (m *mail) arrived(b *box, p *sending, o outcome, text string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return
	}
	m.under--
	if p.under = false; p.tries > 0 {
		m.repeat--
	}
	switch {
	case o == outcomeGap && !p.gap:
		p.gap = true
		m.d.resent.Add(1)
	case o == outcomeGap || o == outcomeRetry:
		p.next = m.d.ground.Now().Add(rest(m.d.ground, p.tries))
		p.tries++
		m.d.resent.Add(1)
	case p.ended == 0:
		if p.ended, p.text = o, text; o == outcomeHandled {
			m.d.arrived.Add(1)
		}
	}
	if m.boxes[b.id] == b {
		m.look(b)
	} else {
		m.d.ground.Ring(m.bell)
	}
}

// settled says whether an entity has settled. What its outbox is then has been said before.
func (m *mail) settled(b *box, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return
	}
	b.settling = false
	if ok {
		b.next, b.tries = time.Time{}, 0
	} else {
		b.next = m.d.ground.Now().Add(rest(m.d.ground, b.tries))
		b.tries++
	}
	if m.boxes[b.id] == b {
		m.look(b)
	}
}

// scans asks the store for outboxes, and wakes the entities that are not known here, until ctx ends.
func (m *mail) scans(ctx context.Context) {
	for failures := 0; ctx.Err() == nil; {
		wait := scanEvery
		if m.scan(ctx) != nil {
			wait = min(wait, rest(m.d.ground, failures))
			failures++
		} else {
			failures = 0
		}
		m.d.ground.Wait(ctx, wait, m.again)
	}
}

// scan does so once. An error: not all were asked for, or woken.
func (m *mail) scan(ctx context.Context) (last error) {
	over, bell, woken := make(chan error, mostWoken), make(chan struct{}, mostWoken), 0
	hears := func() {
		if m.d.ground.Wait(ctx, ground.Forever, bell) { // what is still on its way when ctx ends is heard by nobody
			if err := <-over; err != nil {
				last = err
			}
		}
		woken--
	}
	ids, last := m.unsent(ctx)
	for _, id := range ids {
		full, known := m.knows(id)
		if full || ctx.Err() != nil {
			break
		}
		if known {
			continue
		}
		if woken == mostWoken {
			hears()
		}
		woken++
		m.wakes(id, func(err error) {
			over <- err
			m.d.ground.Ring(bell)
		})
	}
	for woken > 0 {
		hears()
	}
	return last
}

// unsent asks the store which outboxes there are that are not known here, for no longer than one call may take: those
// that it named in time, and an error when there may be more.
func (m *mail) unsent(ctx context.Context) (ids []string, err error) {
	short, cancel := m.d.ground.Within(ctx, m.d.patience)
	defer cancel()
	for id, err := range m.d.store.Unsent(short, m.shard) {
		if err != nil {
			return ids, err
		}
		full, known := m.knows(id)
		if full || len(ids) == mostInShard {
			break
		}
		if !known {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// wakes wakes an entity, so that it is read, and calls over once.
func (m *mail) wakes(id string, over func(error)) {
	c, ok := m.d.office.typeNamed(m.shard.Type)
	if !ok { // it is being registered
		over(ErrNoType)
		return
	}
	n := note{kind: kindWake}
	err := c.line.AskFunc(n.append(nil), askTime, id, nil, func(answer []byte, err error) {
		if err == nil {
			_, err = answered(answer)
		}
		over(err)
	})
	if err != nil {
		over(err)
	}
}

// knows reports whether there is no room, and whether an outbox is known here.
func (m *mail) knows(id string) (full, known bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, known = m.boxes[id]
	if full = m.count >= mostInShard; full {
		m.missed = true
	}
	return full, known
}

// forgets takes marks away that are older than marks are kept, as long as the shard is claimed, until ctx ends.
func (m *mail) forgets(ctx context.Context) {
	for {
		if m.d.ground.Wait(ctx, max(min(m.d.seen/10, time.Hour), time.Second/2), nil); ctx.Err() != nil {
			return
		}
		for m.d.claimed(m.shard.N, m.fence) {
			short, cancel := m.d.ground.Within(ctx, m.d.patience)
			n, err := m.d.store.ForgetMarks(short, m.shard, m.fence, m.d.ground.Wall().Add(-m.d.seen), forgetAtOnce)
			cancel()
			if err != nil || n < forgetAtOnce {
				break
			}
		}
	}
}
