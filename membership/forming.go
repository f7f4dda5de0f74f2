// Forming: who may form a cluster, and when. A node that remembers others forms none until those who could carry the
// old one on have said that they are in none, and have pledged themselves to it (JOIN-1).
//
// A first seed that remembers nobody forms alone, as long as nobody whom it hears remembers others: who does answers a
// probe with what it remembers. Everybody else
// forms by its record: each record that it has heard of, its own first, must be accounted for. An address is accounted
// for when the process there says that it is in no cluster, and pledges itself to this attempt; as many may be missing
// as the resolver's rule bears (Config.MayMiss). A node pledges itself to one attempt at a time and lets go only when
// the one it pledged itself to says that it has given that attempt up, or has a successor at its address. No clock is
// needed for that: of two attempts that share a voter, at most one succeeds.

package membership

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

const (
	maxContacts  = MaxSeeds + 2*MaxRemembered // addresses that a joiner asks, those that others told it of included
	probesAtOnce = 64                         // of those that are no seeds, in one interval
	attemptFor   = 3                          // probe intervals after which an attempt is given up
	freshFor     = 5                          // probe intervals for which an answer says that its sender lives
	heldAgain    = time.Minute                // how often FormingHeld is told
	heldNames    = 8                          // addresses that it names
)

// contact is an address that a joiner asks, and what the process there said.
type contact struct {
	addr     peer.Addr
	nak      bool          // it is in no cluster
	id       peer.ID       // who answered what it remembers; zero: nobody yet
	at       time.Duration // when
	record   Record
	may      bool // it might form a cluster itself
	promised bool // it has pledged itself to the attempt that goes on
}

// forming is what a joiner knows of others that are in no cluster, and its own attempt.
type forming struct {
	record   Record
	never    bool // it forms no cluster
	anew     bool // an operator wants a new one, whatever anybody remembers
	asked    bool // it asked a cluster to admit it: this incarnation forms none any more
	told     bool // somebody remembers a cluster
	looked   bool // the seed timeout has passed
	contacts []contact
	nextAt   int // where the rotation through those that are no seeds goes on

	attempt   uint64        // the latest, from 1
	tries     bool          // it goes on
	begun     time.Duration // since when
	failedAt  time.Duration // when the last one was given up
	ready     bool          // all are accounted for
	readyAt   time.Duration // since when
	pledgedTo peer.ID       // this node itself while it tries
	pledged   uint64        // to which attempt of that one
	heldAt    time.Duration // when to tell of it again
}

// remembers reports whether this node forms by its record only. One in which nobody could carry the cluster on, this
// node included, says nothing about who may form the next: the first seed does, as where nobody remembers anything.
func (j *joining) remembers() bool {
	r := &j.form.record
	return r.Known() && !(r.Alone() && (j.first || !r.Counts))
}

// forms reports whether this incarnation may form a cluster at all.
func (j *joining) forms() bool {
	return !j.form.never && !j.form.asked && (j.first || j.form.anew || j.remembers())
}

// agrees reports whether it forms one only by agreement with others.
func (j *joining) agrees() bool { return j.remembers() && j.forms() && !j.form.anew }

// contact returns what is known of an address that this node asks, nil for another one.
func (j *joining) contact(a peer.Addr) *contact {
	i := slices.IndexFunc(j.form.contacts, func(c contact) bool { return c.addr == a })
	if i < 0 {
		return nil
	}
	return &j.form.contacts[i]
}

// meet adds addresses to those that are asked.
func (m *Machine) meet(list ...peer.Addr) {
	for _, a := range list {
		if len(m.join.form.contacts) < maxContacts && a != m.self.Addr && m.join.contact(a) == nil {
			m.join.form.contacts = append(m.join.form.contacts, contact{addr: a})
		}
	}
}

// askContacts asks who has not said yet whether it is in a cluster, and, where this node may form one, what those
// remember who are in none: all seeds, and some of the others in turn.
func (m *Machine) askContacts() {
	j, f := &m.join, &m.join.form
	seeds := len(j.seeds)
	for i := range seeds {
		m.askContact(&f.contacts[i])
	}
	rest := len(f.contacts) - seeds
	for range min(rest, probesAtOnce) {
		f.nextAt = (f.nextAt + 1) % rest
		m.askContact(&f.contacts[seeds+f.nextAt])
	}
	if f.tries { // those that were not their turn
		for i := range f.contacts {
			if c := &f.contacts[i]; !c.promised && m.fresh(c) && i >= seeds+probesAtOnce {
				m.formAsk(c.addr)
			}
		}
	}
}

func (m *Machine) askContact(c *contact) {
	j := &m.join
	if !c.nak || !j.first || !m.fresh(c) && j.remembers() {
		m.post(peer.ID{Addr: c.addr}, wire.KindJoinProbe, func(b []byte) []byte { return wire.AppendU64(b, j.nonce) })
	}
	if c.nak && j.agrees() {
		m.formAsk(c.addr)
	}
}

func (m *Machine) formAsk(a peer.Addr) {
	f := &m.join.form
	body := formAskBody{m.join.nonce, f.attempt, f.tries, f.record.Known()}
	m.post(peer.ID{Addr: a}, wire.KindFormAsk, func(b []byte) []byte { return appendFormAsk(b, body) })
}

// fresh reports whether a contact said lately what it remembers.
func (m *Machine) fresh(c *contact) bool {
	return !c.id.IsZero() && m.now-c.at <= freshFor*m.cfg.ProbeInterval
}

func (m *Machine) onFormAsk(from peer.ID, body []byte) error {
	a, err := readFormAsk(body)
	if err != nil {
		return err
	}
	if m.phase == member {
		return m.onProbe(from, wire.AppendU64(nil, a.nonce))
	}
	if m.phase != probing {
		return nil // who has asked to be admitted may be a member already
	}
	f := &m.join.form
	f.told = f.told || a.remembers
	gaveUp := f.pledgedTo == from && !a.wants && a.attempt >= f.pledged
	if gaveUp || f.pledgedTo.Addr == from.Addr && f.pledgedTo.Inc != from.Inc {
		f.pledgedTo, f.pledged = peer.ID{}, 0
	}
	if a.wants && f.tries && from.Addr.Compare(m.self.Addr) < 0 {
		m.giveUpTrying() // the lower address goes first
	}
	granted := uint64(0)
	if a.wants && a.attempt >= f.pledged && (f.pledgedTo.IsZero() || f.pledgedTo == from) {
		f.pledgedTo, f.pledged, granted = from, a.attempt, a.attempt
	}
	m.formAnswer(from, a.nonce, granted)
	m.meet(from.Addr)
	return nil
}

func (m *Machine) formAnswer(to peer.ID, nonce, granted uint64) {
	a := formAnswerBody{to.Inc, nonce, granted, m.join.agrees(), m.join.form.record}
	m.post(to, wire.KindFormAnswer, func(b []byte) []byte { return appendFormAnswer(b, a) })
}

// onFormAnswer takes the word of an address that was asked, for this join only.
func (m *Machine) onFormAnswer(from peer.ID, body []byte) error {
	a, err := readFormAnswer(body)
	if err != nil || m.phase != probing || a.to != m.self.Inc || a.nonce != m.join.nonce {
		return err
	}
	c, f := m.join.contact(from.Addr), &m.join.form
	if c == nil {
		return nil
	}
	if c.id != from {
		c.promised = false
	}
	c.nak, c.id, c.at, c.record, c.may = true, from, m.now, a.record, a.may
	c.promised = c.promised || f.tries && a.attempt == f.attempt
	f.told = f.told || a.record.Known()
	m.meet(a.record.Others...)
	m.tryForming()
	return nil
}

// tryForming forms a cluster when nothing speaks against it, or takes the next step towards that.
func (m *Machine) tryForming() {
	j, f := &m.join, &m.join.form
	switch {
	case m.phase != probing || !j.forms():
	case f.anew || !f.told && !j.remembers():
		// Alone: at once when every seed has said that it is in none, else when the time to look is over.
		said := !slices.ContainsFunc(f.contacts[:len(j.seeds)], func(c contact) bool { return !c.nak })
		if f.pledgedTo.IsZero() && (f.looked || said && !f.anew) {
			m.form()
		}
	case !j.agrees():
	case f.tries:
		m.goOnTrying()
	default:
		m.beginTrying()
	}
}

// allAnswered reports whether each contact has said what it remembers.
func (m *Machine) allAnswered() bool {
	return !slices.ContainsFunc(m.join.form.contacts, func(c contact) bool { return c.id.IsZero() })
}

// beginTrying starts an attempt once all are accounted for, and those who are missing have stopped. The lowest address
// of those who might goes first, the others one after the other, when that has come to nothing for long.
func (m *Machine) beginTrying() {
	f := &m.join.form
	list, ok := m.missing(m.fresh)
	if ok = ok && (f.looked || m.allAnswered()); ok != f.ready {
		f.ready, f.readyAt = ok, m.now
	}
	wait := time.Duration(0)
	if len(list) > 0 {
		wait = m.stopped()
	}
	turn := time.Duration(m.before()) * m.cfg.JoinRetryAfter
	if !ok || !f.pledgedTo.IsZero() || m.now-f.readyAt < wait+turn || f.attempt > 0 && m.now-f.failedAt < turn {
		return
	}
	f.attempt++
	f.tries, f.begun = true, m.now
	f.pledgedTo, f.pledged = m.self, f.attempt
	for i := range f.contacts {
		c := &f.contacts[i]
		if c.promised = false; m.fresh(c) {
			m.formAsk(c.addr)
		}
	}
	m.goOnTrying()
}

// stopped returns after what time those who are missing have stopped, as those that were cut off from all who are here:
// counted from when all of these were heard, for their earlier processes were dead by then.
func (m *Machine) stopped() time.Duration {
	if m.cfg.StopsAfter == nil {
		return 0
	}
	most := len(m.join.form.record.Others)
	for i := range m.join.form.contacts {
		most = max(most, len(m.join.form.contacts[i].record.Others))
	}
	return m.cfg.StopsAfter(most + 1)
}

// before counts those of a lower address who might form the cluster.
func (m *Machine) before() (n int) {
	for i := range m.join.form.contacts {
		if c := &m.join.form.contacts[i]; c.may && m.fresh(c) && c.addr.Compare(m.self.Addr) < 0 {
			n++
		}
	}
	return n
}

// giveUpTrying ends the attempt, and tells those who may have pledged themselves to it.
func (m *Machine) giveUpTrying() {
	f := &m.join.form
	f.tries, f.failedAt, f.pledgedTo, f.pledged = false, m.now, peer.ID{}, 0
	for i := range f.contacts {
		if c := &f.contacts[i]; !c.id.IsZero() {
			m.formAsk(c.addr)
		}
	}
}

// goOnTrying forms the cluster when those who have pledged themselves suffice, and gives up when that takes too long.
func (m *Machine) goOnTrying() {
	f := &m.join.form
	if m.now-f.begun > attemptFor*m.cfg.ProbeInterval {
		m.giveUpTrying()
		return
	}
	if _, ok := m.missing(func(c *contact) bool { return c.promised }); ok {
		m.form()
	}
}

// missing returns the addresses that some record names and for which no contact stands of which present holds, sorted;
// ok when no record misses more of them than it may.
func (m *Machine) missing(present func(*contact) bool) (list []peer.Addr, ok bool) {
	f := &m.join.form
	at := map[peer.Addr]bool{m.self.Addr: true}
	for i := range f.contacts {
		if c := &f.contacts[i]; present(c) {
			at[c.addr] = true
		}
	}
	ok = m.bears(f.record, at, &list)
	for i := range f.contacts {
		ok = m.bears(f.contacts[i].record, at, &list) && ok
	}
	return sortAddrs(list), ok
}

// bears adds to list whom r names and at lacks, and reports whether they are few enough.
func (m *Machine) bears(r Record, at map[peer.Addr]bool, list *[]peer.Addr) bool {
	lacks, all := r.More, len(r.Others)-r.Newcomers+r.More
	for _, a := range r.Others {
		if !at[a] {
			*list = append(*list, a)
			lacks++
		}
	}
	if r.Counts {
		all++
	}
	may := 0
	if m.cfg.MayMiss != nil {
		may = m.cfg.MayMiss(all)
	}
	return r.More == 0 && lacks <= may
}

// heldBack returns why this node forms no cluster, empty when it may or has nothing to do with it.
func (m *Machine) heldBack() string {
	j, f := &m.join, &m.join.form
	switch {
	case m.phase != probing || f.anew:
		return ""
	case f.never:
		return "this node never forms a cluster, and no seed is in one"
	case !j.first && !f.record.Known():
		return ""
	}
	list, ok := m.missing(m.fresh)
	switch {
	case f.asked || ok || !j.remembers() && !f.told:
		return ""
	}
	names := make([]string, 0, heldNames)
	for _, a := range list[:min(len(list), heldNames)] {
		names = append(names, a.String())
	}
	if more := len(list) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return fmt.Sprintf("members of a cluster that is remembered may live and carry it on: nothing is heard of %s",
		strings.Join(names, ", "))
}

// tellHeld tells an operator why no cluster is formed, now and then.
func (m *Machine) tellHeld() {
	f := &m.join.form
	if !f.looked || m.now < f.heldAt {
		return
	}
	if text := m.heldBack(); text != "" {
		f.heldAt = m.now + heldAgain
		m.tell(Event{Kind: FormingHeld, Detail: text})
	}
}

// seedTimeout ends the time in which others are looked for.
func (m *Machine) seedTimeout() {
	m.join.form.looked = true
	if m.tryForming(); m.phase == probing {
		m.tellHeld()
	}
}

// lowestBirth returns what the birth of a cluster that is formed here must exceed.
func (m *Machine) lowestBirth() uint64 {
	least := max(m.cfg.MinBirth, m.join.form.record.Highest)
	for i := range m.join.form.contacts {
		least = max(least, m.join.form.contacts[i].record.Highest)
	}
	return least
}
