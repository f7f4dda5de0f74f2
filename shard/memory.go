// memory: which members were lost lately, so that whoever becomes coordinator knows whose shards may still be alive.
//
// A coordinator that starts after a member was removed never asks that member what it owned, and the member may be cut
// off and still serving. So every node remembers, from the differences of its views, each member that it saw Down or
// removed, until the takeover time has passed since it first saw that. A node that joined lately missed what came
// before its first view: until the takeover time has passed since then it is blind, unless it formed the cluster itself
// or a member that is not blind told it (past in codec_register.go). A blind node's coordinator allocates nothing.

package shard

import (
	"slices"
	"time"

	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
)

// maxLost bounds the losses remembered. When more fit not, the node is blind for a takeover time instead.
const maxLost = 4096

// memory holds the losses, sorted by identity, and the members that confirmed to host nothing ever again.
type memory struct {
	seen       bool // a view with this node in it has come
	losses     []lostMember
	farewells  peer.Set
	blindUntil time.Duration
}

type lostMember struct {
	id      peer.ID
	since   time.Duration // first seen Down or removed
	removed bool
	roles   []string
	learnt  bool // told by another node: the roles are not known
}

func (l *lostMember) hasRole(role string) bool {
	return l.learnt || role == "" || slices.Contains(l.roles, role)
}

func (p *memory) find(id peer.ID) (int, bool) {
	return slices.BinarySearchFunc(p.losses, id, func(l lostMember, id peer.ID) int { return l.id.Compare(id) })
}

func (p *memory) lost(id peer.ID) *lostMember {
	if i, ok := p.find(id); ok {
		return &p.losses[i]
	}
	return nil
}

func (p *memory) add(l lostMember, takeover time.Duration) {
	i, ok := p.find(l.id)
	switch {
	case ok:
		p.losses[i].removed = p.losses[i].removed || l.removed
	case len(p.losses) >= maxLost:
		p.blindUntil = max(p.blindUntil, l.since+takeover)
	default:
		p.losses = slices.Insert(p.losses, i, l)
	}
}

// note compares two views and reports whether a member was lost between them.
func (p *memory) note(now, takeover time.Duration, old, v *membership.View) (lost bool) {
	if !p.seen {
		p.seen = true
		if len(v.Members) > 1 {
			p.blindUntil = now + takeover
		}
	}
	for _, mb := range v.Members {
		i, known := p.find(mb.ID)
		switch {
		case mb.Status == membership.Down && !known:
			lost = true
			p.add(lostMember{id: mb.ID, since: now, roles: mb.Roles}, takeover)
		case mb.Status == membership.Down && p.losses[i].learnt:
			lost = true
			p.losses[i] = lostMember{id: mb.ID, since: p.losses[i].since, roles: mb.Roles}
		case mb.Status != membership.Down && known:
			p.losses = slices.Delete(p.losses, i, i+1) // learnt of one whose join had not reached this node yet
		}
	}
	if old == nil {
		return lost
	}
	for _, mb := range old.Members {
		if _, still := v.Member(mb.ID); !still {
			lost = true
			p.add(lostMember{id: mb.ID, since: now, removed: true, roles: mb.Roles}, takeover)
		}
	}
	return lost
}

// age forgets removed members whose takeover time has passed and reports whether anything that a coordinator may wait
// for has changed.
func (p *memory) age(now, takeover time.Duration) (changed bool) {
	n := len(p.losses)
	p.losses = slices.DeleteFunc(p.losses, func(l lostMember) bool {
		old := l.removed && now >= l.since+takeover
		if old {
			p.farewells.Remove(l.id)
		}
		return old
	})
	if p.blindUntil != 0 && now >= p.blindUntil {
		p.blindUntil = 0
		changed = true
	}
	return changed || n != len(p.losses)
}

func (p *memory) next(now, takeover time.Duration) time.Duration {
	var d least
	d.add(p.blindUntil)
	for i := range p.losses {
		if l := &p.losses[i]; l.removed {
			d.add(l.since + takeover)
		}
	}
	return d.at
}

// whole reports whether no loss within the takeover time can be missing.
func (p *memory) whole(now time.Duration) bool { return now >= p.blindUntil }

// owes reports whether a member that this node no longer hears may still be hosting.
func (m *Machine) owes(id peer.ID) bool {
	if m.past.farewells.Has(id) {
		return false
	}
	if _, in := m.view.Member(id); in || m.past.lost(id) != nil {
		return true
	}
	return !m.past.whole(m.now)
}

// tell writes down what this node remembers, for a coordinator that is blind.
func (m *Machine) tell() past {
	p := past{Whole: m.past.whole(m.now)}
	for _, l := range m.past.losses {
		age := (m.now - l.since).Truncate(time.Millisecond)
		p.Lost = append(p.Lost, loss{ID: l.id, Age: age, Settled: m.past.farewells.Has(l.id)})
	}
	for _, mb := range m.view.Members {
		if mb.Status != membership.Down {
			p.Roll = append(p.Roll, mb.ID)
		}
	}
	if len(p.Roll) > maxPeers {
		return past{} // too many to tell: the asker waits instead
	}
	return p
}

// learn takes over what a member that is not blind remembers. A member on its roll that is none here was removed in a
// view that it had not seen yet: for this node it is lost from now on. One that joined so lately that this node's view
// lacks it is taken for lost until the view has it, which costs waiting, never safety.
func (m *Machine) learn(p past) {
	if m.past.whole(m.now) || !p.Whole {
		return
	}
	m.past.blindUntil = 0
	for _, l := range p.Lost {
		_, in := m.view.Member(l.ID)
		known := m.past.lost(l.ID) != nil
		if l.Settled && (in || known) {
			m.past.farewells.Add(l.ID)
		}
		since := m.now - min(l.Age, m.now-1)
		if in || known || l.Settled || m.now >= since+m.cfg.TakeoverTime {
			continue
		}
		m.past.add(lostMember{id: l.ID, since: since, removed: true, learnt: true}, m.cfg.TakeoverTime)
	}
	for _, id := range p.Roll {
		if _, in := m.view.Member(id); !in && m.past.lost(id) == nil {
			m.past.add(lostMember{id: id, since: m.now, removed: true, learnt: true}, m.cfg.TakeoverTime)
		}
	}
	m.settleAll()
}
