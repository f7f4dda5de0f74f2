// The desk: questions of this node to others, and the readers that wait for the answers.

package survey

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
)

// Bounds of what is asked. However many readers there are, a member is asked one question about a type at a time, and
// what it has answered is good for all of them.
const (
	// Age is how long before a reader came a question may have been put if the reader is to get its answer.
	Age = 250 * time.Millisecond
	// Again is how long a question waits for its answer until it is put again, at first; the pause doubles up to
	// mostAgain.
	Again     = 250 * time.Millisecond
	mostAgain = 2 * time.Second
	// Window is how many members are asked about one type at a time.
	Window = 32
	// MaxTypes is how many types are asked about at a time; readers of further ones wait.
	MaxTypes = 4
)

// Result is what the members had of a type when they answered. Readers share the answers: they must not be changed.
type Result struct {
	Answers map[peer.ID]*Answer // one for each that answered in full, with all its shards
	Missing peer.Set            // the others
}

// Asked is a question that is to be sent now.
type Asked struct {
	To peer.ID
	Question
}

// Desk puts questions and takes answers. The zero value has none open. It is safe for concurrent use.
type Desk struct {
	mu    sync.Mutex
	last  uint64 // nonce
	open  map[route.TypeID]*inquiry
	slots chan struct{} // of types
}

// inquiry is what is known and asked of one type.
type inquiry struct {
	readers map[*reader]struct{}
	members map[peer.ID]*account
	wanted  map[peer.ID]int // by how many readers a member is waited for
	looked  time.Time       // when it was last looked for what is due
	line    []peer.ID       // members that are to be asked when the window has room
	waiting int             // readers that have entered, or wait for a slot
	slot    bool            // it is one of MaxTypes
	until   time.Time       // when nobody reads: kept so long
}

// account is what one member said, and what it is being asked.
type account struct {
	whole *Answer   // the last one; nil: none yet
	at    time.Time // when the question for it was put

	part  *Answer // of the question that is open; nil: none is
	began time.Time
	nonce uint64
	again time.Time // when it is put again
	pause time.Duration
}

// reader waits for the answers of some members, none from before since.
type reader struct {
	since time.Time
	wants map[peer.ID]struct{}
	whole chan struct{} // closed when nobody's is missing
}

// Ask returns what members have of a type when all have answered or ctx ends, which is no error: Result.Missing names
// the others. Callers that ask about a type at the same time, or within Age, share questions and answers. send takes
// the questions that are to be put; it is called by the goroutine of the caller.
func (d *Desk) Ask(ctx context.Context, typ route.TypeID, ids []peer.ID, send func(Asked)) Result {
	r := &reader{since: time.Now().Add(-Age), wants: map[peer.ID]struct{}{}, whole: make(chan struct{})}
	q := d.enter(typ)
	d.admit(ctx, q)
	d.read(q, r, ids)
	again := time.NewTicker(Again)
	defer again.Stop()
	for over := ctx.Err() != nil; !over; {
		for _, a := range d.due(typ, q) {
			send(a)
		}
		select {
		case <-ctx.Done():
			over = true
		case <-r.whole:
			over = true
		case <-again.C:
		}
	}
	return d.leave(q, r, ids)
}

// enter finds the inquiry about a type, or begins one. Those of which nobody wants to know are forgotten.
func (d *Desk) enter(typ route.TypeID) *inquiry {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.open == nil {
		d.open, d.slots = map[route.TypeID]*inquiry{}, make(chan struct{}, MaxTypes)
	}
	now := time.Now()
	for old, q := range d.open { // in any order
		if q.waiting == 0 && now.After(q.until) {
			delete(d.open, old)
		}
	}
	q := d.open[typ]
	if q == nil {
		q = &inquiry{readers: map[*reader]struct{}{}, members: map[peer.ID]*account{}, wanted: map[peer.ID]int{}}
		d.open[typ] = q
	}
	q.waiting++
	return q
}

// admit waits until an inquiry is one of those that are open, or ctx ends.
func (d *Desk) admit(ctx context.Context, q *inquiry) {
	d.mu.Lock()
	held := q.slot
	d.mu.Unlock()
	if held {
		return
	}
	select {
	case d.slots <- struct{}{}:
	case <-ctx.Done():
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if q.slot { // another reader of the type was faster
		<-d.slots
	}
	q.slot = true
}

// read enters a reader, which wants the answers that are not there yet.
func (d *Desk) read(q *inquiry, r *reader, ids []peer.ID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, id := range ids {
		if a := q.members[id]; a == nil || a.whole == nil || a.at.Before(r.since) {
			r.wants[id] = struct{}{}
			q.wanted[id]++
		}
	}
	q.looked = time.Time{}
	if len(q.members) > 2*len(ids)+Window {
		q.prune(ids)
	}
	q.readers[r] = struct{}{}
	if len(r.wants) == 0 {
		close(r.whole)
	}
}

// leave ends a reader and returns what there is for it.
func (d *Desk) leave(q *inquiry, r *reader, ids []peer.ID) Result {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(q.readers, r)
	for id := range r.wants {
		q.unwant(id)
	}
	if q.waiting--; q.waiting == 0 {
		if q.slot {
			q.slot = false
			<-d.slots
		}
		q.until = time.Now().Add(Age)
	}
	out := Result{Answers: map[peer.ID]*Answer{}}
	for _, id := range ids {
		a := q.members[id]
		if _, missing := r.wants[id]; missing || a == nil {
			out.Missing.Add(id)
		} else {
			out.Answers[id] = a.whole
		}
	}
	return out
}

// prune forgets members that are none any more.
func (q *inquiry) prune(ids []peer.ID) {
	now := peer.SetOf(ids...)
	for id := range q.members {
		if !now.Has(id) && q.wanted[id] == 0 {
			delete(q.members, id)
		}
	}
}

// unwant notes that one reader less waits for a member.
func (q *inquiry) unwant(id peer.ID) {
	if q.wanted[id]--; q.wanted[id] <= 0 {
		delete(q.wanted, id)
	}
}

// due returns the questions that are to be put now: to members that a reader waits for and that are not being asked, or
// have not answered for too long.
func (d *Desk) due(typ route.TypeID, q *inquiry) (list []Asked) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now, under := time.Now(), 0
	if !q.slot || now.Sub(q.looked) < Again/2 { // another reader has looked
		return nil
	}
	q.looked = now
	for _, a := range q.members {
		if a.isAsked(now) {
			under++
		}
	}
	q.line = q.line[:0]
	var silent []peer.ID
	for _, id := range slices.SortedFunc(maps.Keys(q.wanted), peer.ID.Compare) {
		switch a := q.members[id]; {
		case a == nil || a.part == nil:
			q.line = append(q.line, id)
		case !a.isAsked(now):
			silent = append(silent, id)
		}
	}
	q.line = append(q.line, silent...) // those that have had their turn come last
	for ; under < Window && len(q.line) > 0; under++ {
		list = append(list, d.next(typ, q, now)...)
	}
	return list
}

// isAsked reports whether a question is open that is not to be put again yet.
func (a *account) isAsked(now time.Time) bool { return a.part != nil && now.Before(a.again) }

// next returns the question to the next member for which there was no room in the window.
func (d *Desk) next(typ route.TypeID, q *inquiry, now time.Time) []Asked {
	for len(q.line) > 0 {
		id := q.line[0]
		q.line = q.line[1:]
		a := q.members[id]
		if a == nil {
			a = &account{}
			q.members[id] = a
		}
		if !a.isAsked(now) && q.wanted[id] > 0 {
			return []Asked{{id, d.put(typ, a, now)}}
		}
	}
	return nil
}

// put begins a question, or puts it again.
func (d *Desk) put(typ route.TypeID, a *account, now time.Time) Question {
	if a.part == nil {
		d.last++
		a.part, a.nonce, a.began, a.pause = &Answer{}, d.last, now, Again
	} else {
		a.pause = min(2*a.pause, mostAgain)
	}
	a.again = now.Add(a.pause)
	return Question{Nonce: a.nonce, Type: typ, From: a.part.From}
}

// Awaits reports whether an answer with that nonce is one to a question that is open: no other is worth to be read.
func (d *Desk) Awaits(from peer.ID, typ route.TypeID, nonce uint64) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	q := d.open[typ]
	if q == nil {
		return false
	}
	a := q.members[from]
	return a != nil && a.part != nil && a.nonce == nonce
}

// Take takes an answer, and returns the questions that are to be put now. One that nobody waits for is dropped, and so
// is one about another part of the shards than asked for.
func (d *Desk) Take(from peer.ID, a *Answer) []Asked {
	d.mu.Lock()
	defer d.mu.Unlock()
	q := d.open[a.Type]
	if q == nil {
		return nil
	}
	m := q.members[from]
	if m == nil || m.part == nil || m.nonce != a.Nonce || m.part.From != a.From {
		return nil
	}
	now := time.Now()
	a.List = append(m.part.List, a.List...)
	if m.part = a; a.More {
		a.From = a.List[len(a.List)-1].ID + 1
		m.pause, m.again = Again, now.Add(Again)
		return []Asked{{from, Question{Nonce: m.nonce, Type: a.Type, From: a.From}}}
	}
	m.whole, m.at, m.part = a, m.began, nil
	for r := range q.readers { // each on its own
		if _, wants := r.wants[from]; wants && !m.at.Before(r.since) {
			q.unwant(from)
			if delete(r.wants, from); len(r.wants) == 0 {
				close(r.whole)
			}
		}
	}
	return d.next(a.Type, q, now)
}
