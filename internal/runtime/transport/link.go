// Link: the sending side of a peer's data connection: the hot path of every remote message, and the credit for it.

package transport

import (
	"errors"
	"fmt"
	"time"

	"github.com/kith-io/kith/internal/core/flow"
	"github.com/kith-io/kith/internal/core/hello"
	"github.com/kith-io/kith/internal/runtime/loop"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/ringbuf"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

// Link sends data frames to one peer over one of its data connections; number says which. It is made once per peer
// identity and lives until the peer is forgotten: over
// broken connections frames that were not sent stay queued, in order, and go first on the next one. A sender does
//
//	link.Lock()
//	b, err := link.Reserve(n)   // then fill b with exactly one frame
//	wake := link.Commit()
//	link.Unlock()
//	if wake { link.Wake(on) }
//
// and may append several frames under one lock. A Link is also the Task that writes it out.
type Link struct {
	uplink
	queue   flow.Link
	pressed flow.FullByPeer // at the peer
	full    *FullError
	poor    *BudgetError
	limit   int      // largest frame
	back    splitter // of the credit that comes back on the connection; the loop's own
	density density  // of its runs; the loop's own
	lingers bool     // waits for more frames
	urgent  bool     // something waits that does not
	idle    bool     // no flush since the last sweep
	starved bool     // poor was returned since the last sweep

	fullFor, stalledFor stopwatch
	neverSent           uint64 // bytes
}

func newLink(t *Transport, to peer.ID, number uint16, loop *loop.Loop) *Link {
	l := &Link{
		queue: *flow.NewLinkWithin(t.cfg.bounds(t.buffers)),
		full:  &FullError{LinkFullError: route.LinkFullError{Peer: to, Limit: t.cfg.LinkBuffer}},
		poor:  &BudgetError{LinkBudgetError: route.LinkBudgetError{Peer: to, Limit: t.cfg.LinkBudget}},
		limit: t.cfg.MaxFrame,
		back:  splitter{lane: wire.LaneControl, limit: hello.MaxAnswer},
	}
	l.full.link, l.poor.link = l, l
	l.queue.Ready = l.ready
	l.init(t, to, wire.LaneData, number, loop, l)
	return l
}

// Peer returns the node that the link leads to.
func (l *Link) Peer() peer.ID { return l.to }

// Number is the link's place in Transport.Links, and the number of its connection.
func (l *Link) Number() int { return int(l.number) }

// Loop returns the data loop that owns the link and the peer's incoming data connection of the same number.
func (l *Link) Loop() *loop.Loop { return l.loop }

// Lock takes the link's lock, which orders its frames. It is held for some tens of nanoseconds.
func (l *Link) Lock() { l.mu.Lock() }

// Unlock gives it up.
func (l *Link) Unlock() { l.mu.Unlock() }

// Version returns the wire version that the last hello chose, zero before the first. The lock is held.
func (l *Link) Version() uint16 { return l.version }

// Reserve appends a frame of n bytes and returns its room, to be filled with one whole data frame before Unlock. The
// lock is held. Errors, none of which changes anything: *FullError and *BudgetError (both match route.ErrLinkFull),
// ErrFrameSize, ErrForgotten, ErrClosed; for a few seconds *RefusedError after a refusal for good and ErrGone after
// GiveUp.
func (l *Link) Reserve(n int) ([]byte, error) {
	if n > l.limit || l.dead != nil || l.refusal != nil || l.away != 0 {
		if err := l.reserveError(n); err != nil {
			return nil, err
		}
	}
	b, err := l.queue.Reserve(n)
	if err != nil {
		return nil, l.noRoom(err)
	}
	return b, nil
}

// noRoom makes an error of the queue one that names the peer and the bound.
func (l *Link) noRoom(err error) error {
	if errors.Is(err, ringbuf.ErrMemory) {
		l.starved = true
		return l.poor
	}
	l.fullFor.start(l.t.cfg.Now)
	return l.full
}

func (l *Link) reserveError(n int) error {
	if n > l.limit {
		return ErrFrameSize
	}
	return l.blocked()
}

// Mark is how the marker of a move gets to the peer: mark gets the queue of the link, under its lock. It waits
// for nothing, so Wake is called in any case.
func (l *Link) Mark(mark func(q *flow.Link) error) error {
	if err := l.blocked(); err != nil {
		return err
	}
	if err := mark(&l.queue); err != nil {
		return l.noRoom(err)
	}
	l.Hurry()
	_ = l.Commit()
	return nil
}

// Commit ends an append and says whether the caller must call Wake after Unlock. The lock is held.
func (l *Link) Commit() (wake bool) {
	if l.scheduled {
		return false
	}
	l.scheduled = true
	return true
}

// Put writes an envelope into the room that was reserved last. The lock is held.
func (l *Link) Put(room []byte, e *wire.Envelope, id string) { l.queue.Put(room, e, id) }

// Count says that the room that was reserved last holds this frame, which Put did not write, so that tells are counted
// that are lost with their connection. The lock is held.
func (l *Link) Count(frame []byte) { l.queue.Count(frame) }

// Hurry says, before Commit, that somebody waits for the frame, as for an ask or an answer: it does not wait for
// others. The lock is held.
func (l *Link) Hurry() {
	l.urgent = true
	if l.lingers {
		l.lingers, l.scheduled = false, false // so that Commit wakes the loop
	}
}

// Timed says, before Commit, that the frame has a limit or headers. The lock is held.
func (l *Link) Timed() { l.queue.Timed() }

// ready makes limits of frames that are about to be sent say what is left. The lock is held.
func (l *Link) ready(frames []byte) []byte {
	return wire.Depart(frames, uint32(l.t.cfg.Now()/time.Millisecond), l.version)
}

// Wake makes the loop write the link out. on is the loop that the caller runs on, nil if none: on the link's own loop
// the link leaves at the end of the read pass. No lock is held.
func (l *Link) Wake(on *loop.Loop) {
	if on == l.loop {
		on.AtEnd(l)
		return
	}
	l.loop.Post(l)
}

// Backlog returns the bytes that are queued and not sent, and how many they are with those that were sent and that the
// peer has not taken. The lock is held.
func (l *Link) Backlog() (queued, all int) {
	queued = l.queue.Pending()
	return queued, queued + int(l.queue.Outstanding())
}

// Err returns why the link is of no use, which every Reserve returns too: for ever ErrForgotten, ErrClosed, ErrSelf,
// ErrNoIncarnation, ErrBusy; for a few seconds after GiveUp ErrGone; nil while it is of use. No lock is held.
func (l *Link) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dead == nil && l.away != 0 {
		return l.blocked()
	}
	return l.dead
}

// Up reports whether the connection stands. The lock is held.
func (l *Link) Up() bool { return l.conn != nil }

// Writes says that the link may be run in the middle of a read pass.
func (l *Link) Writes() {}

// turnBytes is how many bytes one link writes before others have their turn.
const turnBytes = 1 << 20

// Run writes out what has gathered, on the loop: as far as credit goes, at most turnBytes before other links have their
// turn. Without a connection it has one made.
func (l *Link) Run(on *loop.Loop) {
	if l.waits(on, 0) {
		return
	}
	l.flush(on)
	l.density.ended = l.t.cfg.Now()
}

// flush is Run of a link that does not wait for more frames.
func (l *Link) flush(on *loop.Loop) {
	budget := turnBytes
	for {
		l.mu.Lock()
		c := l.conn
		if c != nil && c.writer != nil {
			l.mu.Unlock()
			return // the writer has it run again
		}
		if c != nil && l.renewing {
			ends := l.queue.Outstanding() == 0 && l.mayEnd()
			l.mu.Unlock()
			if ends {
				c.replace(errRenewed)
			}
			return // credit has it run again
		}
		b := l.queue.Take()
		if b == nil {
			room := l.endFlush()
			l.mu.Unlock()
			if room {
				l.t.up.LinkRoom(l)
			}
			return
		}
		l.stalledFor.stop(l.t.cfg.Now)
		l.mu.Unlock()
		if !c.write(on, b) {
			return
		}
		if budget -= len(b); budget <= 0 {
			on.Post(l)
			return
		}
		if l.waits(on, len(b)) {
			return
		}
	}
}

// endFlush ends a flush that has nothing more to take: the link is idle, waits for credit (its arrival flushes it),
// or needs a connection. It reports whether a link that was full has room again. The lock is held.
func (l *Link) endFlush() (room bool) {
	l.idle = false
	l.scheduled = l.queue.Pending() > 0
	if !l.scheduled && l.t.buffers.tight.Load() {
		l.queue.Trim()
	}
	if l.scheduled && l.conn == nil {
		l.ensure()
		l.scheduled = l.dialing
	} else if l.scheduled {
		l.stalledFor.start(l.t.cfg.Now)
	}
	if !l.queue.Roomy() {
		return false
	}
	l.fullFor.stop(l.t.cfg.Now)
	return true
}

// frames takes what came back on the connection: credit for it, and what is full at the peer. The loop.
func (l *Link) frames(b []byte) error {
	if l.version < creditBack {
		return noFrames(l.lane, len(b))
	}
	return l.back.each(b, func(frame []byte) error {
		switch kind := wire.ParseHeader(frame).Kind; kind {
		case wire.KindFull, wire.KindRoom:
			return l.heard(kind, wire.Body(frame))
		case wire.KindCredit:
		default:
			return fmt.Errorf("%w: %s came back on a data connection", ErrProtocol, kind)
		}
		credit, err := wire.ParseCredit(wire.Body(frame))
		if err != nil {
			return err
		}
		if credit.Lane != l.number {
			return fmt.Errorf("%w: credit for data connection %d came back on %d", ErrProtocol, credit.Lane, l.number)
		}
		return l.granted(credit)
	})
}

// granted takes credit that the peer returned. Control loop, or the link's own.
func (l *Link) granted(c wire.Credit) error {
	l.mu.Lock()
	wake, err := l.queue.Granted(c.Generation, c.Consumed)
	wake = wake || l.renewing && l.queue.Outstanding() == 0
	l.mu.Unlock()
	if wake {
		l.loop.Post(l)
	}
	return err
}

// sweep gives the buffers back when nothing was sent since the last sweep, and those that are larger than needed.
// Senders that were refused because the budget was used up hear that they may try again.
func (l *Link) sweep() {
	l.mu.Lock()
	switch {
	case l.scheduled: // a flush is under way, or will come
	case l.idle:
		l.queue.Trim()
	default:
		l.queue.Fit()
	}
	l.idle = true
	room := l.starved
	l.starved = false
	l.mu.Unlock()
	if room {
		l.loop.Post(roomAgain{l})
	}
}

// roomAgain tells that there may be room again, on the loop.
type roomAgain struct{ l *Link }

// Run tells it.
func (r roomAgain) Run(*loop.Loop) { r.l.t.up.LinkRoom(r.l) }

// release gives the buffers of a dead link back, on the loop, when nothing is written any more.
func (l *Link) release() { l.queue.Trim() }

func (l *Link) restart(generation uint32) {
	l.queue.Reconnected(generation)
	l.forgetFull()
	if !l.Waits() {
		l.queue.Unflag(wire.FlagWait)
	}
	l.back.carry = nil
}

func (l *Link) waiting() bool    { return l.queue.Pending() > 0 }
func (l *Link) keepsQueue() bool { return true }
func (l *Link) unanswered() bool { return l.queue.Outstanding() > 0 }

func (l *Link) broke() uint64 {
	l.stalledFor.stop(l.t.cfg.Now)
	l.forgetFull()
	return uint64(l.queue.Broken())
}

// drop returns a copy: the buffers are the link's own, and the runtime gets it without the lock.
func (l *Link) drop() (unsent []byte) {
	n := l.queue.Pending()
	if n == 0 {
		return nil
	}
	l.neverSent += uint64(n)
	l.t.count.dropped[l.dropReason()].Add(uint64(n))
	unsent = make([]byte, 0, n)
	l.queue.FailAll(func(frame []byte) { unsent = append(unsent, frame...) })
	return unsent
}
