// Pressure: messages of senders that wait for room are taken even into a full mailbox; the senders hear that it is
// full, and when there is room again.

package entity

import (
	"slices"

	"github.com/kith-io/kith/route"
)

// mostPressed is how many senders may send beyond the bound of one mailbox at once; the messages of others do not
// count for more room.
const mostPressed = 64

// Sender is the connection by which messages of senders that wait for room come (Message.Sender). Its methods are
// called under the shard's lock, do not block, and do not call back into a shard. Senders are compared. Of a sender on
// the entity's own node (Message.Here) only Room is called, once for all that wait there.
type Sender interface {
	// Full says that the mailbox of the entity with that hash of its id holds its bound, limit bytes. It returns how many
	// bytes may have been sent already before this is heard, all of which are taken, at least one; zero when the sender
	// had heard of it before, or cannot hear of it.
	Full(t route.TypeID, n route.ShardID, hash uint64, limit int) (allowance int)
	// Room says that half of the bound is free again. It follows each Full that did not return zero, or the connection is
	// gone.
	Room(t route.TypeID, n route.ShardID, hash uint64)
	// Gone reports whether the connection is gone: its other end has forgotten what is full.
	Gone() bool
}

// pressure is what an entity knows of senders that wait for room in its mailbox.
type pressure struct {
	told     []Sender // that the mailbox is full
	forced   int      // bytes taken beyond MailboxBytes since the first of them was
	allowed  int      // most that these may come to
	allowing int      // senders that it comes from
}

// pressed reports whether somebody waits for room in the mailbox of a.
func (a *activity) pressed() bool { return a.press != nil && len(a.press.told) > 0 }

// press takes a message of a sender that waits for room. It is refused only when more comes than senders can have sent
// before they heard that the mailbox is full.
func (e *Entity) press(s *Shard, r record, m *Message) route.Reason {
	n := counted(m.Payload, m.Headers)
	waits := 0
	if e.act != nil {
		waits = e.act.bytes
	}
	over := n > s.typ.MailboxBytes-waits
	if m.Here && !m.Parked {
		if waits > 0 && (over || e.act.pressed()) {
			e.pressedHere(s, m.Sender)
			return route.MailboxFull
		}
		return s.put(e, r, m.Payload, m.Headers, bounded)
	}
	if over && waits > 0 {
		e.tellFull(s, m)
		switch p := e.act.press; { // what was parked is taken in any case, and takes no room from what comes behind it
		case m.Parked:
		case p == nil || n > p.allowed-p.forced:
			return route.MailboxFull
		default:
			p.forced += n
		}
	}
	why := s.put(e, r, m.Payload, m.Headers, forced)
	if over && waits == 0 {
		e.tellFull(s, m)
	}
	return why
}

// tellFull says to the sender of a message that the mailbox of e, which waits, is full.
func (e *Entity) tellFull(s *Shard, m *Message) {
	hash := m.Hash
	if hash == 0 {
		hash = HashID(m.ID)
	}
	allowance := m.Sender.Full(route.TypeOf(s.typ.Name), s.id, hash, s.typ.MailboxBytes)
	if allowance == 0 {
		return
	}
	p := e.pressedBy(s, m.Sender)
	if p.allowing < mostPressed {
		p.allowing++
		p.allowed += allowance
	}
}

// pressedHere notes a sender of this node, once.
func (e *Entity) pressedHere(s *Shard, sender Sender) {
	if p := e.act.press; p == nil || !slices.Contains(p.told, sender) {
		e.pressedBy(s, sender)
	}
}

// pressedBy notes which sender is to hear when the mailbox of e has room.
func (e *Entity) pressedBy(s *Shard, sender Sender) *pressure {
	p := e.act.press
	if p == nil {
		p = &pressure{}
		e.act.press = p
	}
	if len(p.told) == 0 {
		s.stats.Filled++
		s.stats.Full++
	}
	if len(p.told) >= mostPressed {
		p.told = stillThere(p.told)
	}
	p.told = append(p.told, sender)
	return p
}

// stillThere keeps those that are not gone.
func stillThere(list []Sender) []Sender {
	kept := list[:0]
	for _, s := range list {
		if !s.Gone() {
			kept = append(kept, s)
		}
	}
	clear(list[len(kept):])
	return kept
}

// relieve tells the senders that heard of the full mailbox of e that it has room.
func relieve(s *Shard, e *Entity) {
	p := e.act.press
	t, hash := route.TypeOf(s.typ.Name), HashID([]byte(e.id))
	for _, to := range p.told {
		to.Room(t, s.id, hash)
	}
	s.stats.Full--
	clear(p.told)
	p.told, p.forced, p.allowed, p.allowing = p.told[:0], 0, 0, 0
}
