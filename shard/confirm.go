// Confirmation: a node that has suspended itself asks whether it still is a member and the owner of what lives here.
//
// A suspended node may have slept through its own removal, so nothing that it knows by itself may wake it. It asks the
// coordinators of the types of which shards live here, and other members, under nonces drawn for this suspension: an
// answer given before it does not count. A member answers only one that is a member and not Down in its own view. That
// is what makes the answer worth something: a shard is given to another only after its owner was Down in the view of
// every member that counts and the takeover time has passed, so one member that knows how the cluster stands and still
// holds this incarnation for a member says that this time has not even begun for it, or has begun less than a round of
// gossip ago.
//
// A member knows how the cluster stands if it is in office (Up, Leaving, in a full shutdown), so that removals wait for
// its view; is not suspended; and hears everybody, with nobody late and no accusation open. One that misses others may
// be cut off with the asker, from the members that removed both.
//
// Every other answer is weaker. When nobody gives the strong one, the answers of all other members that are not Down
// do: every member that could have removed this node is among them. So a cluster that slept as a whole wakes up, and
// one that is alone need not ask; nor one for which all others are Down: its resolver or an operator has decided that
// it lives without them. Effects.Vacuous reports that nobody was asked: after a long sleep it may mean nothing. A
// joining member answers too, also one that never learnt of its admission: it removed nobody. The suspended node may be
// the only one that could tell it, and admits no node before it is confirmed itself: each would wait for the other for
// ever.
//
// A node that coordinates itself has no other coordinator to learn from that a shard is another's. It asks some members
// about that in its own name: a member that has promised to a higher term says so, that ends its own, and it asks the
// successor about its shards.

package shard

import (
	"fmt"
	"slices"
	"sort"

	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

// askedAtOnce is how many members beside the coordinators are asked in one round: the cost of a cluster that wakes up.
const askedAtOnce = 16

// askedForTerms is how many members are asked whether they know a higher term than this node's own.
const askedForTerms = 3

// confirmation is the state of a suspended node. Its zero value is a node that is not.
type confirmation struct {
	held   bool
	done   bool // Effects.Confirmed was given
	nonce  uint64
	retry  timer
	round  int      // of asking members, which ones are next
	heard  peer.Set // members that answered
	firm   bool     // one of them is not suspended
	owners []answered
	lapsed bool // LapseCommand: of that it needs nobody's word to go on
}

// answered is what a coordinator has said of shards of one type, rising by type and first shard.
type answered struct {
	typ   route.TypeID
	term  uint32
	by    peer.ID
	upTo  route.ShardID // of the message: its first and last shard
	first route.ShardID
}

// hold begins or ends the suspension. Beginning again starts anew: earlier answers no longer count.
func (m *Machine) hold(on bool) {
	if !on {
		m.confirm = confirmation{lapsed: m.confirm.lapsed}
		reviewHands(m)
		m.reviewAll()
		return
	}
	m.confirm = confirmation{held: true, nonce: m.rng.Uint64() | 1, lapsed: m.confirm.lapsed}
	if m.view == nil || m.over {
		return
	}
	m.confirm.retry.start(m)
	m.askConfirmation()
}

// tickConfirm repeats what was not answered.
func (m *Machine) tickConfirm() {
	c := &m.confirm
	if !c.held || c.done || !c.retry.due(m, peer.ID{}) {
		return
	}
	m.askConfirmation()
}

func (m *Machine) askConfirmation() {
	for _, id := range m.agenda.order {
		t := m.types[id]
		if t.region == nil || t.region.hosted.Len() == 0 || t.region.to == m.self || t.region.to.IsZero() {
			continue
		}
		for _, list := range m.unanswered(t) {
			m.post(t.region.to, confirmOwner{head: m.head(t.id, t.region.term), Nonce: m.confirm.nonce, Entries: list})
		}
	}
	m.askMembers()
	m.checkConfirm()
}

// askMembers asks the next few members that have not answered, the oldest first: they are the ones that decide.
func (m *Machine) askMembers() {
	c := &m.confirm
	var list []membership.Member
	for _, mb := range m.view.Members {
		if mb.ID != m.self && mb.Status != membership.Down && !c.heard.Has(mb.ID) {
			list = append(list, mb)
		}
	}
	if len(list) == 0 {
		return
	}
	sort.SliceStable(list, func(i, k int) bool { return list[i].UpNumber-1 < list[k].UpNumber-1 })
	start := 0
	if len(list) > askedAtOnce {
		start = c.round * askedAtOnce % len(list)
	}
	for i := range min(askedAtOnce, len(list)) {
		to := list[(start+i)%len(list)].ID
		if i < askedForTerms {
			m.askForTerms(to)
		}
		m.post(to, confirmOwner{head: head{Birth: m.view.Birth}, Nonce: c.nonce, Entries: []held{}})
	}
	c.round++
}

// askForTerms asks a member about one shard of each type that this node coordinates: it answers if it has promised to
// a higher term.
func (m *Machine) askForTerms(to peer.ID) {
	for _, id := range m.agenda.order {
		t := m.types[id]
		if t.region == nil || t.region.hosted.Len() == 0 || t.region.to != m.self {
			continue
		}
		for s := range t.region.hosted.All {
			m.post(to, confirmOwner{head: m.head(t.id, t.region.term), Nonce: m.confirm.nonce,
				Entries: []held{{s, t.region.peek(s).fence}}})
			break
		}
	}
}

// unanswered lists the shards that live here, cut into messages, without the messages that the present coordinator has
// answered.
func (m *Machine) unanswered(t *typ) (messages [][]held) {
	var list []held
	flush := func() {
		if len(list) > 0 && !m.answeredBy(t, list[0].Shard, list[len(list)-1].Shard) {
			messages = append(messages, list)
		}
		list = nil
	}
	for s := range t.region.hosted.All {
		if list = append(list, held{s, t.region.peek(s).fence}); len(list) == maxEntries {
			flush()
		}
	}
	flush()
	return messages
}

func (m *Machine) answeredBy(t *typ, first, last route.ShardID) bool {
	return slices.ContainsFunc(m.confirm.owners, func(a answered) bool {
		return a.typ == t.id && a.term == t.region.term && a.by == t.region.to && a.first <= first && a.upTo >= last
	})
}

// onConfirmOwner answers one that asks whether it still is a member, and owner of the shards it names. Mail of others
// than members that are not Down does not come this far.
func (m *Machine) onConfirmOwner(from peer.ID, q confirmOwner) {
	answer := ownerConfirmed{head: q.head, Nonce: q.Nonce, Firm: m.knows(), Lost: []held{}}
	if q.Term == 0 {
		m.post(from, answer)
		return
	}
	c := m.coordinatorFor(from, q.head)
	if c == nil || !c.ready {
		return // it asks again, here or at the successor
	}
	for _, e := range q.Entries {
		if r := c.records.Peek(e.Shard); r.phase == free || r.home.id != from || r.fence != e.Fence {
			answer.Lost = append(answer.Lost, e)
		}
	}
	if n := len(q.Entries); n > 0 {
		answer.First, answer.Last = q.Entries[0].Shard, q.Entries[n-1].Shard
	}
	m.post(from, answer)
}

// knows reports whether this node knows how the cluster stands.
func (m *Machine) knows() bool {
	if m.confirm.held || !m.inOffice() || m.cfg.Late != nil && m.cfg.Late() {
		return false
	}
	for _, a := range m.view.Accusations {
		if m.live(a.Observer) && m.live(a.Subject) {
			return false
		}
	}
	return true
}

// answerUnadmitted answers one that asks a node which has no view yet: it knows nothing, so it speaks for nobody.
func (m *Machine) answerUnadmitted(from peer.ID, q confirmOwner) {
	m.post(from, ownerConfirmed{head: q.head, Nonce: q.Nonce, Lost: []held{}})
}

// onOwnerConfirmed takes an answer to this suspension's question. Shards that are not ours any more are given up: their
// handlers are not called again.
func (m *Machine) onOwnerConfirmed(from peer.ID, a ownerConfirmed) {
	c := &m.confirm
	if !c.held || c.done || a.Nonce != c.nonce {
		return
	}
	if a.Term != 0 {
		t := typeOf(m, a.Type)
		if t == nil || t.region == nil || t.region.to != from || t.region.term != a.Term {
			return
		}
		for _, e := range a.Lost {
			m.giveUp(t, e)
		}
		c.owners = append(c.owners, answered{typ: t.id, term: a.Term, by: from, first: a.First, upTo: a.Last})
	}
	c.heard.Add(from)
	mb, _ := m.view.Member(from) // builds before answered firmly whenever they were not suspended
	c.firm = c.firm || a.Firm && (mb.Status.Working() || mb.Status == membership.Leaving)
}

// giveUp ends an ownership that the coordinator does not know, without a call into its handlers.
func (m *Machine) giveUp(t *typ, e held) {
	if s := t.region.peek(e.Shard); s.host == notHosted || s.fence != e.Fence {
		return
	}
	s := t.region.slot(e.Shard)
	m.out.Hosts = append(m.out.Hosts, HostOrder{Type: t.id, Shard: e.Shard, Fence: e.Fence, Stop: true, Abandon: true})
	t.region.hand.lose(e.Shard)
	if s.host == hosted || s.state == RouteMoving {
		m.forget(t, e.Shard)
	}
	s.host, s.ended, s.fence, s.ending = notHosted, maxFence(s.ended, e.Fence), route.Fence{}, true
	t.region.hosted.Remove(e.Shard)
}

// checkConfirm confirms the node when enough has been answered.
func (m *Machine) checkConfirm() {
	c := &m.confirm
	if !c.held || c.done || m.view == nil || m.over || !c.membership(m.view, m.self) {
		return
	}
	m.out.Member = true
	for _, id := range m.agenda.order { // last: it looks at every shard that lives here
		t := m.types[id]
		if t.region == nil || t.region.hosted.Len() == 0 || t.region.to == m.self {
			continue
		}
		if t.region.to.IsZero() || len(m.unanswered(t)) > 0 {
			return
		}
	}
	c.done = true
	c.retry.stop()
	m.out.Confirmed, m.out.Vacuous = true, len(c.heard) == 0
}

// membership reports whether members have said that this node is one of them.
func (c *confirmation) membership(v *membership.View, self peer.ID) bool {
	return c.firm || !slices.ContainsFunc(v.Members, func(mb membership.Member) bool {
		return mb.ID != self && mb.Status != membership.Down && !c.heard.Has(mb.ID)
	})
}

// checkConfirmation returns ErrNonsense for a question or answer that cannot be true. It changes nothing.
func (m *Machine) checkConfirmation(from peer.ID, h head, k wire.Kind, highest route.ShardID) error {
	mb, ok := m.view.Member(from)
	if k == wire.KindConfirmAck && h.Term != 0 && ok && mb.UpNumber != 0 && mb.UpNumber != h.Term {
		return fmt.Errorf("%w: %s from %s with term %d, its up-number is %d", ErrNonsense, k, from, h.Term, mb.UpNumber)
	}
	t := m.types[h.Type]
	if t == nil || h.Term == 0 {
		return nil
	}
	shards := uint32(0)
	switch {
	case k == wire.KindConfirmOwner && t.coord != nil:
		shards = t.coord.settings.Shards
	case k == wire.KindConfirmAck && t.region != nil:
		shards = t.region.settings.Shards
	}
	if shards > 0 && uint32(highest) >= shards {
		return fmt.Errorf("%w: %s from %s names shard %d of %d", ErrNonsense, k, from, highest, shards)
	}
	return nil
}

// confirmOwner asks whether the sender still is a member, and, with a term, the owner of these shards under these
// fences. A term of zero is the question of membership alone, of no type and without shards.
type confirmOwner struct {
	head
	Nonce   uint64
	Entries []held
}

func (confirmOwner) kind() wire.Kind { return wire.KindConfirmOwner }

func (c confirmOwner) append(b []byte) []byte {
	return appendHeld(wire.AppendU64(c.head.append(b), c.Nonce), c.Entries)
}

func readConfirmOwner(r *wire.Reader) message {
	c := confirmOwner{head: readLooseHead(r), Nonce: r.U64()}
	c.Entries = readHeld(r, c.Birth)
	if r.Err() == nil && (c.Nonce == 0 || (c.Term == 0) != (len(c.Entries) == 0)) {
		r.Fail(wire.ErrBadValue)
	}
	return c
}

// ownerConfirmed answers with the question's head and nonce: yes, but for the shards of Lost. Firm says that the
// answering member knows how the cluster stands. First and Last are the first and last shard of the question.
type ownerConfirmed struct {
	head
	Nonce       uint64
	Firm        bool
	First, Last route.ShardID
	Lost        []held
}

func (ownerConfirmed) kind() wire.Kind { return wire.KindConfirmAck }

func (c ownerConfirmed) append(b []byte) []byte {
	b = wire.AppendU64(c.head.append(b), c.Nonce)
	b = wire.AppendBool(b, c.Firm)
	b = wire.AppendUvarint(b, uint64(c.First))
	b = wire.AppendUvarint(b, uint64(c.Last-c.First))
	return appendHeld(b, c.Lost)
}

func readOwnerConfirmed(r *wire.Reader) message {
	c := ownerConfirmed{head: readLooseHead(r), Nonce: r.U64(), Firm: r.Bool()}
	c.First = readShard(r, 0)
	c.Last = readShard(r, c.First)
	c.Lost = readHeld(r, c.Birth)
	if r.Err() != nil {
		return c
	}
	n := len(c.Lost)
	if c.Nonce == 0 || c.Term == 0 && (n > 0 || c.Last > 0) ||
		n > 0 && (c.Lost[0].Shard < c.First || c.Lost[n-1].Shard > c.Last) {
		r.Fail(wire.ErrBadValue)
	}
	return c
}

// readLooseHead reads a head with a term that may be zero if the type is.
func readLooseHead(r *wire.Reader) head {
	h := head{Birth: r.U64(), Type: route.TypeID(r.U32()), Term: r.U32()}
	if r.Err() == nil && (h.Birth == 0 || h.Term == 0 && h.Type != 0) {
		r.Fail(wire.ErrBadValue)
	}
	return h
}
