// Owner: what a node does for a shard under one fence, one phase after the other.

package records

import (
	"cmp"
	"slices"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
)

// phase is what an owner does.
type phase uint8

const (
	looks    phase = 1 // whether the shard was claimed under its fence, for it does not know
	claims   phase = 2 // asks for promises
	rewrites phase = 3 // writes the last entry again under its own ballot
	serves   phase = 4
	writes   phase = 5 // has an entry under way
	rests    phase = 6 // another attempt under its fence was made
)

// Kinds of requests.
const (
	claiming   = 1
	committing = 2
	reading    = 3
	changing   = 4
)

// request is a command that has no outcome yet.
type request struct {
	number   uint64
	shard    Shard
	fence    route.Fence
	kind     uint8
	deadline time.Duration
	body     []byte
	set      peer.Set
	query    Query
	tried    bool // it was written under a ballot that is not the owner's any more

	id      uint64 // of a read that is under way; 0 for none
	decided uint64
	poll    poll
	again   time.Duration
	tries   int
	enough  func(*request, *Sets) bool // whether those that have answered are; nil: a majority is
}

// owner is that of one shard under one fence. Its history is that of base, and the entries behind it.
type owner struct {
	shard   Shard
	fence   route.Fence
	phase   phase
	ballot  Ballot
	look    uint64 // the id of its look
	poll    poll
	attempt uint64 // the highest that was heard of
	at      time.Duration
	tries   int
	duels   int // attempts that met another one

	base   Stamp  // what it took over
	entry  []byte // the last of that, where it is known
	before route.Fence
	stamp  Stamp // what it has written; the last may be undecided
	sets   Sets  // of that
	was    Sets  // of what is decided
	window [][]byte
	first  uint64 // the number of window[0]
	kept   int    // bytes of window
	reps   []rep

	waiting []*request
	flying  []*request
	reads   []*request
	results []result
}

// rep is what an owner knows of one replica.
type rep struct {
	id    peer.ID
	has   bool // it holds the history under the owner's ballot
	acked uint64
	sent  uint64 // entries up to this one are on their way
	lacks bool   // and has to copy it
}

// desk is the half of a machine that keeps the owners of its node.
type desk struct {
	*core
	own     *replica // of the same node
	members peer.Set
	up      peer.Set
	owners  []*owner                  // by shard and fence
	polls   []*request                // reads that ask for no fence
	bytes   int                       // of commits that wait
	kept    int                       // of entries for replicas that are behind
	pending int                       // requests
	gone    map[peer.ID]time.Duration // since when a member of a set is missing
}

// missing returns which of these are no replicas any more, for that long.
func (m *desk) missing(set peer.Set, after time.Duration) (gone []peer.ID) {
	for _, id := range set {
		since, known := m.gone[id]
		switch {
		case m.members.Has(id) || len(m.members) == 0:
			delete(m.gone, id)
		case !known:
			m.gone[id] = m.now
			m.wake(m.now + after)
		case m.expired(since + after):
			gone = append(gone, id)
		}
	}
	return gone
}

// replaced returns a set with others in the place of those that are gone: the disk that is at the same address now,
// else one that each shard draws by its own hash.
func replaced(sh Shard, now peer.Set, gone []peer.ID, members peer.Set) peer.Set {
	set := now.Clone()
	for _, id := range gone {
		var best peer.ID
		var most uint64
		for _, x := range members {
			sum := xxhash.Sum64(peer.AppendID([]byte(sh.key()), x))
			if x.Addr == id.Addr {
				sum = ^uint64(0)
			}
			if !set.Has(x) && (best.IsZero() || sum > most) {
				best, most = x, sum
			}
		}
		if !best.IsZero() {
			set.Remove(id)
			set.Add(best)
		}
	}
	return set
}

// find returns the place of an owner, and whether it is there.
func (m *desk) find(sh Shard, f route.Fence) (int, bool) {
	return slices.BinarySearchFunc(m.owners, sh, func(o *owner, sh Shard) int {
		return cmp.Or(o.shard.compare(sh), o.fence.Compare(f))
	})
}

// ends gives a request its outcome.
func (m *desk) done(r *request, out Outcome) {
	out.Number = r.number
	m.pending--
	m.bytes -= len(r.body)
	if r.number != 0 { // it is not the owner's own
		m.effects.Done = append(m.effects.Done, out)
	}
}

// ownerOf returns the owner that a message answers.
func (m *desk) ownerOf(x *message) *owner {
	if i, there := m.find(x.shard, x.ballot.Fence); there {
		return m.owners[i]
	}
	return nil
}

// refused: a higher ballot was promised. Under a higher fence it is over; under the same another attempt was made, by
// another process of this owner, and it makes one more where there is something to do.
func (m *desk) refused(o *owner, by Ballot) {
	if by.Compare(o.ballot) <= 0 {
		return
	}
	if by.Fence != o.fence {
		m.leaves(o, ErrFenced)
		return
	}
	o.attempt = max(o.attempt, by.Attempt)
	o.flying = slices.DeleteFunc(o.flying, func(r *request) bool { return r == nil })
	for _, r := range o.flying {
		r.tried = true
	}
	o.waiting, o.flying = append(o.flying, o.waiting...), nil
	for _, r := range o.reads {
		r.id = 0
	}
	o.waiting = slices.DeleteFunc(o.waiting, func(r *request) bool { // it cares for a shard for which another one does
		cares := r.kind == claiming && r.number == 0
		if cares {
			m.done(r, Outcome{Err: ErrTimeout})
		}
		return cares
	})
	o.phase, o.at = rests, never
	if len(o.waiting)+len(o.reads) > 0 {
		o.duels++
		o.at = m.now + 1 + time.Duration(m.rng.Int64N(int64(m.cfg.Again/16+1)<<min(o.duels, 8)))
		m.wake(o.at)
	}
}

// leaves: the owner is none any more, for this reason.
func (m *desk) leaves(o *owner, reason error) {
	for _, r := range o.flying {
		if r != nil {
			m.done(r, Outcome{Err: ErrTimeout}) // a later owner may take it over
		}
	}
	for _, r := range slices.Concat(o.waiting, o.reads) {
		m.done(r, Outcome{Err: reason})
	}
	o.flying, o.waiting, o.reads = nil, nil, nil
	m.drop(o)
}

// drop forgets an owner.
func (m *desk) drop(o *owner) {
	m.kept -= o.kept
	o.phase, o.kept, o.window = 0, 0, nil
	m.owners = slices.DeleteFunc(m.owners, func(x *owner) bool { return x == o })
}

// idle reports whether nothing was asked of an owner that has no outcome yet.
func (o *owner) idle() bool { return len(o.waiting)+len(o.flying)+len(o.reads) == 0 }

// asksSets keeps the replicas that the owner writes to.
func (o *owner) asksSets() {
	all := o.sets.members(o.stamp.Number)
	var reps []rep
	for _, id := range all {
		r := rep{id: id}
		for i := range o.reps {
			if o.reps[i].id == id {
				r = o.reps[i]
			}
		}
		reps = append(reps, r)
	}
	o.reps = reps
}

// late ends the requests of a list that are past their time.
func (m *desk) late(list *[]*request) {
	*list = slices.DeleteFunc(*list, func(r *request) bool {
		if !m.expired(r.deadline) {
			return false
		}
		m.done(r, Outcome{Err: ErrTimeout})
		return true
	})
}

// lateFlying ends what is in the entry under way. The entry stays there: each in its place, for results.
func (m *desk) lateFlying(o *owner) {
	for i, r := range o.flying {
		if r != nil && m.expired(r.deadline) {
			m.done(r, Outcome{Err: ErrTimeout})
			o.flying[i] = nil
		}
	}
}

// retry has an owner send again what is not answered, later each time.
func (m *desk) retry(o *owner) {
	o.at = m.now + m.cfg.Again<<min(o.tries, 5)
	m.wake(o.at)
}
