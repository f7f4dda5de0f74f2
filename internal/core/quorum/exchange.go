// Exchange: replicas find by hash trees what either lacks, and an empty disk reads what the others hold.

package quorum

import (
	"bytes"
	"slices"

	"github.com/kith-io/kith/peer"
)

const (
	mostGroups = 4 // that one comparison goes into
	mostLeaves = 4 // of each of these
	pageBytes  = 256 << 10
)

// compare tells one other replica the sums of the groups that both hold.
func (m *Machine) compare() {
	others := make([]peer.ID, 0, len(m.up))
	for _, id := range m.up {
		if id != m.ident.id && m.members.Has(id) {
			others = append(others, id)
		}
	}
	if len(others) == 0 {
		return
	}
	to := others[m.rng.IntN(len(others))]
	x := &message{kind: roots, sums: make([]uint64, Groups)}
	for g := range Groups {
		if m.share(g, m.ident.id, to) {
			x.sums[g] = m.root(g)
		}
	}
	m.send(to, x)
}

// roots answers with the leaves of groups that differ, beginning with any.
func (m *Machine) roots(s *step, l *letter) {
	if len(l.x.sums) != Groups {
		m.stats.Refused++
		return
	}
	n, first := 0, m.rng.IntN(Groups)
	for k := range Groups {
		g := (first + k) % Groups
		if n == mostGroups || !m.share(g, m.ident.id, l.from) || l.x.sums[g] == m.root(g) {
			continue
		}
		n++
		s.answer(l.from, &message{kind: branch, group: uint8(g), sums: slices.Clone(m.trees[g][:])})
	}
}

// branch answers with the keys of leaves that differ, beginning with any.
func (m *Machine) branch(s *step, l *letter) {
	g := l.x.group
	if len(l.x.sums) != leaves || !m.share(int(g), m.ident.id, l.from) {
		return
	}
	n, first := 0, m.rng.IntN(leaves)
	for k := range leaves {
		leaf := uint8((first + k) % leaves)
		if n == mostLeaves || l.x.sums[leaf] == m.trees[g][leaf] {
			continue
		}
		n++
		m.tellKeys(s, l.from, g, leaf, nil)
	}
}

// tellKeys tells one range of the keys of a leaf, from after on, and the next one in the same way.
func (m *Machine) tellKeys(s *step, to peer.ID, group, leaf uint8, after []byte) {
	for more := true; more; {
		x := &message{kind: keys, group: group, leaf: leaf, key: after}
		more = false
		m.each(s, []byte{'v', group, leaf}, after, func(key []byte, e Entry) bool {
			if more = len(x.items) == maxItems; more {
				return false
			}
			x.items = append(x.items, item{key: key, digest: e.digest(key)})
			return true
		})
		if more {
			after = x.items[maxItems-1].key
			x.last = after
		}
		s.answer(to, x)
	}
}

// keysOf holds a range of another replica's keys against this one's: what that one lacks goes to it, what this one
// lacks it is asked for.
func (m *Machine) keysOf(s *step, l *letter) {
	x := l.x
	if !m.share(int(x.group), m.ident.id, l.from) {
		return
	}
	theirs := map[string]uint64{}
	for i := range x.items {
		theirs[string(x.items[i].key)] = x.items[i].digest
	}
	out, size := &message{kind: fix, group: x.group}, 0
	mine := map[string]bool{}
	m.each(s, []byte{'v', x.group, x.leaf}, x.key, func(key []byte, e Entry) bool {
		if len(x.last) > 0 && bytes.Compare(key, x.last) > 0 {
			return false
		}
		mine[string(key)] = true
		if theirs[string(key)] != e.digest(key) && len(out.items) < maxItems && size < pageBytes {
			size += e.size()
			out.items = append(out.items, item{key: key, digest: 1, entry: e})
		}
		return true
	})
	for i := range x.items {
		if key := x.items[i].key; !mine[string(key)] && len(out.items) < maxItems {
			out.items = append(out.items, item{key: key, digest: 1})
		}
	}
	if len(out.items) > 0 {
		s.answer(l.from, out)
	}
}

// fixes takes what another replica found, and gives it what that lacks. Its digest says that an answer is wanted.
func (m *Machine) fixes(s *step, l *letter) {
	out, size := &message{kind: fix, group: l.x.group}, 0
	for i := range l.x.items {
		x := &l.x.items[i]
		if g, _ := place(x.key); !m.share(int(g), m.ident.id, l.from) {
			continue
		}
		if m.merge(s, x.key, x.entry) {
			m.stats.Exchanged++
		}
		mine := m.entry(s, x.key)
		if x.digest == 1 && size < pageBytes && mine.lacks(x.entry, m.cfg.Mode) {
			size += mine.size()
			out.items = append(out.items, item{key: x.key, entry: mine})
		}
	}
	if len(out.items) > 0 {
		s.answer(l.from, out)
	}
}

// mostCatching is how many groups are read at a time.
const mostCatching = 16

// needs returns from how many other replicas of n, all of which lack nothing, one has to read until it holds each write
// that w of them had.
func needs(n, w int) int { return max(min(n-w+1, n-1), 0) }

// caughtUp reports whether this replica has read enough of a group: from so many replicas that hold all of it, or from
// every other disk, whatever it holds. The second is what is left to replicas of which most are new. Disks that leave
// have to be among them: nobody else may have what they have, where W is 1.
func (m *Machine) caughtUp(g int) bool {
	c := &m.catching[g]
	for _, id := range m.leaving {
		if !slices.Contains(c.gave, id) {
			return false
		}
	}
	return len(c.whole) >= needs(len(m.groups[g]), m.cfg.W) || len(c.gave) >= len(m.members)-1
}

// catchUp asks for what this replica lacks, once no request is under way any more that knew other members.
func (m *Machine) catchUp() {
	n := 0
	for g := range m.groups {
		if m.ident.lacking>>g&1 == 0 || n == mostCatching || m.now < m.settled {
			continue
		}
		if m.caughtUp(g) {
			m.ident.lacking &^= 1 << g
			m.pending = append(m.pending, m.ident.change())
			continue
		}
		n++
		if c := &m.catching[g]; c.from.IsZero() || m.now-c.asked > m.cfg.Timeout || !m.up.Has(c.from) {
			m.pullNext(g)
		}
	}
}

// pullNext begins to read a group from another disk.
func (m *Machine) pullNext(g int) {
	c := &m.catching[g]
	c.from, c.after = m.source(g, c, m.ident.id, m.rng), nil
	if c.from.IsZero() {
		c.gave = slices.Clone(c.whole) // the others again: they may lack less by then
		return
	}
	m.pull(g)
}

// pull asks for the next page.
func (m *Machine) pull(g int) {
	c := &m.catching[g]
	c.asked = m.now
	m.send(c.from, &message{kind: pull, group: uint8(g), key: c.after})
}

// pulled gives a page of a group, in the order of the disk, also of one that is another's by now.
func (m *Machine) pulled(s *step, l *letter) {
	g := l.x.group
	x, size := &message{kind: page, group: g, key: l.x.key}, 0
	m.each(s, []byte{'v', g}, l.x.key, func(key []byte, e Entry) bool {
		if x.more = len(x.items) == maxItems || size > pageBytes; x.more {
			return false
		}
		size += e.size()
		x.items = append(x.items, item{key: key, entry: e})
		return true
	})
	x.lacking = !m.holds(g)
	s.answer(l.from, x)
}

// paged takes a page, and asks for the next.
func (m *Machine) paged(s *step, l *letter) {
	x, g := l.x, int(l.x.group)
	c := &m.catching[g]
	if m.ident.lacking>>g&1 == 0 || c.from != l.from || !bytes.Equal(c.after, x.key) {
		return
	}
	for i := range x.items {
		if at, _ := place(x.items[i].key); int(at) == g && m.merge(s, x.items[i].key, x.items[i].entry) {
			m.stats.Exchanged++
		}
	}
	if s.failed != nil {
		return
	}
	if x.more && len(x.items) > 0 {
		c.after = slices.Clone(x.items[len(x.items)-1].key)
		m.pull(g)
		return
	}
	if c.gave = append(c.gave, l.from); !x.lacking {
		c.whole = append(c.whole, l.from)
	}
	if c.from = (peer.ID{}); m.caughtUp(g) {
		s.caught = true
	} else {
		m.pullNext(g)
	}
}

// deliver sends hints to replicas that answer again, and drops those that are too old or for nobody.
func (m *Machine) deliver() {
	m.drop(func(h *hint) bool {
		gone := m.wall-h.at > m.cfg.HintAge.Milliseconds() || !m.members.Has(h.to)
		if gone {
			m.stats.HintsGone++
		}
		return gone
	})
	n := 0
	for _, h := range m.hints {
		if n == mostDelivered || !m.up.Has(h.to) || h.asked > 0 && m.now-h.asked < m.cfg.Timeout {
			continue
		}
		n++
		h.asked = m.now
		m.send(h.to, &message{kind: write, number: hintBit | h.number, key: h.key, entry: h.entry})
	}
}
