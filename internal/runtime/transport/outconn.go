// outConn: one connection that this node dialled, as its loop sees it.

package transport

import (
	"errors"
	"fmt"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/panjf2000/gnet/v2"

	"github.com/kith-io/kith/internal/core/flow"
	"github.com/kith-io/kith/internal/core/hello"
	"github.com/kith-io/kith/internal/runtime/loop"
	"github.com/kith-io/kith/internal/runtime/trust"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// outConn is one dialled connection of an uplink.
type outConn struct {
	u          *uplink
	generation uint32
	real       peer.ID // the node that answered
	version    uint16  // of the protocol, as the answer chose it
	wasOpened  atomic.Bool
	halfClosed bool          // the end of this node has shut the writing half; under the uplink's lock
	over       chan struct{} // closed with the connection, if it came to stand

	// Owned by the loop.
	outlet
	fault error // why we closed it ourselves
}

func (oc *outConn) Opened(c gnet.Conn) gnet.Action {
	u := oc.u
	oc.of, oc.reserve, oc.calls, oc.c = oc, &u.t.reserve, &u.writes, c
	oc.wasOpened.Store(true)
	u.mu.Lock()
	u.dialing = false
	if u.dead != nil {
		u.mu.Unlock()
		oc.fault = u.dead
		return gnet.Close
	}
	u.conn, u.real, u.version, u.upSince = oc, oc.real, oc.version, time.Now()
	u.refusal, u.reported, u.verify, u.inquires = nil, hello.RefusedNone, false, false
	u.unheard, u.away = false, 0
	u.connects++
	healed, failures := u.warned, u.unreached
	u.warned, u.unreached = false, 0
	again := u.hushed
	u.hushed = false
	u.scheduled = true
	u.q.restart(oc.generation)
	u.mu.Unlock()
	u.t.count.out[u.lane].Add(1)
	u.t.cfg.Logger.Debug("connected", "peer", oc.real, "lane", u.lane, "generation", oc.generation)
	if healed {
		u.t.cfg.Logger.Info("peer reached at last", "peer", oc.real, "lane", u.lane, "failures", failures)
	}
	if u.to.Inc != 0 && !again {
		u.t.up.LinkUp(oc.real, u.lane, int(u.number))
	}
	if u.lane == wire.LaneControl {
		u.t.nudge(oc.real)
	}
	u.q.Run(u.loop)
	return gnet.None
}

func (oc *outConn) Traffic(c gnet.Conn) gnet.Action {
	b, _ := c.Next(-1)
	if len(b) == 0 {
		return gnet.None
	}
	var err error
	if oc.secure == nil {
		err = oc.Take(b)
	} else {
		err = oc.secure.Unseal(oc.u.loop.Plain(), b, oc) // what TLS answers leaves with the next batch
	}
	if err == trust.ErrEnded {
		return gnet.Close
	}
	if err != nil {
		oc.fault = err
		oc.u.t.fault("protocol", &oc.u.t.count.faultsProtocol, "peer", oc.real, "lane", oc.u.lane, "error", err)
		return gnet.Close
	}
	return gnet.None
}

// write sends a batch of the uplink's queue, as outlet.write says: goOn runs the queue again.
func (oc *outConn) write(on *loop.Loop, b []byte) bool {
	on.Wrote(len(b))
	return oc.outlet.write(on, b)
}

// goOn runs the queue again.
func (oc *outConn) goOn(on *loop.Loop) { oc.u.q.Run(on) }

// blocked starts or stops the clock of the uplink that says how long its socket was full.
func (oc *outConn) blocked(now bool) {
	change := (*stopwatch).stop
	if now {
		change = (*stopwatch).start
	}
	oc.u.mu.Lock()
	change(&oc.u.fullSocket, oc.u.t.cfg.Now)
	oc.u.mu.Unlock()
}

// Take takes what came back on the connection.
func (oc *outConn) Take(b []byte) error { return oc.u.q.frames(b) }

// verifies reports whether the connection, which broke, is to be dialled to see who answers: the other end has closed a
// control connection. The uplink's lock is held.
func (oc *outConn) verifies() bool {
	u := oc.u
	return u.lane == wire.LaneControl && u.to.Inc != 0 && u.dead == nil && oc.fault == nil && !u.leaving &&
		!u.t.isClosing()
}

// Closed notes that the connection is over, and dials anew if something waits for one.
func (oc *outConn) Closed(err error) {
	u := oc.u
	oc.endPollerWait()
	u.mu.Lock()
	if u.conn == nil { // opened refused it
		u.mu.Unlock()
		return
	}
	u.conn = nil
	defer close(oc.over)
	flown := u.flown()
	flown.Read = oc.halfClosed && u.dead == nil && !errors.Is(err, syscall.ECONNRESET)
	lost := u.q.broke()
	if u.yields && oc.fault == nil {
		oc.fault = errSilent
	}
	silent := u.silence.on || oc.fault == errSilent
	hole := u.silence.inHole(oc.fault == errSilent)
	u.yields = false
	u.heard()
	next := u.followed()
	renewed := oc.fault == errRenewed && lost == 0
	if renewed {
		u.renewed()
	} else {
		u.renewing = false
		if u.failures = failuresAfter(u.failures, time.Since(u.upSince)); u.failures == 0 {
			u.notBefore, u.warnedAt = time.Time{}, time.Time{}
		} else {
			u.notBefore = time.Now().Add(u.t.cfg.backoff(u.failures))
		}
	}
	why := oc.why(err)
	u.scheduled = false
	u.verify = oc.verifies()
	unsent := u.leftover(next)
	if next != nil {
		u.scheduled = u.q.waiting()
		u.proceed(next)
	} else if u.dead == nil && (u.q.waiting() || u.verify || u.hushed) {
		u.scheduled = u.q.waiting()
		u.ensure()
	}
	u.mu.Unlock()
	if flown.Sent > 0 {
		u.t.cfg.Flights.Flown(oc.real, flown)
	}
	u.t.count.out[u.lane].Add(-1)
	u.t.count.lost.Add(lost)
	u.t.cfg.Logger.Debug("connection lost", "peer", oc.real, "lane", u.lane, "lost_bytes", lost, "error", why)
	if silent {
		u.t.replaced(u, oc, lost, why)
		hole.tell(u, oc)
	}
	if u.to.Inc != 0 && !renewed {
		u.t.up.LinkDown(oc.real, u.lane, int(u.number), lost, why)
	}
	u.undelivered(unsent, ErrGone)
}

// flown returns what is not known of the tells on the connection that is over. The lock is held.
func (u *uplink) flown() (c flow.Flown) {
	l, data := u.q.(*Link)
	if !data || u.version < flow.TakenSince || u.t.cfg.Flights == nil {
		return c
	}
	c.Number, c.Generation = u.number, l.queue.Generation()
	c.Sent, c.Unknown = l.queue.Flown()
	return c
}

func (oc *outConn) why(err error) error {
	switch {
	case oc.fault != nil:
		return oc.fault
	case oc.u.dead != nil:
		return oc.u.dead
	case oc.broken != nil:
		return fmt.Errorf("connection to %s: %w", oc.real, oc.broken)
	case err != nil:
		return fmt.Errorf("connection to %s: %w", oc.real, err)
	}
	return fmt.Errorf("connection to %s: %w", oc.real, ErrClosed)
}

// noFrames refuses bytes on a connection on which nothing comes back.
func noFrames(lane wire.Lane, n int) error {
	return fmt.Errorf("%w: %d bytes came back on a %s connection", ErrProtocol, n, lane)
}
