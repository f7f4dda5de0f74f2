// Uplink: the dialling side of one connection: when to dial, the hello, back-off, refusals, and the way into the loop.

package transport

import (
	"context"
	"errors"
	"io"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/kith-io/kith/internal/base/latch"
	"github.com/kith-io/kith/internal/core/hello"
	"github.com/kith-io/kith/internal/runtime/loop"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// refusedHold is how long an uplink rests after a refusal for good, unless SetCluster changes what it would say.
const refusedHold = 5 * time.Second

// awayHold is how long a peer that was given up is sent nothing. What was taken for its end may have been none.
const awayHold = 5 * time.Second

// unreachedEvery is how often an uplink that does not get through is logged after the first time.
const unreachedEvery = 30 * time.Second

// laneQueue is what differs between the two kinds of uplink: their queues. Every method is called with the uplink's
// lock held unless it says otherwise.
type laneQueue interface {
	loop.Task                    // writes out what is queued; on the loop, without the lock
	restart(generation uint32)   // a connection of that generation is about to carry the queue
	broke() (lost uint64)        // the connection is gone; returns what was in flight
	waiting() bool               // something is queued
	drop() (unsent []byte)       // what is queued will not be sent; returns the data frames among it, copied
	keepsQueue() bool            // a failed dial keeps the queue
	release()                    // the uplink is dead and written by nobody: its memory goes back
	unanswered() bool            // something is on its way, as far as is known
	frames(b []byte) (err error) // bytes came back on the connection; on the loop, without the lock
}

// uplink is the dialling side of one connection. mu also orders the queue of the lane.
type uplink struct {
	mu     latch.Latch
	t      *Transport
	to     peer.ID
	lane   wire.Lane
	number uint16
	loop   *loop.Loop
	q      laneQueue

	conn       *outConn // nil unless up; used on the loop only
	real       peer.ID  // the node that answered the last hello
	version    uint16   // of the protocol, chosen by the last hello; zero before the first
	scheduled  bool     // a flush is queued, or will come with a connection or with credit
	dialing    bool
	dead       error         // forgotten or closed, for ever
	away       time.Duration // it was given up: until then, by Config.Now, nothing is queued; zero: it was not
	refusal    *hello.RefusedError
	refusedAt  time.Time
	reported   hello.Refusal
	generation uint32
	failures   int
	notBefore  time.Time // of the next dial
	unreached  int       // attempts that failed since a connection stood
	warned     bool      // that has been logged
	leaving    bool      // that is expected
	verify     bool      // the other end broke the connection: dial once to see which node answers, mail or not
	inquires   bool      // the same, because two come in the peer's name: not reported
	renewing   bool      // nothing is sent until the connection has been made anew
	renewSince time.Time
	putOff     time.Time // a renewal, until then
	renewal    *renewal  // makes the connection that follows; nil: none, or it is to break first
	hushed     bool      // it was closed for that, and the runtime does not know
	warnedAt   time.Time // when last; zero: log the next failure at once
	upSince    time.Time
	connects   uint64        // times that a connection stood
	writes     atomic.Uint64 // system calls of the loop; what a blocked writer does is not counted
	fullSocket stopwatch
	silence    silence       // of the connection that stands
	silentFor  stopwatch     // of all that stood
	yields     bool          // the connection that stands is silent, and another one is saying hello in its place
	silentSaid time.Time     // when a silence was last logged as a warning
	unheard    bool          // mail was written since all was acknowledged
	hurry      chan struct{} // capacity 1: the back-off may be over
	ctx        context.Context
	cancel     context.CancelFunc
}

func (u *uplink) init(t *Transport, to peer.ID, lane wire.Lane, number uint16, loop *loop.Loop, q laneQueue) {
	u.t, u.to, u.lane, u.number, u.loop, u.q = t, to, lane, number, loop, q
	u.real, u.hurry = to, make(chan struct{}, 1)
	u.ctx, u.cancel = context.WithCancel(t.ctx)
}

// blocked returns why nothing can be queued now: dead for ever, or given up or refused a moment ago. The lock is held.
func (u *uplink) blocked() error {
	if u.dead != nil {
		return u.dead
	}
	if u.t.cfg.Now() < u.away {
		return ErrGone
	}
	u.away = 0
	if u.refusal != nil {
		if time.Since(u.refusedAt) < refusedHold {
			return u.refusal
		}
		u.refusal = nil
	}
	return nil
}

// pardon forgets a refusal: what the hello says has changed.
func (u *uplink) pardon() {
	u.mu.Lock()
	u.refusal, u.reported, u.notBefore = nil, hello.RefusedNone, time.Time{}
	u.mu.Unlock()
}

// hush notes that the peer is on its way out.
func (u *uplink) hush() {
	u.mu.Lock()
	u.leaving = true
	u.mu.Unlock()
}

// ensure starts dialling unless the connection stands, is being made, or is not to be made. The lock is held.
func (u *uplink) ensure() {
	if u.conn != nil || u.dialing || u.dead != nil || u.refusal != nil {
		return
	}
	u.dialing = u.t.spawn(u.dialLoop)
}

// dialLoop dials until the connection stands, is refused for good, is no longer wanted, or the uplink is dead.
func (u *uplink) dialLoop() {
	for {
		generation, ok := u.attempt()
		if !ok {
			return
		}
		begin := time.Now()
		oc := &outConn{u: u, generation: generation, over: make(chan struct{})}
		err := u.connect(oc)
		if err == nil {
			return // the loop has it
		}
		if err == errHeard {
			u.relent()
		} else if !u.failed(begin, err) {
			return
		}
	}
}

// attempt waits out the back-off and begins an attempt under a new generation.
func (u *uplink) attempt() (generation uint32, ok bool) {
	for u.rest() {
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.dead != nil || u.ctx.Err() != nil || !u.wanted() {
		u.gaveUp()
		return 0, false
	}
	u.generation++
	return u.generation, true
}

// rest waits until the back-off is over, or may be: then it returns true.
func (u *uplink) rest() bool {
	u.mu.Lock()
	wait := time.Until(u.notBefore)
	u.mu.Unlock()
	if wait <= 0 {
		return false
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-u.hurry:
		return true
	case <-u.ctx.Done():
	}
	return false
}

// gaveUp notes that nobody dials any more. The lock is held.
func (u *uplink) gaveUp() {
	u.dialing = false
	if u.conn == nil {
		u.scheduled = false
	}
}

// failed notes an attempt that failed, and reports whether to try again. The back-off counts from when it began: a peer
// that does not answer at all has cost it already.
func (u *uplink) failed(begin time.Time, err error) (again bool) {
	var refused *hello.RefusedError
	var unsent []byte
	warn, goesAstray := false, astray(u.t, u.to, err)
	u.mu.Lock()
	verify := u.verify
	u.failures++
	u.unreached++
	u.yields = false
	u.notBefore = begin.Add(u.t.cfg.backoff(u.failures))
	if errors.As(err, &refused) && refused.Reason.ForGood() && !goesAstray {
		u.refusal, u.refusedAt = refused, time.Now()
		unsent = u.q.drop()
		if u.conn != nil {
			u.loop.Post(&expulsion{u.conn, err})
		}
	} else {
		refused = nil
		if u.conn == nil && !u.q.keepsQueue() {
			u.q.drop()
		}
		u.verify = u.verify && u.failures < verifyTries
		again = u.dead == nil && (u.replaces() || u.conn == nil && u.q.waiting() || u.verify && dying(err))
		warn = u.worthLogging()
	}
	u.inquires = false
	unreached, down := u.unreached, u.hushed
	u.hushed = false
	lost := verify && u.dead == nil && errors.Is(err, syscall.ECONNREFUSED)
	u.verify = u.verify && again && dying(err)
	tell := refused != nil && u.reported != refused.Reason
	if tell {
		u.reported = refused.Reason
	}
	if !again {
		u.gaveUp()
	}
	u.mu.Unlock()
	u.unreach(err)
	switch {
	case tell:
		u.t.cfg.Logger.Debug("connection refused for good", "peer", u.to, "lane", u.lane, "error", err)
		u.t.up.PeerRefused(refused)
	case warn:
		u.t.cfg.Logger.Warn("peer cannot be reached, trying on", "peer", u.named(), "lane", u.lane, "error", err,
			"failures", unreached)
	case refused == nil:
		u.t.cfg.Logger.Debug("dial failed", "peer", u.to, "lane", u.lane, "error", err)
	}
	if down {
		u.t.up.LinkDown(u.to, u.lane, int(u.number), 0, err)
	}
	if lost {
		u.t.up.LinkLost(u.to)
	}
	if len(unsent) > 0 {
		u.t.up.Undelivered(u.to, unsent, err)
	}
	return again
}

// unreach counts an attempt that failed, and tells of it at a contact point.
func (u *uplink) unreach(err error) {
	u.t.count.dialsFailed.Add(1)
	if u.to.Inc == 0 && u.lane == wire.LaneControl {
		u.t.up.Unreached(u.to.Addr, err)
	}
}

// verifyTries bounds how often one loss is verified.
const verifyTries = 5

// dying reports whether err is what one meets at the door of a process that has ended and that the kernel has not
// cleaned up yet: its listener still takes connections, and resets them. The next attempt tells more.
func dying(err error) bool {
	return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, io.EOF) || errors.Is(err, syscall.EPIPE)
}

// worthLogging reports whether a failed attempt is to be logged now: the first of an outage, then one every 30 s. An
// uplink that flaps keeps that pace: only a connection that lasted makes the next outage a first one again. What our
// own end or the peer's removal cut short is no failure of the peer, and that a leaver is away is no news. The lock is
// held.
func (u *uplink) worthLogging() bool {
	if u.dead != nil || u.ctx.Err() != nil || u.leaving {
		return false
	}
	if !u.warnedAt.IsZero() && time.Since(u.warnedAt) < unreachedEvery {
		return false
	}
	u.warned, u.warnedAt = true, time.Now()
	return true
}

// named is how logs name the peer: a contact point by its address alone.
func (u *uplink) named() any {
	if u.to.Inc == 0 {
		return u.to.Addr
	}
	return u.to
}

// kill ends the uplink for ever: what is queued is dropped, which is reported to the runtime, and the connection is
// closed. LinkDown is called when there was a connection. With ErrGone it ends for awayHold: a connection that stands
// goes on, and what is queued behind it is dropped when it breaks. Any goroutine; no lock of the runtime's that its
// upcalls take.
func (u *uplink) kill(why error) {
	gone := errors.Is(why, ErrGone)
	var unsent []byte
	u.mu.Lock()
	if u.dead != nil {
		u.mu.Unlock()
		return
	}
	if gone {
		u.away = u.t.cfg.Now() + awayHold
	} else {
		u.dead = why
	}
	if !gone || u.conn == nil {
		unsent = u.q.drop()
	}
	u.mu.Unlock()
	if !gone {
		u.cancel()
		u.loop.Post(hangUp{u})
	}
	u.undelivered(unsent, why)
}

// leftover drops and returns what waits behind the connection that broke, if the peer was given up and no connection
// follows. The lock is held.
func (u *uplink) leftover(next *renewal) []byte {
	if next != nil || u.t.cfg.Now() >= u.away { // also of a peer that was given up long ago, and lived
		return nil
	}
	return u.q.drop()
}

// undelivered reports what was dropped to the runtime. The upcall may take a while: nobody waits for it but Close.
func (u *uplink) undelivered(unsent []byte, why error) {
	if len(unsent) == 0 {
		return
	}
	tell := func() { u.t.up.Undelivered(u.to, unsent, why) }
	if !u.t.spawn(tell) {
		tell()
	}
}

// hangUp ends a dead uplink, on the loop: it closes the connection and gives the memory back.
type hangUp struct{ u *uplink }

// Run ends it.
func (h hangUp) Run(*loop.Loop) {
	h.u.mu.Lock()
	c := h.u.conn
	h.u.mu.Unlock()
	if c != nil {
		c.hangUp()
	}
	h.u.mu.Lock()
	h.u.q.release()
	h.u.mu.Unlock()
}
