// Patience: when the picture has stood still for long enough, what puts a decision off, and when it has gone on
// changing for too long (MEM-10).

package sbr

import (
	"fmt"
	"time"

	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
)

// lateBy is how late a step may be before what was due counts as overslept.
const lateBy = time.Second

// due is when something is to be decided, a warning aside.
func (m *Machine) due() time.Duration {
	at := max(m.decideAt(), m.againAt)
	if limit, ok := m.cfg.unstableFor(m.stable); ok && m.changes > 0 {
		at = min(at, m.first+limit)
	}
	return at
}

// cameLate reports whether a decision has to wait because this node overslept it. What it knows is as old as its sleep:
// it stops at once, as if it lost, and looks again when its peers have had the time to tell it what has happened.
func (m *Machine) cameLate() bool {
	due := m.due()
	if m.now > due+lateBy && m.lateFor != due {
		m.lateFor, m.lookAt = due, m.now+settle
		m.suspend("it overslept a decision")
	}
	return m.lateFor == due && m.now < m.lookAt
}

// anyLate reports whether one of these counts and is not accused.
func (m *Machine) anyLate(ids []peer.ID) bool {
	for _, id := range ids {
		if x, ok := m.view.Member(id); m.view != nil && ok && counts(x.Status) && !m.accused.Has(id) {
			return true
		}
	}
	return false
}

const (
	lookEvery = 250 * time.Millisecond // how often a decision that waits for who is late is looked at
	lateMost  = 7 * time.Second        // how long it waits at most: a silence is a verdict by then
)

// waits reports whether a decision that is due is put off because the picture may be about to change: somebody who
// counts is late. A cut that nobody has noticed yet would have its two sides decide on different pictures. It never
// waits beyond what the takeover time covers, nor until all would have to go.
func (m *Machine) waits() bool {
	if !m.late {
		return false
	}
	if m.waitEnd == 0 {
		m.waitEnd = m.quietAt + min(lateMost, m.stable*3/4)
		if limit, ok := m.cfg.unstableFor(m.stable); ok && m.changes > 0 {
			m.waitEnd = min(m.waitEnd, m.first+limit)
		}
		m.waitEnd -= lookEvery
	}
	m.againAt = min(m.now+lookEvery, m.waitEnd)
	return m.now < m.waitEnd
}

// anew begins the patience anew. Whom a decision waited for has had the silence that others are given, so when it does
// turn out to be lost, what is left is that all on this side get to know it.
func (m *Machine) anew(onlyLost bool) {
	if d := m.spread(); onlyLost && m.now+d <= m.waitEnd {
		m.quietAt = m.now + d
		return
	}
	m.quietAt, m.waitEnd = m.now+m.stable, 0
}

// tooLong ends everything when what is reachable has been changing for too long, after having warned of it.
func (m *Machine) tooLong() {
	limit, ok := m.cfg.unstableFor(m.stable)
	if !ok || m.changes == 0 {
		return
	}
	if !m.warned && m.now >= m.warnAt() {
		m.warned = true
		m.tell(Unstable, fmt.Sprintf("what is reachable has changed %d times in %v: all nodes go at %v unless it stands "+
			"still", m.changes, m.now-m.first, limit))
	}
	if m.now < m.first+limit {
		return
	}
	s := m.situation()
	v := look(m.cfg.Role, &s)
	d := m.cfg.Decide(s)
	d.Outcome, d.Mark, d.Down, d.Lives = DownEverybody, peer.ID{}, v.goers(DownEverybody), false
	d.Cause = membership.CauseUnstable
	d.Why = fmt.Sprintf("what is reachable changed %d times in %v: nobody can be sure", m.changes, m.now-m.first)
	m.act(d, true)
}

// warnAt is when an instability is told of: when others would have been decided some time ago.
func (m *Machine) warnAt() time.Duration { return m.first + m.stable*5/4 }

// settle is how long accusations must have stood still beyond what changes the picture: three gossip rounds, in which
// those who can hear us confirm them. It never delays a decision by more than that.
const settle = 2 * time.Second

// spread is how long all on one side take to get to know and to confirm an accusation.
func (m *Machine) spread() time.Duration { return min(settle, m.stable/4) }

func (m *Machine) decideAt() time.Duration {
	d := m.spread()
	return max(m.quietAt, min(m.rowsAt+d, m.quietAt+d))
}
