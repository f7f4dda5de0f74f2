// Forming: which node may form a cluster, and when. A node that remembers others forms none until those that could
// carry the old one on have said that they are in none, and have pledged themselves to it (JOIN-1).
//
// A first seed that remembers nobody forms alone, as long as no node that it hears remembers others: one that does
// answers a probe with what it remembers. Otherwise it forms as everybody else does, by records: each that it has heard
// of, its own first, must be accounted for. An address is accounted for when the process there says that it is in no
// cluster, and pledges itself to this attempt; as many may be missing as the resolver's rule bears (Config.MayMiss). A
// node pledges itself to one attempt at a time and lets go only when the one it pledged itself to says that it has
// given that attempt up, or has a successor at its address. No clock is needed for that: of two attempts that share a
// voter, at most one succeeds. A missing node may still handle messages, and so may a member without the role, which no
// agreement needs: while one of these is not heard, forming waits until they have stopped.

package membership

import (
	"slices"
	"time"

	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

const (
	maxContacts  = MaxSeeds + 3*MaxRemembered // addresses that a joiner asks, those from answers of others included
	probesAtOnce = 64                         // of those that are no seeds, in one interval
	attemptFor   = 3                          // probe intervals after which an attempt is given up
	freshFor     = 5                          // probe intervals for which an answer says that its sender lives
	heldAgain    = time.Minute                // how often FormingHeld is reported
	heldNames    = 8                          // addresses that it names
)

// contact is an address that a joiner asks, and what the process there said.
type contact struct {
	addr     peer.Addr
	nak      bool          // it is in no cluster
	id       peer.ID       // the node that answered what it remembers; zero: none yet
	at       time.Duration // when
	record   Record
	may      bool // it might form a cluster itself
	promised bool // it has pledged itself to the attempt that goes on

	spoke     bool // it has answered, whatever it said
	unasked   bool // the last attempt could not ask it: its name could not be looked up
	unaskedAt time.Duration
	unreached unreached // why it could not be asked since
}

// forming is how nodes that are in no cluster come to have one.
type forming struct {
	*core
	joining   *joining
	admission *admission

	formState
}

// formState is what a joiner knows of others that are in no cluster, and its own attempt.
type formState struct {
	record         Record
	former         peer.Addr // where record was kept, if not here
	never          bool      // it forms no cluster
	anew           bool      // an operator wants a new one, whatever anybody remembers
	asked          bool      // it asked a cluster to admit it: this incarnation forms none any more
	othersRemember bool      // another node remembers a cluster
	looked         bool      // the seed timeout has passed
	contacts       []contact
	nextAt         int // where the rotation through those that are no seeds goes on

	attempt   uint64        // the latest, from 1
	tries     bool          // it goes on
	begun     time.Duration // since when
	failedAt  time.Duration // when the last one was given up
	ready     bool          // all are accounted for
	readyAt   time.Duration // since when
	pledgedTo peer.ID       // this node itself while it tries
	pledged   uint64        // to which attempt of that one
	heldAt    time.Duration // when to report it again
}

// remembers reports whether this node forms by its record only. One in which nobody could carry the cluster on, this
// node included, says nothing about which may form the next: the first seed does, as where nobody remembers anything,
// but not before those that could not have stopped.
func (f *forming) remembers() bool {
	r := &f.record
	switch {
	case !r.Known() || !r.Alone():
		return r.Known()
	case f.joining.first:
		return len(r.Bystanders) > 0
	}
	return r.Counts
}

// forms reports whether this incarnation may form a cluster at all.
func (f *forming) forms() bool {
	return !f.never && !f.asked && (f.joining.first || f.anew || f.remembers())
}

// agrees reports whether it forms one only by agreement with others: by what it remembers, or, as the first seed, by
// what the nodes remember that it hears. Some of these may form none: one that has asked to be admitted, for example.
func (f *forming) agrees() bool {
	return (f.remembers() || f.othersRemember) && f.forms() && !f.anew
}

// contact returns what is known of an address that this node asks, nil for another one.
func (f *forming) contact(a peer.Addr) *contact {
	i := slices.IndexFunc(f.contacts, func(c contact) bool { return c.addr == a })
	if i < 0 {
		return nil
	}
	return &f.contacts[i]
}

// meet adds addresses to those that are asked.
func (f *forming) meet(list ...peer.Addr) {
	for _, a := range list {
		if len(f.contacts) < maxContacts && a != f.self.Addr && f.contact(a) == nil {
			f.contacts = append(f.contacts, contact{addr: a})
		}
	}
}

// askContacts asks contacts that have not said yet whether they are in a cluster, and, where this node may form one,
// what those in none remember: all seeds, and some of the others in turn.
func (f *forming) askContacts() {
	seeds := len(f.joining.seeds)
	for i := range seeds {
		f.askContact(&f.contacts[i])
	}
	rest := len(f.contacts) - seeds
	for range min(rest, probesAtOnce) {
		f.nextAt = (f.nextAt + 1) % rest
		f.askContact(&f.contacts[seeds+f.nextAt])
	}
	if f.tries { // those that were not their turn
		for i := range f.contacts {
			if c := &f.contacts[i]; !c.promised && f.fresh(c) && i >= seeds+probesAtOnce {
				f.formAsk(c.addr)
			}
		}
	}
}

func (f *forming) askContact(c *contact) {
	if !c.nak || !f.joining.first || !f.fresh(c) && f.remembers() {
		f.post(peer.ID{Addr: c.addr}, wire.KindJoinProbe, func(b []byte) []byte { return wire.AppendU64(b, f.joining.nonce) })
	}
	if c.nak && f.agrees() {
		f.formAsk(c.addr)
	}
}

func (f *forming) formAsk(a peer.Addr) {
	body := formAskBody{f.joining.nonce, f.attempt, f.tries, f.record.Known()}
	f.post(peer.ID{Addr: a}, wire.KindFormAsk, func(b []byte) []byte { return appendFormAsk(b, body) })
}

// fresh reports whether a contact said lately what it remembers.
func (f *forming) fresh(c *contact) bool {
	return !c.id.IsZero() && f.now-c.at <= freshFor*f.cfg.ProbeInterval
}

func (f *forming) onFormAsk(from peer.ID, body []byte) error {
	a, err := readFormAsk(body)
	if err != nil {
		return err
	}
	if f.phase == member {
		return f.admission.onProbe(from, wire.AppendU64(nil, a.nonce))
	}
	if f.phase != probing {
		return nil // it has asked to be admitted, and may be a member already
	}
	f.othersRemember = f.othersRemember || a.remembers
	gaveUp := f.pledgedTo == from && !a.wants && a.attempt >= f.pledged
	if gaveUp || f.pledgedTo.Addr == from.Addr && f.pledgedTo.Inc != from.Inc {
		f.pledgedTo, f.pledged = peer.ID{}, 0
	}
	if a.wants && f.tries && from.Addr.Compare(f.self.Addr) < 0 {
		f.giveUpTrying() // the lower address goes first
	}
	granted := uint64(0)
	if a.wants && a.attempt >= f.pledged && (f.pledgedTo.IsZero() || f.pledgedTo == from) {
		f.pledgedTo, f.pledged, granted = from, a.attempt, a.attempt
	}
	f.formAnswer(from, a.nonce, granted)
	f.meet(from.Addr)
	return nil
}

func (f *forming) formAnswer(to peer.ID, nonce, granted uint64) {
	a := formAnswerBody{to.Inc, nonce, granted, f.agrees(), f.record}
	f.post(to, wire.KindFormAnswer, func(b []byte) []byte { return appendFormAnswer(b, a) })
}

// onFormAnswer takes the word of an address that was asked, for this join only.
func (f *forming) onFormAnswer(from peer.ID, body []byte) error {
	a, err := readFormAnswer(body)
	if err != nil || f.phase != probing || a.to != f.self.Inc || a.nonce != f.joining.nonce {
		return err
	}
	c := f.contact(from.Addr)
	if c == nil {
		return nil
	}
	if c.id != from {
		c.promised = false
	}
	c.nak, c.id, c.at, c.record, c.may = true, from, f.now, a.record, a.may
	c.promised = c.promised || f.tries && a.attempt == f.attempt
	f.othersRemember = f.othersRemember || a.record.Known()
	f.meet(a.record.Others...)
	f.tryForming()
	return nil
}

// tryForming forms a cluster when nothing speaks against it, or takes the next step towards that.
func (f *forming) tryForming() {
	switch {
	case f.phase != probing || !f.forms():
	case !f.agrees():
		// Alone: at once when every seed has said that it is in none, else when the time to look is over.
		said := !slices.ContainsFunc(f.contacts[:len(f.joining.seeds)], func(c contact) bool { return !c.nak })
		if c := f.contact(f.former); c != nil && !f.former.IsZero() {
			said = said && c.nak
		}
		silence := f.looked && (f.anew || len(f.unasked()) == 0)
		if f.pledgedTo.IsZero() && (silence || said && !f.anew) {
			f.joining.form(f.because())
		}
	case f.tries:
		f.goOnTrying()
	default:
		f.beginTrying()
	}
}

// allAnswered reports whether each contact has said what it remembers.
func (f *forming) allAnswered() bool {
	return !slices.ContainsFunc(f.contacts, func(c contact) bool { return c.id.IsZero() })
}

// beginTrying starts an attempt once all are accounted for, and the missing ones have stopped. The lowest address of
// those that might form it goes first, the others one after the other, when that has come to nothing for long.
func (f *forming) beginTrying() {
	list, ok := f.missing(f.fresh)
	if ok = ok && (f.looked || f.allAnswered()); ok != f.ready {
		f.ready, f.readyAt = ok, f.now
	}
	wait := time.Duration(0)
	over := func(a peer.Addr) bool { c := f.contact(a); return c != nil && f.fresh(c) || a == f.self.Addr }
	if len(list) > 0 || f.record.bystands(over) {
		wait = f.stopped()
	}
	turn := time.Duration(f.before()) * f.cfg.JoinRetryAfter
	if !ok || !f.pledgedTo.IsZero() || f.now-f.readyAt < wait+turn || f.attempt > 0 && f.now-f.failedAt < turn {
		return
	}
	f.attempt++
	f.tries, f.begun = true, f.now
	f.pledgedTo, f.pledged = f.self, f.attempt
	for i := range f.contacts {
		c := &f.contacts[i]
		if c.promised = false; f.fresh(c) {
			f.formAsk(c.addr)
		}
	}
	f.goOnTrying()
}

// stopped returns after what time the missing nodes have stopped, cut off from all that are here: counted from when all
// of these were heard, for their earlier processes were dead by then.
func (f *forming) stopped() time.Duration {
	if f.cfg.StopsAfter == nil {
		return 0
	}
	most := f.record.members()
	for i := range f.contacts {
		most = max(most, f.contacts[i].record.members())
	}
	return f.cfg.StopsAfter(most)
}

// before counts the nodes of a lower address that might form the cluster.
func (f *forming) before() (n int) {
	for i := range f.contacts {
		if c := &f.contacts[i]; c.may && f.fresh(c) && c.addr.Compare(f.self.Addr) < 0 {
			n++
		}
	}
	return n
}

// giveUpTrying ends the attempt, and notifies the nodes that may have pledged themselves to it.
func (f *forming) giveUpTrying() {
	f.tries, f.failedAt, f.pledgedTo, f.pledged = false, f.now, peer.ID{}, 0
	for i := range f.contacts {
		if c := &f.contacts[i]; !c.id.IsZero() {
			f.formAsk(c.addr)
		}
	}
}

// goOnTrying forms the cluster when enough nodes have pledged themselves, and gives up when that takes too long.
func (f *forming) goOnTrying() {
	if f.now-f.begun > attemptFor*f.cfg.ProbeInterval {
		f.giveUpTrying()
		return
	}
	if list, ok := f.missing(func(c *contact) bool { return c.promised }); ok {
		f.joining.form(f.agreed(list))
	}
}

// missing returns the addresses that some record names and for which no contact stands of which present holds, sorted;
// ok when no record misses more of them than it may.
func (f *forming) missing(present func(*contact) bool) (list []peer.Addr, ok bool) {
	at := map[peer.Addr]bool{f.self.Addr: true}
	for i := range f.contacts {
		if c := &f.contacts[i]; present(c) {
			at[c.addr] = true
		}
	}
	ok = f.bears(f.record, at, &list)
	for i := range f.contacts {
		ok = f.bears(f.contacts[i].record, at, &list) && ok
	}
	return sortAddrs(list), ok
}

// bears adds to list the addresses that r names and at lacks, and reports whether they are few enough.
func (f *forming) bears(r Record, at map[peer.Addr]bool, list *[]peer.Addr) bool {
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
	if f.cfg.MayMiss != nil {
		may = f.cfg.MayMiss(all)
	}
	return r.More == 0 && lacks <= may
}

// tellHeld reports to an operator why no cluster is formed, now and then.
func (f *forming) tellHeld() {
	if !f.looked || f.now < f.heldAt {
		return
	}
	if text := f.heldBack(); text != "" {
		f.heldAt = f.now + heldAgain
		f.tell(Event{Kind: FormingHeld, Detail: text})
	}
}

// seedTimeout ends the time in which others are looked for.
func (f *forming) seedTimeout() {
	f.looked = true
	if f.tryForming(); f.phase == probing {
		f.tellHeld()
	}
}

// lowestBirth returns what the birth of a cluster that is formed here must exceed.
func (f *forming) lowestBirth() uint64 {
	least := max(f.cfg.MinBirth, f.record.Highest)
	for i := range f.contacts {
		least = max(least, f.contacts[i].record.Highest)
	}
	return least
}
