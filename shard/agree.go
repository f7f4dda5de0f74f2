// Agreement on settings: under which settings a type is known to this node, and what becomes of others.
//
// Name, number of shards and role of a type are those of the coordinator term that a member promised to, and that
// member's own registration is compared with them at once. A coordinator stands on the oldest member of a role, so two
// roles make two, and neither sees the other's registrations. That is why each asks all members, whatever their roles:
// one that goes by other settings promises nothing and refuses the question, and the coordinator term that asked ends
// before it is ready.
//
// What binds a member: a registration of its own under the settings that it promised to, for as long as it runs; else
// its promise, for as long as the coordinator that it gave it to is a member, and a little longer, until a successor
// can have asked. So settings can be changed when the last member that registered the old ones has left.

package shard

import (
	"time"

	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
)

// promiseOutlives is how long the settings of a promise bind after its coordinator was removed: a successor asks as
// soon as it sees the removal too.
const promiseOutlives = 5 * time.Second

// note follows the members: when the coordinator was removed counts.
func (p *promise) note(now time.Duration, v *membership.View) {
	switch _, in := v.Member(p.to); {
	case p.to.IsZero() || in:
		p.gone = 0
	case p.gone == 0:
		p.gone = now
	}
}

// compare refuses a registration under other settings than the cluster's. The refusal reaches the coordinator, which
// gives way once every member that registered the type under its settings has gone.
func (m *Machine) compare(t *typ, s Settings) error {
	if c := t.coord; c != nil && c.settings != s {
		if !c.forsaken() {
			return settingsDiffer(c.settings, s)
		}
		m.giveWay(t, s)
		return nil
	}
	have, how := m.bound(t, peer.ID{})
	if how != firmly || have == s {
		return nil
	}
	if to := t.promise.to; to != m.self && m.live(to) && have.Name == s.Name {
		m.post(to, register{head: m.head(t.id, t.promise.term), Settings: s, Knows: true})
	}
	return settingsDiffer(have, s)
}

// stays reports whether a member is none that leaves.
func (m *Machine) stays(id peer.ID) bool {
	mb, ok := m.view.Member(id)
	return ok && (mb.Status.Working() || mb.Status == membership.Joining || mb.Status == membership.WeaklyUp)
}

// forsaken reports whether nothing is owned in a coordinator term, and no member that stays has registered the type
// under its settings.
func (c *coordinator) forsaken() bool {
	if r := c.t.region; !c.ready || c.owned > 0 || r != nil && r.refused == nil && r.settings == c.settings {
		return false
	}
	for _, p := range c.clients {
		if p.knows && c.m.stays(p.id) {
			return false
		}
	}
	return true
}

// giveWay ends a forsaken coordinator term, and binds all members that promised to it to other settings, so that they
// accept a coordinator term under those.
func (m *Machine) giveWay(t *typ, s Settings) {
	h := m.head(t.id, t.coord.term)
	m.endCoordinator(t)
	t.epoch++
	for _, mb := range m.view.Members {
		if m.live(mb.ID) {
			m.post(mb.ID, reportWanted{head: h, Settings: s, Floor: t.epoch})
		}
	}
}

// bond says how firmly a member holds to the settings of a type.
type bond uint8

const (
	unbound bond = 0
	loosely bond = 1 // the coordinator that it promised to has gone, a moment ago
	firmly  bond = 2
)

// bound returns the settings by which this node goes, for a question or registration that comes from from: a
// coordinator may change what it asked for itself, unless something lives here under it.
func (m *Machine) bound(t *typ, from peer.ID) (Settings, bond) {
	p, g := &t.promise, t.region
	if g != nil && g.hosted.Len() > 0 {
		return g.settings, firmly
	}
	if p.settings == (Settings{}) || from == p.to {
		return Settings{}, unbound
	}
	switch {
	case g != nil && g.refused == nil && g.settings == p.settings, p.gone == 0:
		return p.settings, firmly
	case m.now < p.gone+promiseOutlives:
		return p.settings, loosely
	}
	return Settings{}, unbound
}

// agrees reports whether this node may promise to a coordinator term under these settings. Otherwise its coordinator is
// refused with both values, or, when what binds this node will pass in a moment, not answered yet.
func (m *Machine) agrees(t *typ, from peer.ID, w reportWanted) bool {
	have, how := m.bound(t, from)
	if how == unbound || have == w.Settings {
		return true
	}
	if how == firmly {
		m.post(from, nak{head: m.head(t.id, w.Term), Reason: nakSettings, Have: have, Got: w.Settings})
	}
	return false
}

// contradicted ends a coordinator term that a member with other settings refused. The term was not ready and had found
// no shard owned under its own settings, so it allocated none. It notifies the members that registered with it, and
// this node's own region: there may be no coordinator under the other settings to do so. Where this node coordinates
// under the others too, it begins anew with them.
func (m *Machine) contradicted(t *typ, n nak) {
	c := t.coord
	if c == nil || c.term != n.Term || c.settings != n.Got || c.ready || c.owned > 0 {
		return
	}
	for _, p := range c.clients {
		if p.knows && p.id != m.self && m.live(p.id) {
			m.post(p.id, nak{head: m.head(t.id, n.Term), Reason: nakSettings, Have: n.Have, Got: n.Got})
		}
	}
	m.endCoordinator(t)
	if t.rest = m.now + m.cfg.RetryMax; m.presides(t, n.Have.Role, n.Term) && n.Have.Name == n.Got.Name {
		m.beginTerm(t, n.Have, n.Term)
	}
}

// onSettingsNak takes the word of a coordinator about a registration, or of a member about a question.
func (m *Machine) onSettingsNak(t *typ, n nak) {
	m.contradicted(t, n)
	if g := t.region; !g.idle() && g.hosted.Len() == 0 && n.Got == g.settings && n.Term >= t.promise.term {
		m.refuseType(t, n.Have)
	}
}
