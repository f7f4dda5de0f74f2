// Bulk room: the bound on the large messages that a node holds for others, and what each peer may have of it (SEC-4).

package flow

import (
	"slices"

	"github.com/kith-io/kith/internal/base/invariant"
	"github.com/kith-io/kith/peer"
)

// BulkHolder is what receivers claim room from, all of a node from one. A runtime with threads makes it safe for
// concurrent use; BulkRoom is the plain one.
type BulkHolder interface {
	// Take claims n bytes for a message of a peer and reports whether it has them now. If not, it waits for its turn.
	Take(from peer.ID, k BulkKey, n int) bool
	// Drop takes a message of a peer out of those that wait.
	Drop(from peer.ID, k BulkKey)
	// Give returns n bytes that a peer's messages had.
	Give(from peer.ID, n int)
}

// BulkRoom bounds the bytes of large messages that a node gathers, and of those that lie with their entities until they
// are handled. A message that finds no room waits, first come, first served, so that small ones do not starve a large
// one. There are at most MaxBulkActive of them for each connection. Limit is at least the largest message that any
// receiver takes.
//
// A peer has a share: half of the room, or less when more than two peers hold some of it or wait for some, equal parts
// then. One that holds something gets no more beyond its share, and those behind it in the row are served. So a peer
// with messages that never come to their end leaves half of the room to others.
type BulkRoom struct {
	Limit   int
	used    int
	queue   []bulkWait
	parties map[peer.ID]*bulkParty
	pass    uint64
}

type bulkWait struct {
	from peer.ID
	key  BulkKey
	n    int
}

// bulkParty is a peer that holds room or waits for some.
type bulkParty struct {
	held, waits int
	passed      uint64 // the pass in which one of its messages was passed over, and so all behind that
}

// Share is how much of the room a peer may hold that holds some already.
func (r *BulkRoom) Share() int { return r.Limit / max(2, len(r.parties)) }

// Held returns how many bytes a peer holds.
func (r *BulkRoom) Held(from peer.ID) int {
	if p := r.parties[from]; p != nil {
		return p.held
	}
	return 0
}

func (r *BulkRoom) party(id peer.ID) *bulkParty {
	p := r.parties[id]
	if p == nil {
		if r.parties == nil {
			r.parties = map[peer.ID]*bulkParty{}
		}
		p = &bulkParty{}
		r.parties[id] = p
	}
	return p
}

// leave forgets a peer that holds nothing and waits for nothing.
func (r *BulkRoom) leave(id peer.ID) {
	if p := r.parties[id]; p != nil && p.held == 0 && p.waits == 0 {
		delete(r.parties, id)
	}
}

// Take claims n bytes at once if it is k's turn and they fit; else k waits, and Turn names it in its turn.
func (r *BulkRoom) Take(from peer.ID, k BulkKey, n int) bool {
	r.queue = append(r.queue, bulkWait{from, k, n})
	r.party(from).waits++
	if i := r.next(); i >= 0 && r.queue[i].key == k {
		r.claim(i)
		return true
	}
	return false
}

// next returns the place in the queue of the message that is next and fits; negative: none.
func (r *BulkRoom) next() int {
	r.pass++
	share := r.Share()
	for i := range r.queue {
		w := &r.queue[i]
		p := r.parties[w.from]
		switch {
		case p.passed == r.pass || p.held > 0 && p.held+w.n > share:
			p.passed = r.pass
		case w.n <= r.Limit-r.used:
			return i
		default:
			return -1 // what comes free is kept for it
		}
	}
	return -1
}

func (r *BulkRoom) claim(i int) bulkWait {
	w := r.queue[i]
	r.queue = slices.Delete(r.queue, i, i+1)
	p := r.parties[w.from]
	p.waits--
	p.held += w.n
	r.used += w.n
	return w
}

// Drop forgets that k waits.
func (r *BulkRoom) Drop(from peer.ID, k BulkKey) {
	i := slices.IndexFunc(r.queue, func(w bulkWait) bool { return w.from == from && w.key == k })
	if i < 0 {
		return
	}
	r.queue = slices.Delete(r.queue, i, i+1)
	r.parties[from].waits--
	r.leave(from)
}

// Give returns n bytes. Turn may have something to tell afterwards, as after Drop.
func (r *BulkRoom) Give(from peer.ID, n int) {
	p := r.parties[from]
	invariant.Check(p != nil && p.held >= n, "flow: more room of large messages comes back than was claimed")
	r.used -= n
	p.held -= n
	r.leave(from)
}

// Turn returns the message that is next, with n bytes claimed for it. Call it until there is none.
func (r *BulkRoom) Turn() (from peer.ID, k BulkKey, n int, ok bool) {
	i := r.next()
	if i < 0 {
		return peer.ID{}, BulkKey{}, 0, false
	}
	w := r.claim(i)
	return w.from, w.key, w.n, true
}

// Used returns how many bytes are claimed, Waiting how many messages wait.
func (r *BulkRoom) Used() int { return r.used }

// Waiting returns how many messages wait for room.
func (r *BulkRoom) Waiting() int { return len(r.queue) }
