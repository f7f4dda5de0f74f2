// Pressure: messages whose senders wait for room are taken even into a full mailbox; their senders are told that it is
// full, and when there is room again.

package entity

import (
	"slices"

	"github.com/kith-io/kith/route"
)

// mostPressed is how many senders may send beyond the bound of one mailbox at once; the messages of others do not
// count for more room.
const mostPressed = 64

// Sender is the connection by which messages come whose senders wait for room (Message.Sender). Its methods are called
// under the shard's lock, do not block, and do not call back into a shard. Senders are compared. Of a sender on the
// entity's own node (Message.Here) only Room is called, once for all who wait there.
type Sender interface {
	// Full says that the mailbox of the entity with that hash of its id holds its bound, limit bytes. It returns how many
	// bytes may have been sent already before this is heard, all of which are taken, at least one; zero when it had been
	// told, or cannot be.
	Full(t route.TypeID, n route.ShardID, hash uint64, limit int) (allowance int)
	// Room says that half of the bound is free again. It follows each Full that did not return zero, or the connection is
	// gone.
	Room(t route.TypeID, n route.ShardID, hash uint64)
	// Gone reports whether the connection is gone: what it was told is forgotten at its other end.
	Gone() bool
}

// press takes a message whose sender waits for room. It is refused only when more comes than senders that were told can
// have sent before they heard it.
func (e *Entity) press(s *Shard, r record, m *Message) route.Reason {
	n := counted(m.Payload, m.Headers)
	waits := 0
	if e.act != nil {
		waits = e.act.bytes
	}
	over := n > s.typ.MailboxBytes-waits
	if m.Here && !m.Parked {
		if waits > 0 && (over || len(e.act.pressed) > 0) {
			e.pressedHere(s, m.Sender)
			return route.MailboxFull
		}
		return s.put(e, r, m.Payload, m.Headers, false)
	}
	if over && waits > 0 {
		a := e.act
		e.tellFull(s, m)
		switch { // what was parked is taken in any case, and takes no room from what comes behind it
		case m.Parked:
		case n > a.allowed-a.forced:
			return route.MailboxFull
		default:
			a.forced += n
		}
	}
	why := s.put(e, r, m.Payload, m.Headers, true)
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
	a := e.act
	e.pressedBy(s, m.Sender)
	if a.allowing < mostPressed {
		a.allowing++
		a.allowed += allowance
	}
}

// pressedHere notes a sender of this node, once.
func (e *Entity) pressedHere(s *Shard, sender Sender) {
	if !slices.Contains(e.act.pressed, sender) {
		e.pressedBy(s, sender)
	}
}

// pressedBy notes who is to be told when the mailbox of e has room.
func (e *Entity) pressedBy(s *Shard, sender Sender) {
	a := e.act
	if len(a.pressed) == 0 {
		s.stats.Filled++
		s.stats.Full++
	}
	if len(a.pressed) >= mostPressed {
		a.pressed = stillThere(a.pressed)
	}
	a.pressed = append(a.pressed, sender)
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

// relieve tells all that were told that the mailbox is full that it has room.
func (a *activity) relieve() {
	s := a.ctx.s
	t, hash := route.TypeOf(s.typ.Name), HashID([]byte(a.ctx.e.id))
	for _, to := range a.pressed {
		to.Room(t, s.id, hash)
	}
	s.stats.Full--
	clear(a.pressed)
	a.pressed, a.forced, a.allowed, a.allowing = a.pressed[:0], 0, 0, 0
}
