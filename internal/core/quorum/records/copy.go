// Copies: a replica that lacks a history takes it whole from one that has it, part by part, while that one goes on.

package records

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/kith-io/kith/peer"
)

const (
	clearing    kind = 12   // to this node alone: the place of a state that is used no more
	clearAtOnce      = 1024 // keys
)

// patience is after which a copy in which nothing happens is over.
func (m *replica) patience() time.Duration { return 40 * m.cfg.Again }

func (m *replica) inOf(sh Shard) *in {
	for _, c := range m.ins {
		if c.shard == sh {
			return c
		}
	}
	return nil
}

// fetches begins a copy: first the place that it comes to is emptied.
func (m *replica) fetches(s *step, l *letter) {
	sh := l.x.shard
	h := m.headOf(s, sh)
	c := m.inOf(sh)
	if h != nil && (h.promise.Compare(l.x.ballot) > 0 || h.stamp.Ballot == l.x.ballot) {
		m.knows(s, l, h)
		return
	}
	if h == nil || c != nil && c.number != 0 || c == nil && len(m.ins) >= m.cfg.MaxCopies || !m.room(h) ||
		l.x.from == m.ident.id {
		return
	}
	if c == nil {
		c = &in{shard: sh, source: l.x.from, owner: l.from, until: m.now + m.patience(), again: never}
		m.ins = append(m.ins, c)
		m.wake(c.until)
	}
	if m.cleared(s, sh, 1-h.place) {
		c.number = m.rng.Uint64() | 1
		c.again = m.now + m.cfg.Again
		m.wake(c.again)
		s.answer(c.source, c.asks())
	} else {
		m.later = append(m.later, *l)
	}
}

// knows tells an owner that has this disk copy what it need not: the disk has promised a higher ballot, or holds that
// history by now, and what it said of it was lost or came before what it had said earlier.
func (m *replica) knows(s *step, l *letter, h *head) {
	a := &message{kind: wrote, shard: l.x.shard, ballot: l.x.ballot, promise: h.promise, stamp: h.stamp}
	if h.stamp.Ballot != l.x.ballot {
		a.code = no
	} else if _, results, err := m.opened(&view{disk: m.disk, layers: []changes{s.over}}, l.x.shard, h); err != nil {
		s.failed = err
		return
	} else {
		a.results = results
	}
	s.answer(l.from, a)
}

// asks returns the message that asks for the next part.
func (c *in) asks() *message {
	return &message{kind: pull, shard: c.shard, number: c.number, part: c.part, from: c.owner}
}

// cleared has this step take some keys of a place away, and reports whether those were all.
func (m *replica) cleared(s *step, sh Shard, place uint8) bool {
	v := &view{disk: m.disk, layers: []changes{s.over}}
	n := 0
	v.each(sh.stateKey(place), "", func(key string, _ []byte) bool {
		s.over[key] = nil
		n++
		return n < clearAtOnce
	})
	if v.failed != nil {
		s.failed = v.failed
	}
	return n < clearAtOnce
}

// clears goes on emptying the place that a state has left.
func (m *replica) clears(s *step, l *letter) {
	if h := m.headOf(s, l.x.shard); h != nil && m.inOf(l.x.shard) == nil && !m.cleared(s, l.x.shard, 1-h.place) {
		m.later = append(m.later, *l)
	}
}

// pulled gives one part of a copy, the same again where it was asked for before.
func (m *replica) pulled(l *letter) {
	x := l.x
	h, err := m.loaded(x.shard)
	if err != nil {
		m.stats.Damaged++
		return
	}
	at := slices.IndexFunc(m.outs, func(c *out) bool { return c.taker == l.from && c.shard == x.shard })
	if at >= 0 && m.outs[at].number != x.number && x.part == 0 {
		m.outs = slices.Delete(m.outs, at, at+1)
		at = -1
	}
	if at < 0 && x.part == 0 && len(m.outs) < m.cfg.MaxCopies && !h.fresh {
		at = len(m.outs)
		m.outs = append(m.outs, &out{shard: x.shard, taker: l.from, number: x.number, place: h.place,
			dirty: map[string]struct{}{}})
	}
	if at < 0 || m.outs[at].number != x.number {
		m.reply(l.from, h.held(part, x, no))
		return
	}
	c := m.outs[at]
	c.until = m.now + m.patience()
	m.wake(c.until)
	switch {
	case c.last != nil && x.part == c.last.part: // it was lost
	case c.last == nil && x.part != 0, c.last != nil && (x.part != c.last.part+1 || c.last.code == yes):
		return
	default:
		if c.last = m.nextPart(c, h, x); c.last == nil {
			m.stats.Failed++
			m.outs = slices.Delete(m.outs, at, at+1)
			return
		}
	}
	m.reply(l.from, c.last)
}

// nextPart returns what of a state has changed behind the cursor, and then what follows it, as much as fits.
func (m *replica) nextPart(c *out, h *head, x *message) *message {
	a := h.held(part, x, without)
	a.part, a.sets, a.entry = x.part, h.sets, h.entry
	base, room := c.shard.stateKey(c.place), m.cfg.Page
	add := func(key string, value []byte) bool {
		a.items = append(a.items, Change{Key: []byte(key[len(base):]), Value: value})
		room -= len(key) - len(base) + len(value)
		return room > 0 && len(a.items) < maxItems
	}
	v := &view{disk: m.disk}
	more := true
	for _, key := range slices.Sorted(maps.Keys(c.dirty)) {
		if more {
			delete(c.dirty, key)
			more = add(key, v.get(key))
		}
	}
	if more {
		v.each(base, c.cursor, func(key string, value []byte) bool {
			c.cursor = strings.Clone(key)
			more = add(key, slices.Clone(value))
			return more
		})
	}
	if v.failed != nil {
		return nil
	}
	if more {
		a.code = yes
	} else {
		a.entry = nil
	}
	return a
}

// parted takes one part, and the history when it is the last one.
func (m *replica) parted(s *step, l *letter) {
	x, c := l.x, m.inOf(l.x.shard)
	if c == nil || c.number != x.number || c.source != l.from {
		return
	}
	if x.code == no {
		m.ends(c)
		return
	}
	h := m.headOf(s, x.shard)
	if x.part != c.part || h == nil {
		return
	}
	base := x.shard.stateKey(1 - h.place)
	for _, change := range x.items {
		s.over[base+string(change.Key)] = slices.Clone(change.Value)
	}
	if x.code == without {
		c.part++
		c.until, c.again = m.now+m.patience(), m.now+m.cfg.Again
		m.wake(c.again)
		s.answer(c.source, c.asks())
		return
	}
	m.ends(c)
	m.takes(s, h, x, c.owner)
}

// takes makes a copy that is whole the history of this disk, as one that its owner has written: refused below the
// promise.
func (m *replica) takes(s *step, h *head, x *message, owner peer.ID) {
	chain := x.state
	if x.entry != nil {
		chain = chained(chain, x.entry)
	}
	m.later = append(m.later, letter{m.ident.id, &message{kind: clearing, shard: x.shard}})
	if h.promise.Compare(x.stamp.Ballot) > 0 || !x.stamp.newer(h.stamp) || chain != x.stamp.Chain {
		return
	}
	n := &head{promise: x.stamp.Ballot, stamp: x.stamp, before: x.before, place: 1 - h.place, sets: x.sets,
		state: x.state, entry: slices.Clone(x.entry), fresh: h.fresh}
	m.put(s, x.shard, n)
	m.outs = slices.DeleteFunc(m.outs, func(c *out) bool { return c.shard == x.shard })
	m.stats.Copied++
	_, results, err := m.opened(&view{disk: m.disk, layers: []changes{s.over}}, x.shard, n)
	if err != nil {
		s.failed = err
		return
	}
	s.answer(owner, &message{kind: wrote, shard: x.shard, ballot: n.stamp.Ballot, promise: n.promise, stamp: n.stamp,
		results: results})
}

// ends forgets a copy.
func (m *replica) ends(c *in) {
	m.ins = slices.DeleteFunc(m.ins, func(o *in) bool { return o == c })
}

// tickCopies asks again, and gives up what does not go on.
func (m *replica) tickCopies() {
	m.outs = slices.DeleteFunc(m.outs, func(c *out) bool { return m.expired(c.until) })
	m.ins = slices.DeleteFunc(m.ins, func(c *in) bool { return m.expired(c.until) })
	for _, c := range m.ins {
		if c.number != 0 && m.expired(c.again) {
			c.again = m.now + m.cfg.Again
			m.wake(c.again)
			m.send(c.source, c.asks())
		}
	}
}
