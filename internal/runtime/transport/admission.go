// Admission: the connections that have not said hello, how many there may be, and which one goes when one more comes.

package transport

import (
	"container/list"
	"net"
	"net/netip"
	"sync/atomic"
	"time"
)

const (
	// doorGrace is how long nobody is put out: a crowd of nodes that come at once is worked off, not chased around.
	admissionGrace = 20 * time.Millisecond
	// maxFamiliar bounds the addresses that are remembered because somebody proved itself from there.
	maxFamiliar = 4096
	// familiarFor is how long such an address is remembered after the last connection from there.
	familiarFor = time.Hour
)

// pendingConn is a connection that has not said hello.
type pendingConn struct {
	nc     net.Conn
	from   netip.Addr // its visitor
	member bool       // a member is known to be there
	since  time.Duration

	spoke atomic.Bool // a byte has come
	out   atomic.Bool // it was put out for a later one

	queue, own *list.Element // while it has proven nothing: in the queue of its kind, and in that of its address
}

// pressure is why a guest has no place at the door: a new one, or one that was there.
type pressure uint8

const (
	noCrush      pressure = iota
	tooMany               // as many are pending as may be
	tooManyThere          // the share of the address is
)

// admission is the table of pending connections. When it is full the guest that has proven nothing for the longest time
// goes, of the same address if that has its share already; no guest from a member's address goes for one from
// elsewhere, and none that has proven itself. Not safe for concurrent use.
type admission struct {
	most, each  int
	pending     map[net.Conn]*pendingConn
	there       map[netip.Addr]int        // pending connections by visitor
	unproven    map[netip.Addr]*list.List // of those, which have proven nothing, oldest first
	strangers   list.List                 // all that have proven nothing, oldest first: from elsewhere,
	fromMembers list.List                 // and from where members are

	members  map[netip.Addr]struct{}      // where the members of now are
	familiar map[netip.Addr]time.Duration // where somebody has proven itself, and when last
}

func newAdmission(most, each int) admission {
	return admission{most: most, each: each, pending: map[net.Conn]*pendingConn{}, there: map[netip.Addr]int{},
		unproven: map[netip.Addr]*list.List{}, familiar: map[netip.Addr]time.Duration{}}
}

// knows reports whether a member is known to be at an address.
func (d *admission) knows(now time.Duration, from netip.Addr) bool {
	if _, ok := d.members[from]; ok {
		return true
	}
	last, ok := d.familiar[from]
	return ok && now-last < familiarFor
}

// remember notes that a guest that has proven itself is, or was until now, at an address.
func (d *admission) remember(now time.Duration, from netip.Addr) {
	if _, known := d.familiar[from]; !known && len(d.familiar) >= maxFamiliar {
		oldest := from
		for a, last := range d.familiar {
			if before, ok := d.familiar[oldest]; !ok || last < before || last == before && a.Less(oldest) {
				oldest = a
			}
		}
		delete(d.familiar, oldest)
	}
	d.familiar[from] = now
}

// come takes a connection in; g is nil when there is no place for it. goes, if any, has lost its place to it, and is to
// be closed.
func (d *admission) come(now time.Duration, nc net.Conn, from netip.Addr) (g, goes *pendingConn, why pressure) {
	g = &pendingConn{nc: nc, from: from, member: d.knows(now, from), since: now}
	full, share := len(d.pending) >= d.most, d.there[from] >= d.each
	switch {
	case full:
		why = tooMany
	case share:
		why = tooManyThere
	}
	switch {
	case share:
		goes = oldest(now, d.unproven[from])
	case full:
		if goes = oldest(now, &d.strangers); goes == nil && g.member {
			goes = oldest(now, &d.fromMembers)
		}
	}
	if goes == nil && why != noCrush {
		return nil, nil, why
	}
	if goes != nil {
		goes.out.Store(true)
		d.leave(goes)
	}
	if d.unproven[from] == nil {
		d.unproven[from] = list.New()
	}
	d.pending[nc] = g
	d.there[from]++
	g.queue, g.own = d.line(g).PushBack(g), d.unproven[from].PushBack(g)
	return g, goes, why
}

// oldest returns the first of a queue, if it has had its grace.
func oldest(now time.Duration, q *list.List) *pendingConn {
	if q == nil || q.Len() == 0 {
		return nil
	}
	if g := q.Front().Value.(*pendingConn); now-g.since >= admissionGrace {
		return g
	}
	return nil
}

// yield takes the stranger out that has proven nothing for the longest time; nil: there is none that has had its grace.
func (d *admission) yield(now time.Duration) *pendingConn {
	goes := oldest(now, &d.strangers)
	if goes != nil {
		goes.out.Store(true)
		d.leave(goes)
	}
	return goes
}

func (d *admission) line(g *pendingConn) *list.List {
	if g.member {
		return &d.fromMembers
	}
	return &d.strangers
}

// proved notes that a pending connection has proven to be a member: it is not put out any more.
func (d *admission) proved(g *pendingConn) {
	if g.queue == nil {
		return
	}
	d.line(g).Remove(g.queue)
	own := d.unproven[g.from]
	own.Remove(g.own)
	if own.Len() == 0 {
		delete(d.unproven, g.from)
	}
	g.queue, g.own = nil, nil
}

// leave takes a pending connection out, if it is in.
func (d *admission) leave(g *pendingConn) {
	if d.pending[g.nc] != g {
		return
	}
	d.proved(g)
	delete(d.pending, g.nc)
	if d.there[g.from]--; d.there[g.from] <= 0 {
		delete(d.there, g.from)
	}
}

// entry reads for a pending connection until its hello is through, and notes the first byte.
type entry struct {
	t *Transport
	g *pendingConn
}

// Read reads from the pending connection's connection.
func (e entry) Read(p []byte) (int, error) {
	n, err := e.g.nc.Read(p)
	if n > 0 {
		e.heard()
	}
	return n, err
}

// heard gives a guest that has begun to speak the time of a hello.
func (e entry) heard() {
	if !e.g.spoke.Swap(true) {
		e.t.limit(e.g.nc, e.t.cfg.HelloTimeout)
	}
}
