// Replica: what others ask of this node's disk, all of a step in one commit.

package quorum

import (
	"slices"

	"github.com/kith-io/kith/peer"
)

// Sync does what was asked of the disk since the last one, in one commit, and sends the answers when that is on
// disk. When the disk refuses, nothing has changed, nobody is answered, and the error says why.
func (m *Machine) Sync() error {
	for len(m.inbox) > 0 || len(m.pending) > 0 {
		s := &step{before: map[string]Entry{}, after: map[string]Entry{}}
		inbox := m.inbox
		m.inbox = nil
		for i := range inbox {
			if s.failed == nil {
				m.open(s, &inbox[i])
			}
		}
		batch := slices.Clone(m.pending) // with what these letters have added
		for _, key := range s.keys {
			batch = append(batch, Change{Key: diskKey([]byte(key)), Value: bytesOf(s.after[key])})
		}
		if s.failed == nil && len(batch) > 0 {
			s.failed = m.disk.Commit(batch)
		}
		if s.failed != nil {
			m.unmade(s)
			m.stats.Failed++
			m.catching = [Groups]catching{} // what was taken is not on the disk
			return s.failed
		}
		m.pending = nil
		m.committed(s)
	}
	return nil
}

// committed makes what is on disk known.
func (m *Machine) committed(s *step) {
	m.counted(s)
	m.sees(s)
	if s.caught { // what was read is on disk: the next group
		m.catchUp()
	}
	for _, a := range s.answers {
		if a.from == m.ident.id {
			m.take(a.from, a.x)
		} else {
			m.send(a.from, a.x)
		}
	}
}

// open does what one letter asks.
func (m *Machine) open(s *step, l *letter) {
	x := l.x
	switch x.kind {
	case write:
		m.writes(s, l)
	case read:
		group, _ := place(x.key) // its reader may know a disk that leaves, for which this one does not stand in yet
		e := m.entry(s, x.key)
		s.answer(l.from, &message{kind: held, number: x.number, key: x.key, entry: e,
			lacking: !m.holds(group) || m.leaving.Has(m.ident.id)})
	case roots:
		m.roots(s, l)
	case branch:
		m.branch(s, l)
	case keys:
		m.keysOf(s, l)
	case fix:
		m.fixes(s, l)
	case pull:
		m.pulled(s, l)
	case page:
		m.paged(s, l)
	case lead:
		m.makes(s, l)
	}
}

// makes makes a change on this disk first: what other replicas are sent then has all that this one has ever made of the
// key, or what has replaced it.
func (m *Machine) makes(s *step, l *letter) {
	x := l.x
	group, _ := place(x.key)
	e := m.entry(s, x.key)
	c := &made{from: l.from, number: x.number}
	refuse := func(reason uint8) {
		s.answer(l.from, &message{kind: led, number: x.number, key: x.key, reason: reason})
	}
	if c.request = m.find(m.ident.id, x.number); l.from != m.ident.id {
		c.request = &request{asker: l.from, asked: x.number, key: slices.Clone(x.key), to: m.groups[group],
			wish: &PutCommand{}, deadline: m.now + m.cfg.Timeout}
	}
	switch {
	case c.request == nil || len(x.entry) != 1 || s.failed != nil: // nobody waits for it
		return
	case !m.holds(group), m.old, l.from != m.ident.id && !m.room(len(s.made)):
		refuse(unable)
		return
	case x.entry[0].Past.Of(m.ident.id) > m.seq:
		refuse(unknown)
		return
	case m.crowded(s, x):
		refuse(siblings)
		return
	}
	v, err := m.stamp(&PutCommand{Data: x.entry[0].Data, Delete: x.entry[0].Deleted})
	if err != nil {
		refuse(unable)
		return
	}
	v.Past = x.entry[0].Past
	v.seal()
	after, _ := e.Merge(Entry{v}, m.cfg.Mode)
	m.set(s, x.key, e, after.own())
	c.request.value = v
	s.made = append(s.made, c)
}

// sees has the other replicas take the changes that are on this disk now, with all else that it has of their keys.
func (m *Machine) sees(s *step) {
	for _, c := range s.made {
		r := c.request
		if r.asker.IsZero() && (r.phase != leads || r.elsewhere) {
			continue // it is over, or another replica makes it too
		}
		if !r.asker.IsZero() {
			m.enter(r)
		}
		r.acked = append(r.acked, m.ident.id)
		m.spread(r, s.after[string(r.key)])
	}
}

// unmade has another replica make the changes that this disk refuses.
func (m *Machine) unmade(s *step) {
	for _, c := range s.made {
		x := &message{kind: led, number: c.number, key: c.request.key, reason: unable}
		if c.from == m.ident.id {
			m.led(c.from, x)
		} else {
			m.send(c.from, x)
		}
	}
}

// writes takes an entry, and acknowledges it where it has a number. A disk that leaves takes what it is given, and
// counts for no W, nor for R: those that read it may be done with that.
func (m *Machine) writes(s *step, l *letter) {
	x := l.x
	reason := uint8(done)
	if x.number != 0 && m.crowded(s, x) {
		reason = siblings
	} else {
		m.merge(s, x.key, x.entry)
	}
	if x.number != 0 && !m.ahead(x.entry) && !m.leaving.Has(m.ident.id) {
		s.answer(l.from, &message{kind: wrote, number: x.number, key: x.key, reason: reason})
	}
}

// take gives an answer to its request, and keeps everything else for Sync.
func (m *Machine) take(from peer.ID, x *message) {
	switch x.kind {
	case wrote:
		m.wrote(from, x)
	case held:
		m.held(from, x)
	case led:
		m.led(from, x)
	default:
		m.inbox = append(m.inbox, letter{from, x})
	}
}
