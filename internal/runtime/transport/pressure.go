// Pressure: what an accepted data connection says back of full mailboxes, and what a link hears of them.

package transport

import (
	"fmt"

	"github.com/kith-io/kith/internal/core/flow"
	"github.com/kith-io/kith/internal/runtime/loop"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

// waitSince is the wire version since which envelopes may carry wire.FlagWait.
const waitSince = 4

// backTalk is what an accepted data connection has to say back on it, under its lock.
type backTalk struct {
	meter    flow.Meter
	told     uint64 // credit, the last that was written
	telling  bool   // it is being sent
	said     bool   // it was written since all was acknowledged
	pressing flow.FullSet
	speaking bool // a task that says what is full is on its way
}

// Waiting is an accepted data connection to its sender that waits for room. It is an entity.Sender. Its methods are
// safe for concurrent use and never block.
type Waiting InConn

// Waiting returns c as the way to tell its sender of full mailboxes.
func (c *InConn) Waiting() *Waiting { return (*Waiting)(c) }

// Full tells the sender, before any credit that is given back from now on, that the mailbox of an entity is full, limit
// bytes. It returns how many bytes may be on the way at most; zero when the sender knows it, or cannot hear of it.
func (w *Waiting) Full(t route.TypeID, n route.ShardID, hash uint64, limit int) (allowance int) {
	if w.full(flow.FullEntity(t, n, hash), limit) {
		return w.Allowance()
	}
	return 0
}

// Allowance is how many bytes the sender may still send before it hears what is said now: what its window lets out,
// what its link has gathered, if that has the bounds of this node's, and a frame over each.
func (w *Waiting) Allowance() int { return w.window + w.t.cfg.LinkBuffer + 2*w.t.cfg.MaxFrame }

// Room tells the sender that an entity has room again.
func (w *Waiting) Room(t route.TypeID, n route.ShardID, hash uint64) {
	w.room(flow.FullEntity(t, n, hash))
}

// Gone reports whether the connection is over.
func (w *Waiting) Gone() bool { return (*InConn)(w).isGone() }

// BudgetFull tells the sender that the budget of all mailboxes, limit bytes, is used up, and reports whether that is
// news to it: then BudgetRoom follows.
func (w *Waiting) BudgetFull(limit int) (news bool) { return w.full(flow.FullBudget, limit) }

// BudgetRoom tells the sender that the budget has room again.
func (w *Waiting) BudgetRoom() { w.room(flow.FullBudget) }

func (w *Waiting) full(f wire.Full, limit int) (news bool) {
	if w.version < waitSince {
		return false
	}
	w.mu.Lock()
	news = w.pressing.Full(f, limit)
	w.speakAndUnlock()
	return news
}

func (w *Waiting) room(f wire.Full) {
	w.mu.Lock()
	w.pressing.Room(f)
	w.speakAndUnlock()
}

func (w *Waiting) speakAndUnlock() {
	speak := w.pressing.Waiting() && !w.speaking
	w.speaking = w.speaking || speak
	w.mu.Unlock()
	if speak {
		w.loop.Post((*back)(w))
	}
}

// presses reports whether something is full that the sender knows of.
func (c *InConn) presses() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pressing.Any()
}

// Waits reports whether envelopes on this link may carry wire.FlagWait: the peer understands it or, before the first
// hello, may do so; if it does not, the flag is taken off before they go. The lock is held.
func (l *Link) Waits() bool { return l.version == 0 || l.version >= waitSince }

// Full returns what leaves no room at the peer for an entity, and the value of that bound; false when nothing is known
// to. The lock is held.
func (l *Link) Full(entity wire.Full) (f wire.Full, limit int, full bool) {
	return l.pressed.Find(entity)
}

// Pressed reports whether an entity of a shard may be full at the peer: then Full says it. The lock is held.
func (l *Link) Pressed(n route.ShardID) bool { return l.pressed.May(n) }

// heard takes what the peer says of its mailboxes. The link's loop.
func (l *Link) heard(kind wire.Kind, body []byte) error {
	if l.version < waitSince {
		return fmt.Errorf("%w: %s on a connection of wire version %d", ErrProtocol, kind, l.version)
	}
	l.mu.Lock()
	f, room, err := l.pressed.Take(kind, body)
	l.mu.Unlock()
	if room {
		l.t.up.MailboxRoom(l, f)
	}
	return err
}

// relieved tells that nothing of a link counts as full any more, on its loop.
type relieved struct{ l *Link }

// Run tells it.
func (r relieved) Run(*loop.Loop) { r.l.t.up.MailboxRoom(r.l, wire.Full{}) }

// forgetFull forgets what is full, with the connection that said so. The lock is held.
func (l *Link) forgetFull() {
	if l.pressed.Clear() {
		l.loop.Post(relieved{l})
	}
}
