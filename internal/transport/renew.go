// Renewal: connections that stand are made anew under newer credentials, without loss, and closed once the peer's
// certificate is believed no more.

package transport

import (
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/kith-io/kith/internal/hello"
	"github.com/kith-io/kith/wire"
)

const (
	judgeEvery = time.Minute // the certificates of a standing connection are judged again at least that often
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
	creds := t.trust.current.Load()
	t.warnOfEnd(creds)
	t.warnOfStale(creds)
	t.trust.held.Range(func(key, _ any) bool {
		s := key.(*secure)
		if s.anew.Load() && s.creds != creds {
			return true // its dialler is about to
		}
		if err := s.doubt(creds, t.trust.now()); err != nil {
			t.expelled("closed", &t.count.tlsRefused, s.feed.sock.RemoteAddr(), err)
			_ = s.feed.sock.Close() // whoever reads or writes ends
		}
		return true
	})
	room := max(renewLeast, len(remotes)/5)
	for _, r := range remotes {
		for _, c := range t.acceptedFrom(r) {
			if err := c.secure.doubt(creds, t.trust.now()); err != nil {
				t.expelled("refused", &t.count.tlsRefused, c.from.id, err)
				c.loop.post(c)
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
			if s := oc.secure; s.creds == creds || u.stays(s) {
				if err := s.doubt(creds, t.trust.now()); err != nil {
					t.expelled("given up", &t.count.tlsFailed, r.id, err)
					u.loop.post(&expulsion{oc, err})
					return
				}
			}
			if room > 0 && u.renew(oc, creds, t.trust.now()) {
				room--
			}
		})
	}
}

// doubt judges the peer again when the credentials are other ones, or once a minute. Only the sweep calls it.
func (s *secure) doubt(creds *credentials, now time.Time) error {
	if s.judged == creds && now.Sub(s.judgedAt) < judgeEvery {
		return nil
	}
	s.judged, s.judgedAt = creds, now
	return creds.judge(s.peer, s.host, now)
}

// keep notes what the upkeep of the connection needs: the peer's chain, and when to renew it, which is at two thirds of
// what is left of the certificates of both ends, and a little earlier at random, so that not all connections do at
// once.
func (s *secure) keep(now time.Time) {
	s.peer = s.ConnectionState().PeerCertificates
	s.judged, s.judgedAt = s.creds, now
	ends := s.creds.ends
	for _, cert := range s.peer {
		if cert.NotAfter.Before(ends) {
			ends = cert.NotAfter
		}
	}
	left := max(ends.Sub(now), 0)
	s.renewAt = now.Add(left*2/3 - rand.N(left/20+1))
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
func (t *Transport) expelled(what string, counts *[tlsReasons]atomic.Uint64, who any, err error) {
	e := tlsError(err, false)
	t.fault("tls: standing connection "+what+": "+e.Reason.String(), &counts[e.Reason], "peer", who, "error", e.Err)
}

// expulsion closes a dialled connection for a reason, on its loop.
type expulsion struct {
	oc  *outConn
	why error
}

// Run closes it, if it still stands.
func (x *expulsion) Run(*Loop) {
	if x.oc.u.standing() == x.oc {
		x.oc.replace(x.why)
	}
}

// replace closes the connection, on its loop.
func (oc *outConn) replace(why error) {
	oc.fault = why
	oc.hangUp()
}

// farewell closes the writing half, so that the peer reads all that was written before it closes the other one.
func (oc *outConn) farewell() {
	if oc.fault == nil {
		oc.fault = errRenewed
		_ = syscall.Shutdown(oc.c.Fd(), syscall.SHUT_WR)
	}
}

// standing returns the connection, nil when there is none.
func (u *uplink) standing() *outConn {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.conn
}

// renew has the connection made anew if it is time: the uplink sends no more, and closes it once nothing is on its way.
// It returns false when there was nothing to begin.
func (u *uplink) renew(oc *outConn, creds *credentials, now time.Time) bool {
	s := oc.secure
	if s.creds == creds && now.Before(s.renewAt) || u.stays(s) {
		return false
	}
	believed := creds.judge(s.peer, s.host, now) == nil
	u.mu.Lock()
	if u.conn != oc || u.dead != nil {
		u.mu.Unlock()
		return false
	}
	// A peer of an older version would wait for the old connection's end before it answers, and one that is believed no
	// more is to get nothing more: there the connection breaks first.
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
		u.renewing, s.putOff = false, time.Now().Add(renewLater)
	}
	u.mu.Unlock()
	switch {
	case late && u.lane == wire.LaneControl: // the peer does not close its half
		u.loop.post(&expulsion{oc, errRenewed})
	case begins || late:
		u.loop.post(u.q)
	}
	return begins
}

// renewed notes, with the lock held, that a connection was closed to be made anew, and that it is dialled at once
// though nothing may wait: the rider is told of neither unless that fails.
func (u *uplink) renewed() {
	u.renewing = false
	u.failures, u.notBefore = 0, time.Time{}
	u.hushed = u.dead == nil && u.to.Inc != 0
	u.t.count.tlsRenewed.Add(1)
}
