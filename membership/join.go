// Join, the joiner's side: probe the seeds, ask the first member that answers, take its welcome (JOIN-1, JOIN-2,
// MEM-9). Who may form a cluster when nobody has one stands in forming.go.

package membership

import (
	"fmt"
	"slices"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/internal/members"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// MaxSeeds is how many seeds a JoinCommand may name.
const MaxSeeds = 256

const (
	maxProbers   = 64 // those who probed us before we were a member, and will be told when we are
	birthLowBits = 20 // random bits below the milliseconds of a birth
)

// joining is what a node knows while it is no member.
type joining struct {
	seeds     []peer.Addr // all but this node, in the given order: the first of the contacts
	first     bool        // this node heads the list: only it may form without a record
	form      forming
	wall      uint64
	nonce     uint64  // of the whole join; echoed by every answer
	target    peer.ID // the contact that was asked
	challenge uint64  // what the target wants repeated
	leave     bool    // leave as soon as admitted
	refused   string  // why the last contact did not admit us, for the end
	probers   []prober
}

type prober struct {
	id    peer.ID
	nonce uint64
}

func (m *Machine) startJoin(c JoinCommand) error {
	if m.phase != idle {
		return ErrJoining
	}
	if len(c.Seeds) > MaxSeeds {
		return fmt.Errorf("%w: %d, at most %d", ErrTooManySeeds, len(c.Seeds), MaxSeeds)
	}
	j := &m.join
	for _, a := range c.Seeds {
		if a != m.self.Addr && !a.IsZero() && !slices.Contains(j.seeds, a) {
			j.seeds = append(j.seeds, a)
		}
	}
	j.first = len(c.Seeds) == 0 && !c.NeverForm || len(c.Seeds) > 0 && c.Seeds[0] == m.self.Addr
	j.wall, j.nonce = c.WallMillis, m.nonce()
	j.form = forming{record: c.Record, never: c.NeverForm, anew: c.FormNew && !c.NeverForm}
	j.form.record.Others = slices.Clone(c.Record.Others)
	m.recorded = j.form.record
	m.meet(j.seeds...)
	m.meet(c.Record.Others...)
	if m.cfg.JoinTimeout > 0 {
		m.in(timerJoinTimeout, m.cfg.JoinTimeout)
	}
	if len(j.seeds) == 0 && j.forms() && (j.form.anew || !j.remembers()) {
		m.form()
		return nil
	}
	m.probe()
	m.askAgain()
	return nil
}

// probe starts looking for a member, from scratch.
func (m *Machine) probe() {
	m.phase = probing
	for i := range m.join.form.contacts {
		m.join.form.contacts[i].nak = false
	}
	m.join.target, m.join.challenge = peer.ID{}, 0
	m.stop(timerGiveUp)
	m.in(timerProbe, m.cfg.ProbeInterval)
	if f := &m.join.form; m.join.first || f.anew || f.never || f.record.Known() {
		m.in(timerSeed, m.cfg.SeedTimeout)
	}
}

// askAgain repeats what has not been answered. The first seed spares those who said that they have no cluster.
func (m *Machine) askAgain() {
	m.in(timerProbe, m.cfg.ProbeInterval)
	if m.phase == pending {
		m.sendJoin()
		return
	}
	m.askContacts()
	if m.tryForming(); m.phase == probing {
		m.tellHeld()
	}
}

func (m *Machine) sendJoin() {
	j := joinBody{m.join.nonce, m.join.challenge, m.self, m.cfg.Roles, m.cfg.AppVersion, m.cfg.Settings}
	m.post(m.join.target, wire.KindJoin, func(b []byte) []byte { return appendJoin(b, j) })
}

// joinTimeout ends a node that was not admitted in time, with the last reason it was given.
func (m *Machine) joinTimeout() {
	reason := fmt.Sprintf("not admitted within %v", m.cfg.JoinTimeout)
	if m.join.refused != "" {
		reason += ": " + m.join.refused
	} else if text := m.heldBack(); text != "" {
		reason += ": " + text
	}
	m.end(EndJoinTimeout, m.self, reason)
}

// giveUp turns from a contact that did not answer back to all seeds.
func (m *Machine) giveUp() {
	if m.join.leave {
		m.end(EndLeft, m.self, "left before it was admitted")
		return
	}
	m.probe()
	m.askAgain()
}

func (m *Machine) onProbeNak(from peer.ID, body []byte) error {
	to, nonce, err := readProbeNak(body)
	if err != nil || m.phase != probing || to != m.self.Inc || nonce != m.join.nonce || !m.join.forms() {
		return err
	}
	if c := m.join.contact(from.Addr); c != nil && !c.nak {
		c.nak = true
		if m.join.agrees() {
			m.formAsk(c.addr)
		}
		m.tryForming()
	}
	return nil
}

func (m *Machine) onProbeAck(from peer.ID, body []byte) error {
	a, err := readProbeAck(body)
	if err != nil || a.to != m.self.Inc || a.nonce != m.join.nonce {
		return err
	}
	switch {
	case m.phase == member:
		m.otherCluster(from.Addr, a.cluster, a.birth, false)
		m.sameCluster(from, a.cluster, a.birth)
		return nil
	case m.phase == probing:
		if m.tooOld(from, a.birth) {
			return nil
		}
		if text := differs(a.settings, m.cfg.Settings); m.disagree(text) {
			m.end(EndJoinRefused, from, text)
			return nil
		}
		// Whoever asked may have been admitted, though the welcome was lost: this incarnation must never belong to
		// a second cluster of its own making.
		if m.join.form.tries {
			m.giveUpTrying() // it forms none any more, and must not hold back others
		}
		m.join.form.asked = true
		m.phase = pending
		m.stop(timerSeed)
		m.in(timerGiveUp, m.cfg.JoinRetryAfter)
	case m.phase != pending || a.challenge == 0:
		return nil
	}
	m.join.target, m.join.challenge = from, a.challenge
	m.in(timerProbe, m.cfg.ProbeInterval)
	m.sendJoin()
	return nil
}

// tooOld ends the node when the cluster is older than one in which it issued fences: they would not be honoured.
func (m *Machine) tooOld(from peer.ID, birth uint64) bool {
	if birth >= m.cfg.MinBirth {
		return false
	}
	m.end(EndJoinRefused, from, fmt.Sprintf("the cluster's birth %d is lower than %d, under which this node issued "+
		"fences", birth, m.cfg.MinBirth))
	return true
}

func (m *Machine) onRefused(from peer.ID, body []byte) error {
	f, err := readRefused(body)
	if err == nil && m.phase == member && m.st.Has(from) {
		m.forwards = slices.DeleteFunc(m.forwards, func(w forward) bool {
			return w.join.id.Inc == f.to && w.join.nonce == f.nonce
		})
	}
	if err != nil || m.phase != pending || f.to != m.self.Inc || f.nonce != m.join.nonce {
		return err
	}
	if f.code >= refuseForGood {
		m.end(EndJoinRefused, from, f.reason)
		return nil
	}
	if m.join.leave {
		m.end(EndLeft, m.self, "left before it was admitted")
		return nil
	}
	m.join.refused = f.reason
	m.probe()
	return nil
}

// onWelcome takes the state over; only while a join is pending, and only with its nonce.
func (m *Machine) onWelcome(from peer.ID, body []byte) error {
	w, err := readStateBody(wire.KindWelcome, body)
	if err != nil {
		return err
	}
	if m.phase != pending || w.to != m.self.Inc || w.tag != m.join.nonce {
		m.stats.StaleWelcome++
		return nil
	}
	s, err := m.readState(wire.KindWelcome, &w)
	if err != nil {
		return err
	}
	if !s.Has(m.self) {
		return &wire.Error{Kind: wire.KindWelcome, Offset: len(body), Err: wire.ErrBadValue}
	}
	if m.tooOld(from, s.Birth) {
		return nil
	}
	s.Seen.Add(s.Index(m.self))
	m.install(s, true)
	m.admitted()
	m.sendSeen(from, false)
	return nil
}

// form makes a cluster of one: a random id, and a birth above every one under which this node issued fences, or that
// somebody whom it heard remembers.
func (m *Machine) form() {
	birth := m.join.wall<<birthLowBits | m.rng.Uint64N(1<<birthLowBits)
	s := members.NewState(members.Version{Cluster: m.nonce(), Birth: max(birth, m.lowestBirth()+1)})
	s.Add(cluster.Member{ID: m.self, Status: cluster.Joining, Roles: m.cfg.Roles, AppVersion: m.cfg.AppVersion})
	m.install(s.Commit(m.self), true)
	m.admitted()
}

// admitted starts a member's life, and tells those who probed too early.
func (m *Machine) admitted() {
	m.phase, m.stale = member, true
	m.contact = m.now
	for _, i := range [...]int{timerProbe, timerSeed, timerGiveUp, timerJoinTimeout} {
		m.stop(i)
	}
	m.in(timerHeartbeat, m.cfg.HeartbeatInterval)
	m.in(timerReaper, m.cfg.ReaperInterval)
	m.in(timerLeader, m.cfg.LeaderInterval)
	m.in(timerGossip, m.cfg.GossipInterval)
	if m.cfg.SeedCheckInterval > 0 {
		m.in(timerSeedCheck, m.cfg.SeedCheckInterval)
	}
	for _, p := range m.join.probers {
		m.sendProbeAck(p.id, p.nonce, 0)
	}
	m.join.probers = nil
	if m.join.leave {
		m.leave()
	}
}
