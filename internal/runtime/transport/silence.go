// Silence: connections on which nothing that was sent is acknowledged any more are found out, and made anew as soon as
// the peer answers a new one.

package transport

import (
	"errors"
	"time"

	"github.com/kith-io/kith/peer"
)

// A path that is cut does not break a connection: its bytes are sent again after pauses that double, so that it goes on
// only some time after the path is well, up to as long again as the cut was. What tells a path that is cut from a peer
// that is slow is whether the peer's system acknowledges what it gets, which it does whatever the process does: a
// handler that holds a loop for a minute, a process that is stopped, a socket that is full are not silent.
const (
	// silentLeast is how long sent bytes go unacknowledged until the connection counts as silent: they have been sent
	// four times by then, and would be sent for the fifth time a second later.
	silentLeast = 2 * time.Second
	// leastRTO is the shortest pause of the system before it sends again. Where it is longer, as on a path with a long
	// round trip, so is the time until a connection is silent.
	leastRTO = 200 * time.Millisecond
	// longestRTO is what those pauses are bounded to, where the system can (Linux 6.15): a connection goes on at most so
	// long after its path is well, and loses nothing.
	longestRTO = time.Second
	// silentGrace is how long the path of a new connection has stood until the silent one is given up for it, lost bytes
	// and all: where pauses are bounded, it would have been heard by then.
	silentGrace, boundedGrace = 100 * time.Millisecond, longestRTO + 100*time.Millisecond
	graceLook                 = 20 * time.Millisecond
	// These are how long a connection may hear nothing until the system ends it. It also ends one with a peer that takes
	// nothing for so long, though that peer is heard. So it is a long time for data: a peer takes none while its handlers
	// hold their loop, and mail may be lost, but what was sent to entities should not.
	controlTimeout, bulkTimeout, dataTimeout = 15 * time.Second, 30 * time.Second, 5 * time.Minute
)

// patience fills in what a test has not set.
func (c *Config) patience() {
	if c.silent == 0 {
		c.silent = silentLeast
	}
	if c.silentGrace == 0 {
		c.silentGrace = silentGrace
		if rtoIsBounded() {
			c.silentGrace = boundedGrace
		}
	}
}

// errSilent ends a connection on which nothing is acknowledged, for one that the peer has answered.
var errSilent = errors.New("transport: nothing that was sent is acknowledged, while the peer answers a new connection")

// errHeard ends an attempt to replace a connection that is no longer silent.
var errHeard = errors.New("transport: the connection goes on")

// silence watches one connection. Its owner's lock guards it.
type silence struct {
	next  time.Time // to look
	since time.Time // when acknowledgements were last seen to grow, or bytes to go; zero: none are on their way
	total uint64    // bytes acknowledged then
	on    bool      // it is silent
	large bool      // more was on its way then than the smallest packet that every path carries
	mss   int       // bytes of the largest packet's data, as the system takes it
	hole  hole      // of the connections before this one
}

// A path that carries small packets and loses those above a size, without a word, as one with an MTU that is smaller
// than the ends take it for, lets every hello through and none of the first full packets: connections are made anew for
// ever.
const (
	smallPacket = 1220        // bytes of data in a packet of 1,280, which every path carries
	holeAfter   = 3           // connections that ended so, one soon after the other, until it is said
	holeWithin  = time.Minute // from one to the next
)

// inHole counts the connection that ends now, if it gave way to another one, and returns what is to be said of it: zero
// for nothing.
func (s *silence) inHole(replaced bool) (said holeFound) {
	if replaced && s.hole.ended(s.large, time.Now()) {
		said = holeFound{s.hole.ends, s.mss}
	}
	return said
}

// holeFound is what is said of connections that ended so: how many in a row, and the bytes of data in a largest packet.
type holeFound struct{ ends, mss int }

func (f holeFound) tell(u *uplink, oc *outConn) {
	if f.ends > 0 {
		u.t.cfg.Logger.Error("connections end with their first large packet, small ones pass: the path loses packets above "+
			"a size", "peer", oc.real, "lane", u.lane, "number", u.number, "ended", f.ends, "largest", f.mss)
	}
}

// hole counts connections in a row that ended with a large packet on its way.
type hole struct {
	ends       int
	last, said time.Time
}

// ended notes that a silent connection gave way to another one, and reports whether it is time to say what that means.
func (h *hole) ended(large bool, now time.Time) (say bool) {
	if !large || now.Sub(h.last) > holeWithin {
		h.ends = 0
	}
	if !large {
		return false
	}
	h.ends, h.last = h.ends+1, now
	if say = h.ends >= holeAfter && now.Sub(h.said) >= unreachedEvery; say {
		h.said = now
	}
	return say
}

// look asks the system. late says that nobody has looked for a while, as when this process stood still.
func (s *silence) look(fd int, now time.Time, late bool, least time.Duration) {
	s.next = now.Add(least / 4)
	a, ok := acknowledgements(fd)
	if !ok || a.unacked == 0 {
		s.since, s.on = time.Time{}, false
		return
	}
	if s.since.IsZero() || a.total != s.total || late && !s.on {
		s.since, s.total = now, a.total
	}
	s.on = now.Sub(s.since) >= least*max(a.rto, leastRTO)/leastRTO
	s.large, s.mss = a.bytes > smallPacket, a.mss
}

// acked is what the system knows of a connection.
type acked struct {
	unacked int           // segments on their way
	bytes   int           // that wait to be acknowledged, or to be sent; zero: not known
	mss     int           // bytes of data in its largest packets
	total   uint64        // bytes that were acknowledged; what else is heard of the peer proves nothing for our bytes
	rto     time.Duration // pause before sending again, as the round trip makes it
}

// heed looks whether the connection of the uplink is silent. Then it is dialled anew beside it, which replaces it when
// the peer answers. The sweep calls it.
func (u *uplink) heed(now time.Time, late bool) {
	u.mu.Lock()
	oc, was := u.conn, u.silence.on
	switch {
	case oc == nil || u.dead != nil || u.yields || now.Before(u.silence.next):
		u.mu.Unlock()
		return
	case !was && !u.q.unanswered():
		u.silence.since = time.Time{}
		u.mu.Unlock()
		return
	}
	u.silence.look(oc.c.Fd(), now, late, u.t.cfg.silent)
	on, since := u.silence.on, u.silence.since
	u.unheard = u.unheard && !since.IsZero()
	warn := false
	if on {
		u.silentFor.start(u.t.cfg.Now)
		if !u.dialing && u.refusal == nil && u.renewal == nil {
			u.notBefore = time.Time{}
			u.dialing = u.t.spawn(u.dialLoop)
		}
		if warn = !was && now.Sub(u.silentSaid) >= unreachedEvery; warn {
			u.silentSaid = now
		}
	} else if was {
		u.heard()
	}
	u.mu.Unlock()
	switch {
	case on && !was:
		u.t.silent(u, now.Sub(since), warn)
	case was && !on:
		u.t.cfg.Logger.Debug("silent connection goes on", "peer", oc.real, "lane", u.lane, "number", u.number)
		u.t.wellAgain(u, oc.real)
	}
}

// silent counts and tells that the connection of an uplink is.
func (t *Transport) silent(u *uplink, since time.Duration, warn bool) {
	t.count.silences.Add(1)
	log := t.cfg.Logger.Debug
	if warn {
		log = t.cfg.Logger.Warn
	}
	log("connection is silent: nothing that was sent is acknowledged; trying a new one", "peer", u.named(), "lane", u.lane,
		"number", u.number, "for", since.Round(time.Millisecond))
	if u.to.Inc != 0 {
		t.up.LinkSilent(u.to, u.lane, int(u.number), since)
	}
}

// replaced tells that a silent connection has ended.
func (t *Transport) replaced(u *uplink, oc *outConn, lost uint64, why error) {
	log := t.cfg.Logger.Debug
	if lost > 0 {
		log = t.cfg.Logger.Warn
	}
	log("silent connection has ended", "peer", oc.real, "lane", u.lane, "number", u.number, "lost_bytes", lost,
		"error", why)
	if oc.fault == errSilent {
		t.count.replaced.Add(1)
	}
	if u.to.Inc != 0 {
		t.up.LinkSilent(u.to, u.lane, int(u.number), 0)
	}
}

// wellAgain says that a silence is over, and that the peer is to be tried on all other connections at once.
func (t *Transport) wellAgain(u *uplink, real peer.ID) {
	if u.to.Inc != 0 {
		t.up.LinkSilent(u.to, u.lane, int(u.number), 0)
	}
	t.nudge(real)
}

// heard ends a silence. The lock is held.
func (u *uplink) heard() {
	u.silence = silence{next: u.silence.next, hole: u.silence.hole}
	u.silentFor.stop(u.t.cfg.Now)
	if u.conn != nil {
		u.unreached, u.warned = 0, false
	}
}

// replaces reports whether the connection that stands is silent. The lock is held.
func (u *uplink) replaces() bool { return u.conn != nil && u.silence.on }

// wanted reports whether a connection is to be dialled: there is none and somebody needs one, or the one that there is
// is silent. The lock is held.
func (u *uplink) wanted() bool {
	if u.conn != nil {
		return u.replaces()
	}
	return u.q.waiting() || u.verify || u.inquires || u.hushed
}

// grace waits, when a new connection over a path that has just come to stand would replace a silent one, until that one
// has had its time to be heard. It returns errHeard when it was.
func (u *uplink) grace() error {
	tick := time.NewTicker(graceLook)
	defer tick.Stop()
	for begin := time.Now(); ; {
		u.mu.Lock()
		oc, passed := u.conn, time.Since(begin)
		goesOn := oc != nil && (!u.silence.on || u.silence.ends(oc.c.Fd()))
		over := oc == nil || !goesOn && passed >= u.t.cfg.silentGrace
		u.yields = oc != nil && over // from the hello on the peer may close it
		u.mu.Unlock()
		switch {
		case goesOn:
			return errHeard
		case over:
			return nil
		}
		select {
		case <-tick.C:
		case <-u.ctx.Done():
			return u.ctx.Err()
		}
	}
}

// relent looks at a silent connection again, because it was heard.
func (u *uplink) relent() {
	now := time.Now()
	u.mu.Lock()
	u.silence.next = now
	u.notBefore = now.Add(u.t.cfg.silent / 4) // should it be silent still
	u.mu.Unlock()
	u.heed(now, false)
}

// ends reports whether something was acknowledged since the last look.
func (s *silence) ends(fd int) bool {
	a, ok := acknowledgements(fd)
	return !ok || a.unacked == 0 || a.total != s.total
}

// clear closes the connection that the new one replaces, and waits until that is done.
func (u *uplink) clear(why error) error {
	old := u.standing()
	if old == nil {
		return nil
	}
	u.loop.Post(&expulsion{old, why})
	select {
	case <-old.over:
		return nil
	case <-u.ctx.Done():
		return u.ctx.Err()
	}
}

// nudge dials at once, back-off or not, the connections to a peer that was heard again.
func (t *Transport) nudge(id peer.ID) {
	t.mu.Lock()
	r := t.remotes[id]
	t.mu.Unlock()
	if r != nil {
		r.uplinks((*uplink).nudge)
	}
}

func (u *uplink) nudge() {
	u.mu.Lock()
	u.notBefore = time.Time{}
	u.mu.Unlock()
	select {
	case u.hurry <- struct{}{}:
	default:
	}
}

// heed looks whether credit that was written on an accepted data connection is acknowledged. While it is not, its
// sender gets the credit on the control connection, as one that does not read.
func (c *InConn) heed(now time.Time, late bool) {
	c.mu.Lock()
	if !c.stands || !c.said || now.Before(c.silence.next) {
		c.mu.Unlock()
		return
	}
	c.silence.look(c.c.Fd(), now, late, c.t.cfg.silent)
	c.said = !c.silence.since.IsZero()
	on := c.silence.on
	begins := on && !c.mute.Load()
	c.mute.Store(on)
	c.mu.Unlock()
	if begins {
		c.from.control().owe(c)
	}
}
