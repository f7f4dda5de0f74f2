// Partial frames: what accepted connections hold of frames that are not whole, under one budget, with shares and a
// least rate (SEC-4).

package transport

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/kith-io/kith/peer"
)

// What a frame that is not whole may take: a time, and longer by its size. Both are counted in time and in looks of the
// sweep, so that neither a node that stood still nor one that sweeps often ends what came fast enough.
const (
	partialTime  = 10 * time.Second
	partialLooks = 5
	partialRate  = 64 << 10 // bytes a second
	partialStep  = 2 * partialRate
)

// PartialError closes a connection: what it had received of a frame found no room any more.
type PartialError struct {
	Peer   peer.ID
	Wanted int  // bytes more
	Bound  int  // bytes that all accepted connections may hold so (Config.PartialBudget), or one peer
	Share  bool // the bound is the peer's share
}

// Error names the bound.
func (e *PartialError) Error() string {
	whose := "all connections"
	if e.Share {
		whose = "one peer"
	}
	return fmt.Sprintf("transport: no room for %d bytes more of a frame of %s that is not whole: %s may hold %d so",
		e.Wanted, e.Peer, whose, e.Bound)
}

// partials is what all accepted connections of a node hold beyond keepCarry each. Its lock is taken for frames above
// that only, a few times for each.
type partials struct {
	limit int

	mu     sync.Mutex
	used   int
	owners map[peer.ID]int // bytes by the peer with the share that they are in
	live   map[*InConn]*partial
	full   uint64 // connections closed for want of room
	slow   uint64 // connections closed because a frame did not become whole
}

// partial is what one connection holds.
type partial struct {
	in    *InConn
	owner peer.ID
	n     int
	since time.Duration
	looks int
}

// stale reports whether p has been looked at twice: others may need the room more.
func (p *partial) stale() bool { return p.looks >= 2 }

// overdue reports whether its frame has come too slowly.
func (p *partial) overdue(now time.Duration) bool {
	return p.looks > partialLooks+p.n/partialStep &&
		now-p.since > partialTime+time.Duration(p.n/partialRate)*time.Second
}

// claim takes n bytes more for a connection. When there is no room, the connection that has held some for longest is
// closed for it, if it has for a while; else a *PartialError.
func (r *partials) claim(in *InConn, owner peer.ID, now time.Duration, n int) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.live[in]
	if p == nil {
		p = &partial{in: in, owner: owner, since: now}
	}
	if half := r.limit / 2; r.owners[p.owner]+n > half {
		r.full++
		return &PartialError{Peer: in.from.id, Wanted: n, Bound: half, Share: true}
	}
	for r.used+n > r.limit {
		victim := r.oldest(in)
		if victim == nil {
			r.full++
			return &PartialError{Peer: in.from.id, Wanted: n, Bound: r.limit}
		}
		r.full++
		r.end(victim, "connection closed: others need the room of its partial frame")
	}
	if r.live == nil {
		r.live, r.owners = map[*InConn]*partial{}, map[peer.ID]int{}
	}
	r.live[in] = p
	p.n += n
	r.used += n
	r.owners[p.owner] += n
	return nil
}

// oldest returns the stale one that began first, but not that of a connection.
func (r *partials) oldest(but *InConn) (oldest *partial) {
	for in, p := range r.live {
		if in != but && p.stale() && (oldest == nil || p.since < oldest.since) {
			oldest = p
		}
	}
	return oldest
}

func (r *partials) drop(p *partial) {
	delete(r.live, p.in)
	r.used -= p.n
	if r.owners[p.owner] -= p.n; r.owners[p.owner] == 0 {
		delete(r.owners, p.owner)
	}
}

// end gives back what p holds, and closes its connection on its loop.
func (r *partials) end(p *partial, why string) {
	r.drop(p)
	p.in.t.faults.warn(why, "peer", p.in.from.id, "lane", p.in.lane, "bytes", p.n)
	p.in.loop.Post(p.in)
}

// release gives back what a connection holds, if anything.
func (r *partials) release(in *InConn) {
	r.mu.Lock()
	if p := r.live[in]; p != nil {
		r.drop(p)
	}
	r.mu.Unlock()
}

// look closes the connections with frames that come too slowly. The sweep calls it.
func (r *partials) look(now time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range r.live {
		if p.looks++; p.overdue(now) {
			r.slow++
			r.end(p, "connection closed: a frame does not become whole")
		}
	}
}

// figures returns the bytes that are held, and how many connections were closed for want of room, and for slowness.
func (r *partials) figures() (held int, full, slow uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.used, r.full, r.slow
}

// broken counts and logs why a connection is closed that its peer did not close.
func (t *Transport) broken(c *InConn, err error) {
	if full := (*PartialError)(nil); errors.As(err, &full) {
		t.faults.warn("no room for partial frames", "peer", c.from.id, "lane", c.lane, "error", err)
		return
	}
	t.fault("protocol", &t.count.faultsProtocol, "peer", c.from.id, "lane", c.lane, "error", err)
}

// claim takes n bytes more for the part of a frame that c has received.
func (c *InConn) claim(n int) error {
	return c.t.partials.claim(c, c.t.cfg.Share(c.from.id), c.t.cfg.Now(), n)
}
