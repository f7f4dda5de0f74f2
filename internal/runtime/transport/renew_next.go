// Make before break: a connection that is to be made anew goes on until the new one has been let in.

package transport

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/kith-io/kith/internal/core/hello"
	"github.com/kith-io/kith/internal/runtime/trust"
	"github.com/kith-io/kith/wire"
)

// renewAgain is how long a connection stays as it is after a renewal failed, until the next attempt.
const renewAgain = 5 * time.Second

// errLate ends a renewal when the connection had too much on its way for too long, errUnneeded when it broke.
var (
	errLate     = errors.New("transport: what is on its way is not consumed in time")
	errUnneeded = errors.New("transport: the connection to be made anew is gone")
)

// renewal makes the connection that follows one that stands. Its fields are under the uplink's lock.
type renewal struct {
	of      *outConn
	drained chan struct{} // capacity 1: nothing of it is on its way any more
	gone    chan struct{} // closed when it has broken
	next    *outConn      // that follows; nil until it has been let in
	carrier net.Conn      // of next
	answer  hello.Ack
}

// follow begins a renewal, and reports whether it did: not while a silent connection is being replaced anyway. The
// uplink's lock is held.
func (u *uplink) follow(oc *outConn) bool {
	if u.renewal != nil || u.dialing {
		return false
	}
	n := &renewal{of: oc, drained: make(chan struct{}, 1), gone: make(chan struct{})}
	if !u.t.spawn(func() { u.prepare(n) }) {
		return false
	}
	u.renewal = n
	return true
}

// mayEnd reports whether a connection of which nothing is on its way may be closed to be made anew: it is to break
// first, or the one that follows has been let in. If not, the goroutine that makes that one is notified. The uplink's
// lock is held.
func (u *uplink) mayEnd() bool {
	n := u.renewal
	if n == nil || n.next != nil {
		return true
	}
	select {
	case n.drained <- struct{}{}:
	default:
	}
	return false
}

// stays reports whether the renewal of a connection was put off.
func (u *uplink) stays(s *trust.Conn) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	now := time.Now()
	return s.IsPutOff(now) || now.Before(u.putOff)
}

// prepare makes the connection that follows n.of: it comes in at the peer's door, then waits until nothing of the old
// one is on its way, says hello, and is answered; meanwhile the old one goes on. When that fails it stays.
func (u *uplink) prepare(n *renewal) {
	nc, carrier, err := u.t.reach(u.ctx, &opening{to: u.to, lane: u.lane})
	stop := context.AfterFunc(u.ctx, func() { expire(nc) })
	defer stop()
	if err == nil {
		err = u.drain(n)
	}
	var a hello.Ack
	next := &outConn{u: u, over: make(chan struct{})}
	if err == nil {
		u.mu.Lock()
		u.generation++
		next.generation = u.generation
		u.mu.Unlock()
		_ = nc.SetDeadline(time.Now().Add(u.t.cfg.HelloTimeout))
		if u.ctx.Err() != nil {
			expire(nc)
		}
		a, err = u.t.agree(carrier, &opening{to: u.to, lane: u.lane, number: u.number,
			generation: next.generation, speak: u.t.cfg.versions, renews: n.of.generation})
	}
	u.mu.Lock()
	if err == nil && u.renewal != n {
		err = errUnneeded
	}
	if err == nil {
		_ = nc.SetDeadline(time.Time{})
		n.next, n.carrier, n.answer = next, carrier, a
		u.renewing, u.scheduled = true, true
	} else if u.renewal == n {
		u.renewal, u.renewing = nil, false
		u.putOff = time.Now().Add(renewAgain)
		if err == errLate {
			u.putOff = time.Now().Add(renewLater)
		}
	}
	u.mu.Unlock()
	if err != nil {
		u.keepsOld(nc, carrier, err)
	}
	u.loop.Post(u.q)
}

// keepsOld ends a renewal that failed.
func (u *uplink) keepsOld(nc, carrier net.Conn, err error) {
	if nc != nil {
		_ = nc.Close()
		err = u.t.tlsFailed(carrier, u.to.Addr, err)
	}
	if err == errUnneeded || u.ctx.Err() != nil {
		return
	}
	u.t.fault("connection not made anew", &u.t.count.tlsPutOff, "peer", u.to, "lane", u.lane, "error", err)
}

// drain stops an uplink of data, and waits until all that it has sent is consumed. Mail goes on.
func (u *uplink) drain(n *renewal) error {
	if u.lane != wire.LaneData {
		return nil
	}
	u.mu.Lock()
	if u.renewal == n {
		u.renewing, u.scheduled = true, true
	}
	u.mu.Unlock()
	u.loop.Post(u.q)
	// A peer gives a guest at its door that long for the hello.
	timer := time.NewTimer(min(u.t.cfg.renewWait, u.t.cfg.HelloTimeout/2))
	defer timer.Stop()
	select {
	case <-n.drained:
		return nil
	case <-n.gone:
		return errUnneeded
	case <-u.ctx.Done():
		return u.ctx.Err()
	case <-timer.C:
		return errLate
	}
}

// followed is called when a connection is gone: it takes its renewal out, and returns the connection that was to follow
// it, if that has been let in. The uplink's lock is held.
func (u *uplink) followed() *renewal {
	n := u.renewal
	if n == nil {
		return nil
	}
	u.renewal = nil
	close(n.gone)
	if n.next == nil {
		return nil
	}
	return n
}

// proceed goes on with the connection that follows. The uplink's lock is held.
func (u *uplink) proceed(n *renewal) {
	u.dialing = u.dead == nil && u.t.spawn(func() {
		begin := time.Now()
		if err := u.adopt(n.next, n.carrier, n.answer); err != nil {
			_ = n.carrier.Close()
			if u.failed(begin, err) {
				u.dialLoop()
			}
		}
	})
	if !u.dialing {
		_ = n.carrier.Close()
	}
}
