// Pressure: messages with senders that wait for room at the entity, both ends of it; it drives packages plane, flow and
// entity.

package world

import (
	"errors"
	"time"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/core/flow"
	"github.com/kith-io/kith/internal/core/plane"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

// backTalk is one connection of a reader, to its sender that waits for room. It is an entity.Sender.
type backTalk struct {
	in       *inbound
	conn     *conn
	gen      uint32
	pressing flow.FullSet
}

// backTo returns the connection of that generation, which may be gone.
func (in *inbound) backTo(gen uint32) *backTalk {
	if gen != in.gen {
		return &backTalk{in: in, conn: in.conn, gen: gen}
	}
	if in.back == nil || in.back.gen != gen {
		in.back = &backTalk{in: in, conn: in.conn, gen: gen}
	}
	return in.back
}

// Full implements entity.Sender.
func (b *backTalk) Full(t route.TypeID, n route.ShardID, hash uint64, limit int) (allowance int) {
	defer b.say()
	if b.pressing.Full(flow.FullEntity(t, n, hash), limit) {
		b.conn.w.Plane.Forced++
		return b.conn.w.allowance()
	}
	return 0
}

// Room implements entity.Sender.
func (b *backTalk) Room(t route.TypeID, n route.ShardID, hash uint64) {
	b.pressing.Room(flow.FullEntity(t, n, hash))
	b.say()
}

// Gone implements entity.Sender.
func (b *backTalk) Gone() bool {
	return b.conn.gen != b.gen || b.conn.back == nil || b.conn.back.closed
}

// say writes what the sender does not know: before any credit that comes later.
func (b *backTalk) say() {
	frames := b.pressing.Append(nil)
	for len(frames) > 0 && !b.Gone() {
		n := wire.SizeOf(frames)
		b.conn.back.send(wire.KindOf(frames), append([]byte(nil), wire.Body(frames[:n])...))
		frames = frames[n:]
	}
}

// here is a process as the sender of messages to its own entities that waits for room. It is an entity.Sender.
type here Process

// Full implements entity.Sender: a sender here learns by the reason.
func (*here) Full(route.TypeID, route.ShardID, uint64, int) (allowance int) { return 0 }

// Room implements entity.Sender.
func (p *here) Room(route.TypeID, route.ShardID, uint64) { (*Process)(p).wakeWaiting() }

// Gone implements entity.Sender.
func (*here) Gone() bool { return false }

// allowance is how many bytes a sender may still send before it hears what is said to it.
func (w *World) allowance() int {
	d := w.Config.Data
	buffer := d.LinkBuffer
	if buffer == 0 {
		buffer = flow.DefaultLinkBuffer
	}
	return w.window() + buffer + 2*flow.OrdinaryFrame // larger ones do not wait here
}

// strains judges a message with a waiting sender by the budget of all mailboxes.
func (p *Process) strains(e *wire.Envelope, b *backTalk) route.Reason {
	limit := p.mailbox.Limit
	size := len(e.Payload) + entity.RecordOverhead
	strain := plane.BudgetStrain(p.mailbox.Used(), size, limit, p.World.allowance())
	if strain == plane.Easy {
		return route.OK
	}
	if b.pressing.Full(flow.FullBudget, limit) {
		p.strained = append(p.strained, b)
		b.say()
	}
	if strain == plane.Refuses && e.Flags&wire.FlagParked == 0 {
		return route.BudgetFull
	}
	return route.OK
}

// relieve notifies waiters for the budget that it has room.
func (p *Process) relieve() {
	if len(p.strained) == 0 || !plane.BudgetHasRoom(p.mailbox.Used(), p.mailbox.Limit) {
		return
	}
	list := p.strained
	p.strained = nil
	for _, b := range list {
		b.pressing.Room(flow.FullBudget)
		b.say()
	}
}

// heedsFull takes what a peer says of its mailboxes, back on a data connection.
func (p *Process) heedsFull(c *conn, k packet) {
	_, room, err := c.link.pressed.Take(k.kind, k.body)
	if err != nil {
		p.World.Watcher.Violate(p, "frame", "%s of %s: %v", k.kind, p.World.Name(c.to), err)
	}
	if room {
		p.wakeWaiting()
	}
}

// forgetFull forgets what is full, with the connection that said so.
func (l *link) forgetFull() {
	if l.pressed.Clear() {
		l.conn.from.wakeWaiting()
	}
}

// FullThereError says that an entity, or its node, has no room.
type FullThereError struct{ Reason route.Reason }

// Error names the reason.
func (e *FullThereError) Error() string { return "at its node: " + e.Reason.Err().Error() }

// Unwrap returns the reason's error.
func (e *FullThereError) Unwrap() error { return e.Reason.Err() }

// fullThere returns why there is no room for an entity at its node, as far as that has said so.
func (l *link) fullThere(r *Region, n route.ShardID, id string) error {
	if !l.pressed.May(n) {
		return nil
	}
	f, _, full := l.pressed.Find(flow.FullEntity(r.ID, n, entity.HashID([]byte(id))))
	if !full {
		return nil
	}
	r.Process.World.Plane.Waited++
	return &FullThereError{route.Reason(f.Reason)}
}

// SendWait is Send of a tell that waits for room at its entity: one attempt of it.
func (r *Region) SendWait(id string, payload []byte) error {
	flags := wire.FlagWait
	if r.Process.World.Config.Data.OldCredit { // a node of wire version 1
		flags = 0
	}
	_, err := r.send(nil, id, payload, 0, flags)
	return err
}

// waitPoll is how often an attempt is made for room that nobody reports.
const waitPoll = 200 * time.Millisecond

// tries are when all waiters try again: soon, and in a while though nobody reports room.
type tries struct{ soon, polls bool }

// waiter is one caller of TellWait.
type waiter struct {
	r   *Region
	id  string
	try func() error
	why error // of the last attempt
}

// TellWait makes attempts until one comes to something other than a full bound. Those that met an entity that is full
// at another node are repeated only when that has said that there is room, or its connection is over.
func (r *Region) TellWait(id string, try func() error) {
	p, w := r.Process, &waiter{r: r, id: id, try: try}
	if p.attempt(w) {
		p.waiting = append(p.waiting, w)
	}
}

// Waiting returns how many callers wait for room, and why the first does.
func (p *Process) Waiting() (n int, why error) {
	if len(p.waiting) == 0 {
		return 0, nil
	}
	return len(p.waiting), p.waiting[0].why
}

// attempt makes one attempt, and reports whether it has to be repeated.
func (p *Process) attempt(w *waiter) (again bool) {
	w.why = w.try()
	there := (*FullThereError)(nil)
	switch {
	case w.why == nil:
		return false
	case errors.As(w.why, &there):
		return true
	case errors.Is(w.why, route.ErrLinkFull) || errors.Is(w.why, route.ErrParkFull) ||
		errors.Is(w.why, route.ErrMailboxFull):
		if p.tries.polls {
			return true
		}
		// One timer does for all waiters. With one for each attempt every other wake of them would begin a series of attempts
		// of its own, which lasts as long as they wait.
		p.tries.polls = true
		p.Later(waitPoll, func() {
			p.tries.polls = false
			p.wakeWaiting()
		})
		return true
	}
	return false
}

// wakeWaiting lets all waiters try again, in their order, after the present step.
func (p *Process) wakeWaiting() {
	if p.tries.soon || len(p.waiting) == 0 {
		return
	}
	p.tries.soon = true
	p.Later(0, func() {
		p.tries.soon = false
		list := p.waiting
		p.waiting = nil
		for _, w := range list {
			if p.attempt(w) {
				p.waiting = append(p.waiting, w)
			}
		}
	})
}

// CheckPressure holds that both ends of every connection on which nothing is under way agree on what is full, and that
// nobody waits for an entity of a shard for which nothing waits.
func (w *World) CheckPressure() {
	for _, p := range w.Running() {
		for _, c := range p.links.list {
			back, calm := c.backTalk()
			if calm && !back.Agrees(&c.link.pressed) {
				w.Watcher.Violate(p, "pressure", "%s and its sender do not agree on what is full there", w.Name(c.to))
			}
		}
		for _, q := range p.waiting {
			n := q.r.shardOf(q.id)
			s := q.r.Slot(n)
			if s.State() != flow.Remote || p.tries.soon {
				continue
			}
			l := p.linkOf(s.Home(), uint32(n))
			f, _, full := l.pressed.Find(flow.FullEntity(q.r.ID, n, entity.HashID([]byte(q.id))))
			if _, calm := l.conn.backTalk(); !calm || !full || f.Reason != uint16(route.MailboxFull) {
				continue
			}
			if t := l.conn.peer.Region(q.r.ID); t != nil && t.queued(n) == 0 {
				w.Watcher.Violate(p, "liveness", "somebody waits for room at %s/%s, where nothing waits", w.ShardName(q.r.ID, n),
					q.id)
			}
		}
	}
}

// backTalk returns what a connection's reader has to say, unless something is under way on it.
func (c *conn) backTalk() (said *flow.FullSet, calm bool) {
	if c.state != connUp || c.peer.Paused() || c.from.Paused() || len(c.back.flight) > c.back.head {
		return nil, false
	}
	said = &flow.FullSet{}
	for _, in := range c.peer.inbound {
		if in.conn == c && in.back != nil && in.back.gen == c.gen {
			said = &in.back.pressing
		}
	}
	return said, true
}

// overPressure: nothing that waits for room is refused for a full mailbox while senders heed the signal.
func (p *Process) overPressure(e *wire.Envelope, why route.Reason) {
	if e.Flags&wire.FlagWait != 0 && (why == route.MailboxFull || why == route.BudgetFull) {
		p.World.Watcher.Violate(p, "pressure", "a message to %s/%s whose sender waits was refused: %v",
			p.World.ShardName(route.TypeID(e.Type), route.ShardID(e.Shard)), e.ID, why)
	}
}

// strainBound: what waits in all mailboxes stays within its bound and what senders may have sent before they heard.
func (p *Process) strainBound(parked bool) {
	if parked {
		return // is never refused
	}
	most := p.mailbox.Limit + plane.MostStrained*p.World.allowance() + p.World.Config.Data.ParkTotal*len(p.World.Hosts)
	if used := p.mailbox.Used(); used > most {
		p.World.Watcher.Violate(p, "bounds", "%d bytes wait in mailboxes, at most %d may", used, most)
	}
}
