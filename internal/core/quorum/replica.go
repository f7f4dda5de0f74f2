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
			batch = append(batch, Change{diskKey([]byte(key)), bytesOf(s.after[key])})
		}
		if s.failed == nil && len(batch) > 0 {
			s.failed = m.disk.Commit(batch)
		}
		if s.failed != nil {
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
		group, _ := place(x.key)
		e := m.entry(s, x.key)
		s.answer(l.from, &message{kind: held, number: x.number, key: x.key, entry: e,
			lacking: m.ident.lacking>>group&1 == 1})
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
	}
}

// writes takes an entry, and acknowledges it where it has a number.
func (m *Machine) writes(s *step, l *letter) {
	x := l.x
	reason := uint8(done)
	if x.number != 0 && m.crowded(s, x) {
		reason = siblings
	} else {
		m.merge(s, x.key, x.entry)
	}
	if x.number != 0 && !m.ahead(x.entry) {
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
	default:
		m.inbox = append(m.inbox, letter{from, x})
	}
}
