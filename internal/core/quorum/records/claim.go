// Claiming: an owner asks for promises, takes the newest history over, and writes its last entry again.

package records

import (
	"github.com/kith-io/kith/peer"
)

// claims begins an attempt.
func (m *desk) claims(o *owner) {
	o.phase, o.tries = claims, 0
	o.attempt++
	o.ballot = Ballot{o.fence, o.attempt, m.rng.Uint64()}
	o.poll = poll{all: m.own.known(o.shard)}
	for _, r := range o.reads {
		r.id = 0
	}
	m.asksAll(o)
	m.retry(o)
}

// asksAll asks those that have not said yes, for a promise or for what they know.
func (m *desk) asksAll(o *owner) {
	for _, id := range o.poll.all.Clone() {
		if !o.poll.said(id) {
			m.asksOne(o, id)
		}
	}
}

func (m *desk) asksOne(o *owner, id peer.ID) {
	if o.phase == looks {
		m.send(id, &message{kind: read, shard: o.shard, number: o.look})
	} else {
		m.send(id, &message{kind: claim, shard: o.shard, ballot: o.ballot})
	}
}

// hears adds an answer to a poll, and asks those that it names.
func (m *desk) hears(o *owner, from peer.ID, ok bool, x *message) {
	was := o.poll.all.Clone()
	o.poll.add(from, ok, x)
	for _, id := range o.poll.all.Clone() {
		if !was.Has(id) {
			m.asksOne(o, id)
		}
	}
}

// looked: an owner hears what others know of its fence.
func (m *desk) looked(o *owner, from peer.ID, x *message) {
	m.hears(o, from, true, x)
	if _, enough := o.poll.newest(); !enough {
		return
	}
	switch o.poll.fence().Compare(o.fence) {
	case 1:
		m.leaves(o, ErrFenced)
	case -1:
		m.leaves(o, ErrUnclaimed)
	default:
		o.attempt = o.poll.attempt(o.fence)
		m.claims(o)
	}
}

// promised: a replica has promised the owner's ballot, or a higher one before.
func (m *desk) promised(from peer.ID, x *message) {
	o := m.ownerOf(x)
	switch {
	case o == nil || o.phase != claims || o.ballot != x.ballot:
	case x.code == no:
		m.refused(o, x.promise)
	case x.code != yes:
	default:
		m.hears(o, from, true, x)
		if best, enough := o.poll.newest(); enough {
			m.takesOver(o, best)
		}
	}
}

// takesOver: those that have promised decide the newest history. The owner writes its last entry again.
func (m *desk) takesOver(o *owner, best *message) {
	o.phase, o.tries = rewrites, 0
	o.base, o.entry, o.stamp = best.stamp, best.entry, best.stamp
	o.stamp.Ballot = o.ballot
	o.sets, o.was = best.sets, best.sets
	o.before = best.stamp.Ballot.Fence
	if o.before == o.fence {
		o.before = best.before
	}
	m.kept -= o.kept
	o.window, o.kept, o.first = nil, 0, best.stamp.Number+1
	o.reps, o.results, o.poll = nil, nil, poll{}
	o.asksSets()
	m.feeds(o, true)
	m.retry(o)
}
