// Reading: an owner asks a majority whether there is a higher ballot, and one that holds the history for the answer.

package records

import (
	"slices"

	"github.com/kith-io/kith/peer"
)

// sendReads sends reads that are not under way. While a change of set is, they wait.
func (m *desk) sendReads(o *owner) {
	if o.phase == writes && o.sets.At == o.stamp.Number {
		return
	}
	for _, r := range o.reads {
		if r.id != 0 {
			continue
		}
		r.id, r.tries = m.rng.Uint64()|1, 0
		r.decided = o.stamp.Number
		if o.phase == writes {
			r.decided--
		}
		r.poll = poll{all: o.was.members(r.decided)}
		m.asksRead(o, r, o.prefers(m.ident.id))
		r.again = m.now + m.cfg.Again
		m.wake(r.again)
	}
}

// prefers returns the replica that is asked for answers: this node, or the first that is not behind.
func (o *owner) prefers(self peer.ID) (best peer.ID) {
	least := o.stamp.Number
	if o.phase == writes {
		least--
	}
	for i := range o.reps {
		if r := &o.reps[i]; r.has && r.acked >= least && (best.IsZero() || r.id == self) {
			best = r.id
		}
	}
	return best
}

// asksRead asks those that have not said yes, and one of them, or all, for the answer.
func (m *desk) asksRead(o *owner, r *request, only peer.ID) {
	for _, id := range r.poll.all {
		want := only.IsZero() || id == only
		if want || !r.poll.said(id) {
			m.send(id, &message{kind: read, shard: r.shard, number: r.id, ballot: o.ballot, want: want,
				decided: r.decided, query: r.query})
		}
	}
}

// answered: a replica answers a read of an owner.
func (m *desk) answered(from peer.ID, x *message) {
	o := m.ownerOf(x)
	if o == nil || o.ballot != x.ballot {
		return
	}
	i := slices.IndexFunc(o.reads, func(r *request) bool { return r.id == x.number })
	switch {
	case i < 0:
		return
	case x.code == no:
		m.refused(o, x.promise)
		return
	}
	r := o.reads[i]
	if x.code == yes || !r.poll.said(from) {
		r.poll.add(from, true, x)
	}
	if !o.was.decided(r.decided, r.poll.said) {
		return
	}
	for j := range r.poll.heard {
		if a := r.poll.heard[j].x; a.code == yes {
			o.reads = slices.Delete(o.reads, i, i+1)
			m.answers(o, r, a)
			return
		}
	}
}

// answers ends a read.
func (m *desk) answers(o *owner, r *request, x *message) {
	out := Outcome{Answer: x.answer}
	if r.kind == claiming {
		out.Last = o.before
	}
	m.done(r, out)
}

// readsAgain asks all members for the answers of reads that have waited.
func (m *desk) readsAgain(o *owner) {
	for _, r := range o.reads {
		if r.id != 0 && m.expired(r.again) {
			r.tries++
			r.again = m.now + m.cfg.Again<<min(r.tries, 5)
			m.wake(r.again)
			m.asksRead(o, r, peer.ID{})
		}
	}
}

// asksAnybody begins a read that asks for no fence.
func (m *desk) asksAnybody(r *request) {
	r.id = m.rng.Uint64() | 1
	r.poll = poll{all: m.own.known(r.shard)}
	r.again = m.now + m.cfg.Again
	m.wake(r.again)
	m.polls = append(m.polls, r)
	m.asksRest(r, r.poll.all)
}

// asksRest asks those of a set that have not answered.
func (m *desk) asksRest(r *request, of peer.Set) {
	for _, id := range of {
		if !r.poll.said(id) {
			m.send(id, &message{kind: read, shard: r.shard, number: r.id, want: true, query: r.query})
		}
	}
}

// anybodyAgain asks again, also members of no set that is known.
func (m *desk) anybodyAgain() {
	m.late(&m.polls)
	for _, r := range m.polls {
		if m.expired(r.again) {
			r.tries++
			r.again = m.now + m.cfg.Again<<min(r.tries, 5)
			m.wake(r.again)
			for _, id := range m.members {
				r.poll.all.Add(id)
			}
			m.asksRest(r, r.poll.all)
		}
	}
}
