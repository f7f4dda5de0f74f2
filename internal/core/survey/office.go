// The office: questions and answers of others, worked off beside the control goroutine, with bounds that no peer can
// leave.

package survey

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/shard"
	"github.com/kith-io/kith/wire"
)

// Bounds of what others may make a node do. What is over them is dropped: questions are put again.
const (
	maxWaiting     = 1024     // frames that wait to be worked off
	maxWaitingEach = 16       // of one peer: questions and answers of as many types as may be asked about
	maxBytes       = 16 << 20 // of the bodies that wait

	pictureAge  = 100 * time.Millisecond // of what is answered about a type, unless looking took longer
	pictureRest = 9                      // times as long as looking took, nobody looks again
	pictureKept = time.Second

	bytesPerSecond = 1 << 20 // of answers to one peer
	bytesAtOnce    = 256 << 10
	maxDebtors     = 1024
)

// Picture is what a node has of a type at one moment. It is never changed.
type Picture struct {
	Known    bool
	Shards   uint32
	Entities uint64
	List     []Shard // that live there, by number
	Term     uint32
	Moves    []shard.MoveState
}

// Page is the part of a picture that answers a question: at most MaxShards of its shards, and behind the last of them
// what moves.
func (p *Picture) Page(q Question) *Answer {
	a := &Answer{Question: q, Known: p.Known, Shards: p.Shards, Hosted: uint32(len(p.List)), Entities: p.Entities}
	from, _ := slices.BinarySearchFunc(p.List, q.From, func(s Shard, id route.ShardID) int { return int(s.ID) - int(id) })
	a.List = p.List[from:min(len(p.List), from+MaxShards)]
	if a.More = from+len(a.List) < len(p.List); !a.More {
		a.Term, a.Moves = p.Term, p.Moves[:min(len(p.Moves), MaxMoves)]
	}
	return a
}

// Needs is what an office needs of its node. All are called by the goroutine of Run.
type Needs struct {
	// Look takes a picture of a type; false: the node does not answer now. It gives up when ctx ends.
	Look func(ctx context.Context, typ route.TypeID) (*Picture, bool)
	// Send hands a frame to the transport; what is not sent is asked for again.
	Send func(to peer.ID, kind wire.Kind, body []byte)
	// Invalid counts a frame that makes no sense.
	Invalid func(from peer.ID, kind wire.Kind, err error)
	// Self is the node itself: its questions to itself take no way.
	Self peer.ID
}

// Office answers questions and reads answers. Its Desk is for callers that ask. All methods are safe for concurrent
// use.
type Office struct {
	Desk
	Needs Needs

	wake chan struct{} // capacity 1

	mu      sync.Mutex
	waiting []work
	bytes   int
	each    map[peer.ID]int

	// Of the goroutine of Run.
	pictures map[route.TypeID]*taken
	debt     map[peer.ID]time.Time // when a peer has paid for all that it was sent
	rested   time.Time             // until when nobody looks
}

// work is a frame that waits.
type work struct {
	from peer.ID
	kind wire.Kind
	body []byte
}

// taken is a picture and its time.
type taken struct {
	*Picture
	at time.Time
}

// NewOffice returns one that has nothing to do yet.
func NewOffice(needs Needs) *Office {
	return &Office{Needs: needs, wake: make(chan struct{}, 1), each: map[peer.ID]int{},
		pictures: map[route.TypeID]*taken{}, debt: map[peer.ID]time.Time{}}
}

// Put asks a member, which may be the node itself.
func (o *Office) Put(a Asked) {
	body := AppendQuestion(nil, a.Question)
	if a.To == o.Needs.Self {
		o.Take(a.To, wire.KindSurvey, body)
	} else {
		o.Needs.Send(a.To, wire.KindSurvey, body)
	}
}

// Take takes a frame of a member, of which it copies the body, and reports whether there was room for it. An answer
// that nobody awaits is not kept. It may be called from event loops.
func (o *Office) Take(from peer.ID, kind wire.Kind, body []byte) bool {
	if q, whole := Heading(kind, body); whole && kind == wire.KindSurveyAnswer && !o.Awaits(from, q.Type, q.Nonce) {
		return true
	}
	o.mu.Lock()
	room := len(o.waiting) < maxWaiting && o.each[from] < maxWaitingEach && o.bytes+len(body) <= maxBytes
	if room {
		o.waiting = append(o.waiting, work{from, kind, slices.Clone(body)})
		o.each[from]++
		o.bytes += len(body)
	}
	o.mu.Unlock()
	select {
	case o.wake <- struct{}{}:
	default:
	}
	return room
}

// Run works off what was taken, one frame after the other, until ctx ends.
func (o *Office) Run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-o.wake:
		}
		for w, any := o.first(); any && ctx.Err() == nil; w, any = o.first() {
			o.do(ctx, w)
		}
	}
}

// first takes the frame that has waited for the longest time.
func (o *Office) first() (w work, any bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.waiting) == 0 {
		return w, false
	}
	w, o.waiting[0] = o.waiting[0], work{}
	if o.waiting = o.waiting[1:]; len(o.waiting) == 0 {
		o.waiting = nil
	}
	o.bytes -= len(w.body)
	if o.each[w.from]--; o.each[w.from] <= 0 {
		delete(o.each, w.from)
	}
	return w, true
}

func (o *Office) do(ctx context.Context, w work) {
	if w.kind == wire.KindSurveyAnswer {
		a, err := ParseAnswer(w.body)
		if err != nil {
			o.Needs.Invalid(w.from, w.kind, err)
			return
		}
		o.answered(w.from, a)
		return
	}
	q, err := ParseQuestion(w.body)
	if err != nil {
		o.Needs.Invalid(w.from, w.kind, err)
		return
	}
	if w.from != o.Needs.Self && !o.owes(w.from, 0) {
		return
	}
	p := o.picture(ctx, q.Type)
	if p == nil {
		return
	}
	if a := p.Page(q); w.from == o.Needs.Self {
		o.answered(w.from, a)
	} else if body := AppendAnswer(nil, a); o.owes(w.from, len(body)) {
		o.Needs.Send(w.from, wire.KindSurveyAnswer, body)
	}
}

// answered hands an answer to the readers that wait for it, and asks on.
func (o *Office) answered(from peer.ID, a *Answer) {
	for _, next := range o.Desk.Take(from, a) {
		o.Put(next)
	}
}

// picture returns what the node has of a type, no older than it has to be; nil when it does not say. To look at a type
// takes at most a tenth of the time of one processor.
func (o *Office) picture(ctx context.Context, typ route.TypeID) *Picture {
	now := time.Now()
	if p := o.pictures[typ]; p != nil && (now.Sub(p.at) < pictureAge || now.Before(o.rested) &&
		now.Sub(p.at) < pictureKept) {
		return p.Picture
	}
	for other, p := range o.pictures { // in any order
		if now.Sub(p.at) >= pictureKept {
			delete(o.pictures, other)
		}
	}
	if wait := o.rested.Sub(now); wait > 0 {
		rest := time.NewTimer(wait)
		defer rest.Stop()
		select {
		case <-rest.C:
		case <-ctx.Done():
			return nil
		}
	}
	began := time.Now()
	p, ok := o.Needs.Look(ctx, typ)
	if !ok {
		return nil
	}
	took := time.Since(began)
	o.rested = began.Add(took + min(pictureRest*took, pictureKept))
	if p.Known { // of types that are none there may be any number
		o.pictures[typ] = &taken{p, began}
	}
	return p
}

// owes books what a peer is sent, and reports whether it may be sent that now.
func (o *Office) owes(to peer.ID, bytes int) bool {
	now := time.Now()
	until := o.debt[to]
	if until.Before(now) {
		until = now
	}
	if until.Sub(now) > bytesAtOnce*time.Second/bytesPerSecond {
		return false
	}
	if _, known := o.debt[to]; !known && len(o.debt) >= maxDebtors {
		for id, paid := range o.debt { // in any order
			if !paid.After(now) {
				delete(o.debt, id)
			}
		}
		if len(o.debt) >= maxDebtors {
			return false
		}
	}
	o.debt[to] = until.Add(time.Duration(bytes) * time.Second / bytesPerSecond)
	return true
}
