// Join, the joiner's side: probe the seeds, ask the first member that answers, take its welcome (JOIN-1, JOIN-2,
// MEM-9). Which node may form a cluster when nobody has one stands in forming.go.

package membership

import (
	"fmt"
	"slices"
	"time"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/internal/core/members"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// MaxSeeds is how many seeds a JoinCommand may name.
const MaxSeeds = 256

const (
	maxProbers   = 64 // nodes that probed us before we were a member, and will be notified when we are
	birthLowBits = 20 // random bits below the milliseconds of a birth
)

// joining is how a node becomes a member.
type joining struct {
	*core
	forming   *forming
	admission *admission
	beliefs   *beliefs
	leading   *leading
	leaving   *leaving
	others    *others

	joinState
}

// joinState is what a node knows while it is no member.
type joinState struct {
	seeds     []peer.Addr // all but this node, in the given order: the first of the contacts
	head      peer.Addr   // the first of the list as it was given; zero: there is none
	first     bool        // this node heads the list: only it may form without a record
	awaits    bool        // a SeedsCommand is to come
	ordered   bool        // the seeds are an operator's: no others are taken
	wall      uint64
	nonce     uint64    // of the whole join; echoed by every answer
	target    peer.ID   // the contact that was asked
	challenge uint64    // what the target wants repeated
	leave     bool      // leave as soon as admitted
	shunned   peer.Addr // the member that has just put this node off, and for how long it asks others first
	shunUntil time.Duration
	refused   string        // why the last contact did not admit us, for the end
	before    uint64        // the incarnation at this address that is proven dead
	askedAt   time.Duration // when this incarnation first asked to be admitted, if it has
	probers   []prober
}

type prober struct {
	id    peer.ID
	nonce uint64
}

func (j *joining) startJoin(c JoinCommand) error {
	if j.phase != idle {
		return ErrJoining
	}
	if len(c.Seeds) > MaxSeeds {
		return fmt.Errorf("%w: %d, at most %d", ErrTooManySeeds, len(c.Seeds), MaxSeeds)
	}
	for _, a := range c.Seeds {
		if a != j.self.Addr && !a.IsZero() && !slices.Contains(j.seeds, a) {
			j.seeds = append(j.seeds, a)
		}
	}
	j.awaits = c.Await
	if len(c.Seeds) > 0 {
		j.head = c.Seeds[0]
	}
	j.first = len(c.Seeds) == 0 && !c.NeverForm && !c.Await || len(c.Seeds) > 0 && c.Seeds[0] == j.self.Addr
	j.wall, j.nonce, j.before = c.WallMillis, j.drawNonce(), c.Dead
	j.forming.formState = formState{record: c.Record, former: c.Former, never: c.NeverForm,
		anew: c.FormNew && !c.NeverForm}
	j.forming.record.Others = slices.Clone(c.Record.Others)
	j.forming.record.Bystanders = slices.Clone(c.Record.Bystanders)
	j.leading.recorded = j.forming.record
	j.forming.meet(j.seeds...)
	j.forming.meet(c.Record.Others...)
	j.forming.meet(c.Record.Bystanders...)
	if !c.Former.IsZero() {
		j.forming.meet(c.Former)
	}
	if j.cfg.JoinTimeout > 0 {
		j.in(timerJoinTimeout, j.cfg.JoinTimeout)
	}
	j.in(timerWaiting, waitingAfter)
	if len(j.seeds) == 0 && !c.Await && c.Former.IsZero() && j.forming.forms() &&
		(j.forming.anew || !j.forming.remembers()) {
		j.form(j.forming.because())
		return nil
	}
	j.probe()
	j.askAgain()
	return nil
}

// probe starts looking for a member, from scratch.
func (j *joining) probe() {
	j.phase = probing
	for i := range j.forming.contacts {
		j.forming.contacts[i].nak = false
	}
	j.target, j.challenge = peer.ID{}, 0
	j.stop(timerGiveUp)
	j.in(timerProbe, j.cfg.ProbeInterval)
	if f := j.forming; j.first || f.anew || f.never || f.record.Known() {
		j.in(timerSeed, j.cfg.SeedTimeout)
	}
}

// askAgain repeats what has not been answered. The first seed spares nodes that said that they have no cluster.
func (j *joining) askAgain() {
	j.in(timerProbe, j.cfg.ProbeInterval)
	if j.phase == pending {
		j.sendJoin()
		return
	}
	j.forming.askContacts()
	if j.forming.tryForming(); j.phase == probing {
		j.forming.tellHeld()
	}
}

func (j *joining) sendJoin() {
	body := joinBody{j.nonce, j.challenge, j.self, j.cfg.Roles, j.cfg.AppVersion, j.cfg.Settings, j.before}
	j.post(j.target, wire.KindJoin, func(b []byte) []byte { return appendJoin(b, body) })
}

// joinTimeout ends a node that was not admitted in time, with the last reason it was given, or what it waited for.
func (j *joining) joinTimeout(waiting Waiting) {
	reason := fmt.Sprintf("not admitted within %v", j.cfg.JoinTimeout)
	if j.refused != "" {
		reason += ": " + j.refused
	} else if waiting.Detail != "" {
		reason += ": " + waiting.Detail
	}
	j.end(EndJoinTimeout, j.self, reason)
}

// giveUp turns from a contact that did not answer back to all seeds.
func (j *joining) giveUp() {
	if j.leave {
		j.end(EndLeft, j.self, "left before it was admitted")
		return
	}
	j.probe()
	j.askAgain()
}

func (j *joining) onProbeNak(from peer.ID, body []byte) error {
	to, nonce, err := readProbeNak(body)
	if err != nil || j.phase != probing || to != j.self.Inc || nonce != j.nonce || !j.forming.forms() {
		return err
	}
	if c := j.forming.contact(from.Addr); c != nil && !c.nak {
		c.nak = true
		if j.forming.agrees() {
			j.forming.formAsk(c.addr)
		}
		j.forming.tryForming()
	}
	return nil
}

func (j *joining) onProbeAck(from peer.ID, body []byte) error {
	a, err := readProbeAck(body)
	if err != nil || a.to != j.self.Inc || a.nonce != j.nonce {
		return err
	}
	switch {
	case j.phase == member:
		j.others.otherCluster(from.Addr, a.cluster, a.birth, false)
		j.beliefs.sameCluster(from, a.cluster, a.birth)
		return nil
	case j.phase == probing && from.Addr == j.shunned && j.now < j.shunUntil:
		return nil // it has just put this node off: another one may know better
	case j.phase == probing:
		if j.tooOld(from, a.birth) {
			return nil
		}
		if text := differs(a.settings, j.cfg.Settings); j.disagree(text) {
			j.end(EndJoinRefused, from, text)
			return nil
		}
		// A node that asked may have been admitted though the welcome was lost: this incarnation must never form a
		// second cluster.
		if j.forming.tries {
			j.forming.giveUpTrying() // it forms none any more, and must not hold back others
		}
		if !j.forming.asked {
			j.forming.asked, j.askedAt = true, j.now
		}
		j.phase = pending
		j.stop(timerSeed)
		j.in(timerGiveUp, j.cfg.JoinRetryAfter)
	case j.phase != pending || a.challenge == 0:
		return nil
	}
	j.target, j.challenge = from, a.challenge
	j.in(timerProbe, j.cfg.ProbeInterval)
	j.sendJoin()
	return nil
}

// tooOld ends the node when the cluster is older than one in which it issued fences: they would not be honoured.
func (j *joining) tooOld(from peer.ID, birth uint64) bool {
	if birth >= j.cfg.MinBirth {
		return false
	}
	j.end(EndJoinRefused, from, fmt.Sprintf("the cluster's birth %d is lower than %d, under which this node issued "+
		"fences", birth, j.cfg.MinBirth))
	return true
}

func (j *joining) onRefused(from peer.ID, body []byte) error {
	f, err := readRefused(body)
	if err == nil && j.phase == member && j.st.Has(from) {
		j.admission.forwards = slices.DeleteFunc(j.admission.forwards, func(w forward) bool {
			return w.join.id.Inc == f.to && w.join.nonce == f.nonce
		})
	}
	if err != nil || j.phase != pending || f.to != j.self.Inc || f.nonce != j.nonce {
		return err
	}
	if f.code >= refuseForGood {
		j.end(EndJoinRefused, from, f.reason)
		return nil
	}
	if j.leave {
		j.end(EndLeft, j.self, "left before it was admitted")
		return nil
	}
	j.refused = f.reason
	j.shunned, j.shunUntil = from.Addr, j.now+j.cfg.ProbeInterval*3/2
	j.probe()
	return nil
}

// onWelcome takes the state over; only while a join is pending, and only with its nonce.
func (j *joining) onWelcome(from peer.ID, body []byte) error {
	w, err := readStateBody(wire.KindWelcome, body)
	if err != nil {
		return err
	}
	if j.phase != pending || w.to != j.self.Inc || w.tag != j.nonce {
		j.stats.StaleWelcome++
		return nil
	}
	s, err := j.readState(wire.KindWelcome, &w)
	if err != nil {
		return err
	}
	if !s.Has(j.self) {
		return &wire.Error{Kind: wire.KindWelcome, Offset: len(body), Err: wire.ErrBadValue}
	}
	if j.tooOld(from, s.Birth) {
		return nil
	}
	s.Seen.Add(s.Index(j.self))
	j.install(s, true)
	j.admitted()
	j.sendSeen(from, false)
	return nil
}

// form makes a cluster of one: a random id, and a birth above every one under which this node issued fences, or that a
// node it heard remembers.
func (j *joining) form(because string) {
	birth := j.wall<<birthLowBits | j.rng.Uint64N(1<<birthLowBits)
	s := members.NewState(members.Version{Cluster: j.drawNonce(), Birth: max(birth, j.forming.lowestBirth()+1)})
	s.Add(cluster.Member{ID: j.self, Status: cluster.Joining, Roles: j.cfg.Roles, AppVersion: j.cfg.AppVersion})
	j.install(s.Commit(j.self), true)
	j.tell(Event{Kind: ClusterFormed, Detail: because})
	j.admitted()
}

// admitted starts a member's life, and notifies the nodes that probed too early.
func (j *joining) admitted() {
	j.phase, j.stale = member, true
	j.contact = j.now
	for _, i := range [...]int{timerProbe, timerSeed, timerGiveUp, timerJoinTimeout} {
		j.stop(i)
	}
	j.in(timerHeartbeat, j.cfg.HeartbeatInterval)
	j.in(timerReaper, j.cfg.ReaperInterval)
	j.in(timerLeader, j.cfg.LeaderInterval)
	j.in(timerGossip, j.cfg.GossipInterval)
	if j.cfg.SeedCheckInterval > 0 {
		j.in(timerSeedCheck, j.cfg.SeedCheckInterval)
	}
	for _, p := range j.probers {
		j.admission.sendProbeAck(p.id, p.nonce, 0)
	}
	j.probers = nil
	if j.leave {
		j.leaving.leave()
	}
}
