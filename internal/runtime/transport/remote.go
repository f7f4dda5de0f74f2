// The table of peers: one entry per identity, with its loop, its uplinks and its accepted connections.

package transport

import (
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/kith-io/kith/internal/core/hello"
	"github.com/kith-io/kith/internal/runtime/loop"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// Bounds and ages of the table of peers.
const (
	maxForgotten = 8192             // removed identities that are remembered, the newest
	contactIdle  = 30 * time.Second // a connection to a contact point is closed after that long without mail
	remoteIdle   = 5 * time.Minute  // an entry without connections is dropped after that long without mail
)

// errIdle closes a connection that nobody used.
var errIdle = errors.New("transport: connection was idle")

// remote is one peer identity. With incarnation zero it is a contact point: any node at the address.
type remote struct {
	t     *Transport
	id    peer.ID
	base  int                    // number of the loop of data connection 0
	links []atomic.Pointer[Link] // by number of the data connection; made together
	ctl   atomic.Pointer[control]
	bulk  atomic.Pointer[Bulk]

	// Under the transport's lock.
	in        map[inKey]*InConn
	bulkIn    *bulkConn
	bond      hello.Bond
	forgotten bool
}

// departed is the identities that were removed, the newest of them. The transport's lock is held.
type departed struct {
	ids   map[peer.ID]struct{}
	order []peer.ID
}

func (g *departed) add(id peer.ID) {
	if _, known := g.ids[id]; known {
		return
	}
	if len(g.order) == maxForgotten {
		delete(g.ids, g.order[0])
		g.order = g.order[1:]
	}
	g.ids[id] = struct{}{}
	g.order = append(g.order, id)
}

// remote returns the entry of id and makes it if need be. ErrClosed, ErrSelf, ErrForgotten, ErrBusy.
func (t *Transport) remote(id peer.ID) (*remote, error) {
	if id.Addr == t.self.Addr {
		return nil, ErrSelf
	}
	r, err := t.lockedRemote(id)
	if err == nil {
		t.mu.Unlock()
	}
	return r, err
}

// lockedRemote is remote; when it returns an entry, the transport's lock is held, so that the entry cannot be swept
// away before something is put into it.
func (t *Transport) lockedRemote(id peer.ID) (r *remote, err error) {
	t.mu.Lock()
	defer func() {
		if err != nil {
			t.mu.Unlock()
		}
	}()
	if t.life.closing {
		return nil, ErrClosed
	}
	if r := t.remotes[id]; r != nil {
		return r, nil
	}
	if _, gone := t.gone.ids[id]; gone {
		return nil, ErrForgotten
	}
	if len(t.remotes) >= t.cfg.MaxPeers {
		return nil, ErrBusy
	}
	r = &remote{t: t, id: id, links: make([]atomic.Pointer[Link], t.cfg.DataConnections), in: map[inKey]*InConn{}}
	if len(r.links) < len(t.loops) {
		r.base = t.nextLoop
		t.nextLoop = (t.nextLoop + len(r.links)) % len(t.loops)
	}
	t.remotes[id] = r
	return r, nil
}

// bulky reports whether there is a side of a bulk connection. The transport's lock is held.
func (r *remote) bulky() bool { return r.bulkIn != nil || r.bulk.Load() != nil }

// loop returns the data loop of connection number, the same for both directions. Peers with fewer connections than
// there are loops are spread over them; with at least as many, connection n lives on loop n whatever the peer, so that
// a shard is read on one loop wherever its messages come from.
func (r *remote) loop(number uint16) *loop.Loop {
	return r.t.loops[(r.base+int(number))%len(r.t.loops)]
}

// link returns a data link of the peer, nil when it has none of that number, or none yet.
func (r *remote) link(number int) *Link {
	if number >= len(r.links) {
		return nil
	}
	return r.links[number].Load()
}

// made returns the data links that exist: none, or all.
func (r *remote) made() (links []*Link) {
	for i := range r.links {
		if l := r.links[i].Load(); l != nil {
			links = append(links, l)
		}
	}
	return links
}

// answers returns the link on which answers to what connection number brings go best: one of the loop that reads it.
func (r *remote) answers(number uint16) *Link {
	n := len(r.links)
	for i := range n {
		if at := (int(number) + i) % n; r.loop(uint16(at)) == r.loop(number) {
			return r.link(at)
		}
	}
	return r.link(int(number) % n)
}

// control returns the control uplink and makes it if need be; that of a forgotten peer is dead.
func (r *remote) control() *control {
	if c := r.ctl.Load(); c != nil {
		return c
	}
	r.t.mu.Lock()
	defer r.t.mu.Unlock()
	if c := r.ctl.Load(); c != nil {
		return c
	}
	number := uint16(0)
	if r.id.Inc == 0 {
		number = 1 // beside the connection to the same node by its full identity
	}
	c := newControl(r.t, r.id, number)
	if r.forgotten {
		c.dead = ErrForgotten
	}
	r.ctl.Store(c)
	return c
}

// Cut reports whether the control connection to a peer stood and does not now: what is sent there waits at least until
// it is dialled again.
func Cut(id peer.ID, t *Transport) bool {
	t.mu.Lock()
	r := t.remotes[id]
	t.mu.Unlock()
	if r == nil {
		return false
	}
	c := r.ctl.Load()
	if c == nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.conn == nil && c.connects > 0
}

// Link returns the first of Links.
func (t *Transport) Link(id peer.ID) *Link { return t.Links(id)[0] }

// Links returns the data links to a peer, Config.DataConnections of them: one for each of its data connections, which
// are dialled on first use. Frames keep their order on one link, so what must keep its order always takes the same. The
// same identity gives the same links until it is forgotten. Links that cannot be (to this node itself, a forgotten
// peer, after Close) refuse Reserve.
func (t *Transport) Links(id peer.ID) []*Link {
	err := ErrNoIncarnation
	if id.Addr == t.self.Addr {
		err = ErrSelf
	} else if id.Inc != 0 {
		var r *remote
		if r, err = t.lockedRemote(id); err == nil {
			defer t.mu.Unlock()
			for i := range r.links {
				if r.links[i].Load() == nil {
					r.links[i].Store(newLink(t, id, uint16(i), r.loop(uint16(i))))
				}
			}
			return r.made()
		}
	}
	links := make([]*Link, t.cfg.DataConnections)
	for i := range links {
		links[i] = newLink(t, id, uint16(i), t.loops[i%len(t.loops)])
		links[i].dead = err
		links[i].cancel()
	}
	return links
}

// Forget is called when a member was removed: its connections are closed, its later ones refused, its link fails with
// ErrForgotten, and what it held is reported by Undelivered. An identity never comes back.
func (t *Transport) Forget(id peer.ID) {
	if id.Inc == 0 || id.Addr == t.self.Addr {
		return
	}
	t.mu.Lock()
	t.gone.add(id)
	r := t.remotes[id]
	var conns []*InConn
	var bulkIn *bulkConn
	if r != nil {
		r.forgotten, bulkIn = true, r.bulkIn
		delete(t.remotes, id)
		for _, c := range r.in {
			conns = append(conns, c)
		}
	}
	t.mu.Unlock()
	if r == nil {
		return
	}
	if bulkIn != nil {
		_ = bulkIn.nc.Close()
	}
	if b := r.bulk.Load(); b != nil {
		b.kill(ErrForgotten)
	}
	for _, c := range conns {
		c.loop.Post(c)
	}
	for _, l := range r.made() {
		l.kill(ErrForgotten)
	}
	if c := r.ctl.Load(); c != nil {
		c.kill(ErrForgotten)
	}
}

// GiveUp is called when a member's process is known to be gone and the member is not removed yet. Undelivered gets what
// its links hold, now or when their connections break, and its large messages end. For a few seconds its links refuse
// with ErrGone, unless it is reached again. Its control connection goes on.
func (t *Transport) GiveUp(id peer.ID) {
	t.mu.Lock()
	r := t.remotes[id]
	t.mu.Unlock()
	if r == nil {
		return
	}
	for _, l := range r.made() {
		l.kill(ErrGone)
	}
	if b := r.bulk.Load(); b != nil {
		b.giveUp()
	}
}

// Leaving says that a peer is on its way out, as its cluster knows: that it is not reached any more is no news, and is
// counted but not logged as a warning.
func (t *Transport) Leaving(id peer.ID) {
	t.mu.Lock()
	r := t.remotes[id]
	t.mu.Unlock()
	if r == nil {
		return
	}
	for _, l := range r.made() {
		l.hush()
	}
	if c := r.ctl.Load(); c != nil {
		c.hush()
	}
}

// uplinks calls f with every uplink to the peer.
func (r *remote) uplinks(f func(u *uplink)) {
	if c := r.ctl.Load(); c != nil {
		f(&c.uplink)
	}
	for _, l := range r.made() {
		f(&l.uplink)
	}
}

// removeIn takes a connection that is over out of its peer's table.
func (t *Transport) removeIn(c *InConn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := c.from
	if c.wasOpened.Load() {
		t.admission.remember(t.cfg.Now(), c.visitor) // it will come again
	}
	if key := (inKey{c.lane, c.number}); r.in[key] == c {
		delete(r.in, key)
		if !hello.IsContact(c.lane, c.number) {
			r.left()
		}
	}
	if len(r.in) == 0 && r.link(0) == nil && r.ctl.Load() == nil && !r.bulky() && t.remotes[r.id] == r {
		delete(t.remotes, r.id)
	}
}

// dataFrom appends the data connections accepted from a peer.
func (t *Transport) dataFrom(conns []*InConn, id peer.ID) []*InConn {
	return t.inFrom(conns, id, wire.LaneData)
}

// inFrom appends the connections of one lane accepted from a peer.
func (t *Transport) inFrom(conns []*InConn, id peer.ID, lane wire.Lane) []*InConn {
	t.mu.Lock()
	defer t.mu.Unlock()
	if r := t.remotes[id]; r != nil {
		for key, c := range r.in {
			if key.lane == lane {
				conns = append(conns, c)
			}
		}
	}
	return conns
}

// snapshot appends all peers and returns the number of connections that have not said hello.
func (t *Transport) snapshot(remotes []*remote) (all []*remote, pending int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	remotes = slices.Grow(remotes, len(t.remotes))
	for _, r := range t.remotes {
		remotes = append(remotes, r)
	}
	return remotes, len(t.admission.pending)
}

// sweeping is what a sweep looks at, kept for the next one: a node that is idle allocates nothing for it.
type sweeping struct {
	remotes []*remote
	conns   []*InConn
	last    time.Time
}

func (t *Transport) sweepLoop() {
	tick := time.NewTicker(max(t.cfg.CreditEvery, time.Millisecond))
	defer tick.Stop()
	var found sweeping
	for n := 1; ; n++ {
		select {
		case <-tick.C:
			t.sweep(&found, n%thoroughEvery == 0)
		case <-t.kick:
			t.sweep(&found, true)
		case <-t.ctx.Done():
			return
		}
	}
}

// sweep sends credit that was held back, takes back buffers that links no longer need, and once in a while gives memory
// to the collector and drops idle entries.
func (t *Transport) sweep(found *sweeping, thorough bool) {
	if thorough {
		t.buffers.trim()
		t.partials.look(t.cfg.Now())
		t.reserve.Look()
	}
	remotes, _ := t.snapshot(found.remotes[:0])
	found.remotes = remotes
	now := time.Now()
	late := now.Sub(found.last) > t.cfg.silent/2
	found.last = now
	defer func() { clear(found.remotes) }()
	t.sweepBulk(remotes, now, late)
	if thorough {
		t.upkeep(remotes)
	}
	for _, r := range remotes {
		found.conns = t.dataFrom(found.conns[:0], r.id)
		for _, c := range found.conns {
			c.flushCredit()
			c.heed(now, late)
		}
		clear(found.conns)
		for i := range r.links {
			if l := r.links[i].Load(); l != nil {
				l.sweep()
				l.heed(now, late)
			}
		}
		c := r.ctl.Load()
		if c != nil {
			c.heed(now, late)
		}
		if thorough && c != nil {
			c.sweep()
			if r.id.Inc == 0 {
				c.lookElsewhere(now)
			}
			t.dropIdle(r, c)
		}
	}
}

// dropIdle ends the entry of a peer when nothing was sent to it for long and it has no connection to here.
func (t *Transport) dropIdle(r *remote, c *control) {
	limit := remoteIdle
	if r.id.Inc == 0 {
		limit = contactIdle
	}
	c.mu.Lock()
	idle := time.Since(c.lastSend) > limit && !c.scheduled && (r.id.Inc == 0 || c.conn == nil)
	c.mu.Unlock()
	if !idle {
		return
	}
	t.mu.Lock()
	idle = len(r.in) == 0 && r.link(0) == nil && !r.bulky() && t.remotes[r.id] == r
	if idle {
		delete(t.remotes, r.id)
	}
	t.mu.Unlock()
	if idle {
		c.kill(errIdle)
	}
}
