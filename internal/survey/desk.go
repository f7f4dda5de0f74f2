// The desk: questions of this node that wait for answers.

package survey

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
)

// Again is how often a question is put again to whom it has not been answered by.
const Again = 250 * time.Millisecond

// Result is what the members had of a type when they answered.
type Result struct {
	Answers map[peer.ID]*Answer // one for each that answered in full, with all its shards
	Missing peer.Set            // the others
}

// Desk puts questions and takes answers. The zero value has none open. It is safe for concurrent use.
type Desk struct {
	mu   sync.Mutex
	last uint64 // nonce
	open map[uint64]*round
}

// round is one question to many.
type round struct {
	wants  map[peer.ID]*want // those whose answer is not whole
	result Result
	wake   chan struct{} // capacity 1
}

// want is what came of an answer so far, and whether the rest has been asked for.
type want struct {
	have  *Answer
	asked bool
}

// Ask puts a question about a type to members, again and again, and returns when all have answered or ctx ends, which
// is no error: Result.Missing says who has not. send takes the frame's body.
func (d *Desk) Ask(ctx context.Context, typ route.TypeID, ids []peer.ID, send func(to peer.ID, body []byte)) Result {
	r := &round{wants: map[peer.ID]*want{}, wake: make(chan struct{}, 1)}
	r.result.Answers = map[peer.ID]*Answer{}
	for _, id := range ids {
		r.wants[id] = &want{have: &Answer{}}
	}
	nonce := d.enter(r)
	again := time.NewTicker(Again)
	defer again.Stop()
	for repeat := false; ; {
		for _, q := range d.due(r, Question{Nonce: nonce, Type: typ}, repeat) {
			send(q.to, AppendQuestion(nil, q.Question))
		}
		if d.over(nonce) || ctx.Err() != nil {
			return d.leave(nonce, r)
		}
		select {
		case <-ctx.Done():
			return d.leave(nonce, r)
		case <-r.wake:
			repeat = false
		case <-again.C:
			repeat = true
		}
	}
}

func (d *Desk) enter(r *round) uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.last++
	if d.open == nil {
		d.open = map[uint64]*round{}
	}
	d.open[d.last] = r
	return d.last
}

// over reports whether nobody's answer is missing.
func (d *Desk) over(nonce uint64) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.open[nonce].wants) == 0
}

func (d *Desk) leave(nonce uint64, r *round) Result {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.open, nonce)
	for id := range r.wants { // into a set: the order does not show
		r.result.Missing.Add(id)
	}
	return r.result
}

type asked struct {
	to peer.ID
	Question
}

// due lists the questions to those whose answer is not whole: those that were not put yet, or all again.
func (d *Desk) due(r *round, q Question, again bool) []asked {
	d.mu.Lock()
	defer d.mu.Unlock()
	var list []asked
	for id, w := range r.wants {
		if !w.asked || again {
			w.asked, q.From = true, w.have.From
			list = append(list, asked{id, q})
		}
	}
	slices.SortFunc(list, func(a, b asked) int { return a.to.Compare(b.to) })
	return list
}

// Take takes an answer; one that nobody waits for is dropped, and so is one about another part of the shards than asked
// for.
func (d *Desk) Take(from peer.ID, a *Answer) {
	d.mu.Lock()
	defer d.mu.Unlock()
	r := d.open[a.Nonce]
	if r == nil {
		return
	}
	w := r.wants[from]
	if w == nil || w.have.From != a.From {
		return
	}
	a.List = append(w.have.List, a.List...)
	if *w = (want{have: a}); a.More {
		a.From = a.List[len(a.List)-1].ID + 1
	} else {
		delete(r.wants, from)
		r.result.Answers[from] = a
	}
	select {
	case r.wake <- struct{}{}:
	default:
	}
}
