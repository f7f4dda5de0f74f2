// Renewal: open connections are replaced under newer credentials, without loss, and closed once the peer's certificate
// is no longer valid.

package transport

import (
	"errors"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/kith-io/kith/internal/core/hello"
	"github.com/kith-io/kith/internal/runtime/loop"
	"github.com/kith-io/kith/internal/runtime/trust"
	"github.com/kith-io/kith/wire"
)

const (
	renewLater = time.Minute // so long
	renewLeast = 8           // renewals begun in one sweep; a fifth of the peers when that is more
)

// errRenewed closes a connection in order, to be made anew.
var errRenewed = errors.New("transport: connection made anew under newer credentials")

// upkeep judges the connections that stand and begins renewals. The sweep calls it.
func (t *Transport) upkeep(remotes []*remote) {
	if t.trust == nil {
		return
	}
	t.refreshTrust()
	creds, now := t.trust.State(), t.trust.Now()
	t.trust.Warn(t.cfg.Logger)
	t.trust.EachHeld(func(s *trust.Conn) {
		if s.IsAnew() && !s.Under(creds) {
			return // its dialler is about to
		}
		if err := s.Doubt(creds, now); err != nil {
			t.expelled("closed", &t.count.tlsRefused, s.RemoteAddr(), err)
			_ = trust.Socket(s).Close() // a goroutine that reads or writes ends
		}
	})
	room := max(renewLeast, len(remotes)/5)
	for _, r := range remotes {
		for _, c := range t.acceptedFrom(r) {
			if err := c.secure.Doubt(creds, now); err != nil {
				t.expelled("refused", &t.count.tlsRefused, c.from.id, err)
				c.loop.Post(c)
			}
		}
		if b := r.bulk.Load(); b != nil {
			b.remind(creds)
		}
		r.uplinks(func(u *uplink) {
			oc := u.standing()
			if oc == nil {
				return
			}
			// Under older credentials it is made anew first, without loss: the peer may have a newer certificate by now,
			// which this connection knows nothing of.
			if s := oc.secure; s.Under(creds) || u.stays(s) {
				if err := s.Doubt(creds, now); err != nil {
					t.expelled("given up", &t.count.tlsFailed, r.id, err)
					u.loop.Post(&expulsion{oc, err})
					return
				}
			}
			if room > 0 && u.renew(oc, creds, now) {
				room--
			}
		})
	}
}

// acceptedFrom returns the connections accepted from a peer that stand.
func (t *Transport) acceptedFrom(r *remote) (conns []*InConn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range r.in {
		if c.wasOpened.Load() { // which also orders what enrolling has written before what is read here
			conns = append(conns, c)
		}
	}
	return conns
}

// expelled counts and logs a connection that stood until now.
func (t *Transport) expelled(what string, counts *[trust.TLSReasons]atomic.Uint64, who any, err error) {
	e := trust.ErrorOf(err, false)
	t.fault("tls: standing connection "+what+": "+e.Reason.String(), &counts[e.Reason], "peer", who, "error", e.Err)
}

// expulsion closes a dialled connection for a reason, on its loop.
type expulsion struct {
	oc  *outConn
	why error
}

// Run closes it, if it still stands.
func (x *expulsion) Run(*loop.Loop) {
	if x.oc.u.standing() == x.oc {
		x.oc.replace(x.why)
	}
}

// replace closes the connection, on its loop.
func (oc *outConn) replace(why error) {
	oc.fault = why
	oc.hangUp()
}

// leave notice closes the writing half, so that the peer reads all that was written before it closes the other one.
func (oc *outConn) leaveNotice() {
	if oc.fault == nil {
		oc.fault = errRenewed
		_ = syscall.Shutdown(loop.Handle(oc.c.Fd()), syscall.SHUT_WR)
	}
}

// standing returns the connection, nil when there is none.
func (u *uplink) standing() *outConn {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.conn
}

// renew replaces the connection if it is time: the uplink stops sending, and closes it once nothing is on its way. It
// returns false when there was nothing to begin.
func (u *uplink) renew(oc *outConn, creds *trust.State, now time.Time) bool {
	s := oc.secure
	if s.Fresh(creds, now) || u.stays(s) {
		return false
	}
	believed := s.Believed(creds, now)
	u.mu.Lock()
	if u.conn != oc || u.dead != nil {
		u.mu.Unlock()
		return false
	}
	// A peer of an older version would wait for the old connection's end before it answers, and a peer that is no
	// longer believed must get nothing more: there the connection breaks first.
	if u.renewal != nil || oc.version >= hello.TailSince && !u.renewing && believed {
		begun := u.follow(oc)
		u.mu.Unlock()
		return begun
	}
	begins := !u.renewing
	late := !begins && time.Since(u.renewSince) > u.t.cfg.renewWait
	switch {
	case begins:
		u.renewing, u.renewSince, u.scheduled = true, time.Now(), true
	case late && u.lane == wire.LaneData: // its receiver consumes too slowly: it goes on as it is for a while
		u.renewing = false
		s.PutOff(time.Now().Add(renewLater))
	}
	u.mu.Unlock()
	switch {
	case late && u.lane == wire.LaneControl: // the peer does not close its half
		u.loop.Post(&expulsion{oc, errRenewed})
	case begins || late:
		u.loop.Post(u.q)
	}
	return begins
}

// renewed notes, with the lock held, that a connection was closed to be made anew, and that it is dialled at once
// though nothing may wait: the runtime hears of neither unless that fails.
func (u *uplink) renewed() {
	u.renewing = false
	u.failures, u.notBefore = 0, time.Time{}
	u.hushed = u.dead == nil && u.to.Inc != 0
	u.t.count.tlsRenewed.Add(1)
}
