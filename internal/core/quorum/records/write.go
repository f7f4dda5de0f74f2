// Writing: an owner's entries, one under way at a time, and what each replica has of them.

package records

import (
	"slices"

	"github.com/kith-io/kith/peer"
)

// wrote: a replica says what it holds under the owner's ballot, or why it holds nothing.
func (m *desk) wrote(from peer.ID, x *message) {
	o := m.ownerOf(x)
	if o == nil || o.ballot != x.ballot || o.phase != rewrites && o.phase != serves && o.phase != writes {
		return
	}
	i := slices.IndexFunc(o.reps, func(r rep) bool { return r.id == from })
	switch {
	case x.code == no:
		m.refused(o, x.promise)
		return
	case i < 0:
		return
	case x.code == lacks:
		o.reps[i].lacks, o.reps[i].has = true, false
		m.feed(o, &o.reps[i], true)
		return
	}
	r := &o.reps[i]
	if x.stamp.Number == o.stamp.Number {
		if x.stamp.Chain != o.stamp.Chain {
			m.stats.Diverged++
			return
		}
		o.results = x.results
	}
	r.has, r.lacks, r.acked = true, false, max(r.acked, x.stamp.Number)
	m.feed(o, r, false)
	if o.phase != serves && o.sets.decided(o.stamp.Number, o.holds) {
		m.decides(o)
	}
	m.trims(o)
}

// holds reports whether a replica holds the whole history.
func (o *owner) holds(id peer.ID) bool {
	for i := range o.reps {
		if r := &o.reps[i]; r.id == id {
			return r.has && r.acked >= o.stamp.Number
		}
	}
	return false
}

// decides: what is under way is decided.
func (m *desk) decides(o *owner) {
	if o.phase == writes {
		m.stats.Entries++
	} else {
		m.supersedes(o)
	}
	o.phase, o.tries, o.duels, o.was = serves, 0, 0, o.sets
	flying, results := o.flying, o.results
	o.flying, o.results = nil, nil
	for i, r := range flying {
		var out Outcome
		switch {
		case r == nil:
			continue
		case r.kind == changing:
		case i >= len(results):
			out.Err = ErrTimeout
		case results[i].version && r.tried:
			out.Err = ErrTimeout // it may have been written before, and followed
		case results[i].version:
			out.Err = ErrVersion
		default:
			out.Count = results[i].count
			m.stats.Commits++
		}
		m.done(r, out)
	}
	m.goesOn(o)
}

// supersedes drops owners of the shard at this node under lower fences, where they have nothing to do.
func (m *desk) supersedes(o *owner) {
	for _, x := range slices.Clone(m.owners) {
		if x.shard == o.shard && x.fence.Compare(o.fence) < 0 && x.idle() {
			m.drop(x)
		}
	}
}

// goesOn has an owner that serves begin what waits.
func (m *desk) goesOn(o *owner) {
	if o.phase == serves {
		m.begins(o)
	}
	if o.phase == serves || o.phase == writes {
		m.sendReads(o)
	}
}

// begins puts all that waits into the next entry, as much as fits; a change of set goes alone.
func (m *desk) begins(o *owner) {
	body, taken := m.next(o)
	o.waiting = slices.Delete(o.waiting, 0, taken)
	if body == nil {
		return
	}
	o.phase, o.tries = writes, 0
	o.stamp.Number++
	o.stamp.Chain = chained(o.stamp.Chain, body)
	if len(o.flying) > 0 && o.flying[0].set != nil {
		o.sets = o.sets.changed(o.flying[0].set, o.stamp.Number)
		for _, r := range o.reads {
			r.id = 0 // reads wait for the new set
		}
	}
	o.window, o.kept, m.kept = append(o.window, body), o.kept+len(body), m.kept+len(body)
	o.results = nil
	o.asksSets()
	m.feeds(o, false)
	m.retry(o)
}

// next returns the next entry, nil for none, and how many of those that wait it has taken. Behind a change there is
// always one, be it empty: until it is decided, the shard needs a majority of the set before, and those may be gone.
func (m *desk) next(o *owner) (body []byte, taken int) {
	var commands [][]byte
	size := 0
	for _, r := range o.waiting {
		switch size += len(r.body); {
		case r.kind == claiming: // the owner has its claim: what is left to say is the floor
			r.query = Query{Ask: AskFloor}
			o.reads = append(o.reads, r)
			taken++
			continue
		case len(commands) > 0 && (r.kind == changing || size > m.cfg.MaxEntry-64), len(commands) == maxBatch:
			return appendBatch(nil, commands), taken
		}
		taken++
		o.flying = append(o.flying, r)
		if r.kind == changing {
			return appendChange(nil, r.set), taken
		}
		commands = append(commands, r.body)
	}
	if len(commands) == 0 && (o.sets.At != o.stamp.Number || o.stamp.Number == 0) {
		return nil, taken
	}
	return appendBatch(nil, commands), taken
}

// feeds sends each replica what it lacks, and reports whether any lacks something.
func (m *desk) feeds(o *owner, again bool) (behind bool) {
	for i := range o.reps {
		r := &o.reps[i]
		if r.has && r.acked >= o.stamp.Number {
			continue
		}
		if o.phase != serves || m.up.Has(r.id) {
			behind = true
			m.feed(o, r, again)
		}
	}
	return behind
}

// feed sends a replica what it lacks: entries that the owner still has, or where the whole history is.
func (m *desk) feed(o *owner, r *rep, again bool) {
	if r.has && (r.acked >= o.stamp.Number || !again && r.sent >= o.stamp.Number) {
		return
	}
	next := max(r.acked, o.base.Number, r.sent) + 1
	if again || !r.has {
		next = max(r.acked, o.base.Number) + 1
	}
	if r.lacks || next < o.first {
		if again {
			m.points(o, r)
		}
		return
	}
	x := &message{kind: write, shard: o.shard, ballot: o.ballot, stamp: o.base, before: o.before, number: next}
	if !r.has {
		x.entry = o.entry
	}
	size := 0
	for _, body := range o.window[next-o.first:] {
		if size += len(body); len(x.entries) > 0 && size > m.cfg.MaxEntry || len(x.entries) == maxEntries {
			break
		}
		x.entries = append(x.entries, body)
	}
	r.sent = next + uint64(len(x.entries)) - 1
	m.send(r.id, x)
}

// points tells a replica where the history is that it lacks: at this node, or at others that hold it, one after the
// other. A disk that was lost held it too, and is in the set before as long as that counts.
func (m *desk) points(o *owner, r *rep) {
	var sources, up []peer.ID
	for i := range o.reps {
		x := &o.reps[i]
		switch {
		case !x.has || x.id == r.id:
		case x.id == m.ident.id:
			m.send(r.id, &message{kind: fetch, shard: o.shard, ballot: o.ballot, from: x.id})
			return
		default:
			sources = append(sources, x.id)
			if m.up.Has(x.id) {
				up = append(up, x.id)
			}
		}
	}
	if len(up) > 0 {
		sources = up
	}
	if len(sources) > 0 {
		m.send(r.id, &message{kind: fetch, shard: o.shard, ballot: o.ballot, from: sources[o.tries%len(sources)]})
	}
}

// trims forgets entries that all replicas have, and the oldest ones where they are too many. What is not decided stays.
func (m *desk) trims(o *owner) {
	least := o.stamp.Number
	for i := range o.reps {
		if r := &o.reps[i]; r.has {
			least = min(least, r.acked)
		} else {
			least = min(least, o.base.Number)
		}
	}
	for len(o.window) > 0 && (o.first <= least ||
		len(o.window) > 1 && (o.kept > m.cfg.MaxWindow || m.kept > m.cfg.MaxBytes)) {
		o.kept, m.kept = o.kept-len(o.window[0]), m.kept-len(o.window[0])
		o.window[0] = nil
		o.window, o.first = o.window[1:], o.first+1
	}
}
