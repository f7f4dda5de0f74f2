// Statistics of each peer: what its links queue, have in flight, write and wait for, and its round trip.

package transport

import (
	"errors"
	"sort"
	"time"

	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/stats"
)

// stopwatch gathers stats.Waits. The link's lock guards it.
type stopwatch struct {
	times uint64
	total time.Duration
	since time.Duration
	on    bool
}

func (w *stopwatch) start(now func() time.Duration) {
	if !w.on {
		w.on, w.since = true, now()
		w.times++
	}
}

func (w *stopwatch) stop(now func() time.Duration) {
	if w.on {
		w.on = false
		w.total += max(now()-w.since, 0)
	}
}

func (w *stopwatch) read(now time.Duration) stats.Waits {
	s := stats.Waits{Times: w.times, Total: w.total, Now: w.on}
	if w.on {
		s.Total += max(now-w.since, 0)
	}
	return s
}

// longestTrip bounds a round trip that is believed: what is longer was echoed wrongly.
const longestTrip = time.Hour

// trips gathers a stats.RoundTrip. The uplink's lock guards it.
type trips struct {
	count                  uint64
	last, least, most, sum time.Duration
}

// add takes the answer to a probe that was stamped sent. The stamp comes back from the peer, so it is not believed
// blindly.
func (r *trips) add(sent uint64, now time.Duration) {
	took := now - time.Duration(sent)
	if sent > uint64(now) || took > longestTrip {
		return
	}
	if r.count++; r.count == 1 {
		r.least = took
	}
	r.last, r.least, r.most = took, min(r.least, took), max(r.most, took)
	r.sum += took
}

func (r *trips) read() stats.RoundTrip {
	s := stats.RoundTrip{Count: r.count, Last: r.last, Min: r.least, Max: r.most}
	if r.count > 0 {
		s.Mean = r.sum / time.Duration(r.count)
	}
	return s
}

// peerStats gathers what concerns one peer. in are its accepted data connections.
func (r *remote) peerStats(in []*InConn) stats.Peer {
	s := stats.Peer{Peer: r.id}
	if c := r.ctl.Load(); c != nil {
		c.mu.Lock()
		s.Version = c.version
		s.Control = stats.Control{Up: c.conn != nil, Connects: c.connects, Writes: c.writes.Load(),
			Queued: c.queue.size(), RoundTrip: c.trips.read(),
			Parked: c.fullSocket.read(r.t.cfg.Now()), Silent: c.silentFor.read(r.t.cfg.Now())}
		c.mu.Unlock()
	}
	for _, l := range r.made() {
		s.Data = append(s.Data, l.stats())
	}
	for _, c := range in {
		s.In = append(s.In, c.stats())
	}
	sort.Slice(s.In, func(i, k int) bool { return s.In[i].Number < s.In[k].Number })
	return s
}

func (l *Link) stats() stats.Link {
	now := l.t.cfg.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	q := l.queue.Stats()
	return stats.Link{
		Number: l.number, Up: l.conn != nil, Generation: l.queue.Generation(), Connects: l.connects,
		Queued: l.queue.Pending(), InFlight: l.queue.Outstanding(), Held: l.queue.Held(),
		Sent: q.Sent, Batches: q.Takes, BatchSizes: q.Sizes, Writes: l.writes.Load(),
		Parked: l.fullSocket.read(now),
		Full:   l.fullFor.read(now), Refused: q.Refused, Stalled: l.stalledFor.read(now), Lost: q.Lost,
		Silent:    l.silentFor.read(now),
		NeverSent: l.neverSent, FailedDial: l.unreached,
	}
}

func (c *InConn) stats() stats.Incoming {
	c.mu.Lock()
	defer c.mu.Unlock()
	return stats.Incoming{Number: c.number, Generation: c.generation, Received: c.received,
		Open: c.received - c.meter.Total()}
}

// dropWhy numbers the reasons why data was never sent.
type dropWhy int

const (
	dropRemoved dropWhy = iota
	dropRefused
	dropClosed
	dropGone
	dropWhys
)

var dropNames = [dropWhys]string{"removed", "refused", "closed", "gone"}

// dropReason is why an uplink drops what it holds. Its lock is held.
func (u *uplink) dropReason() dropWhy {
	switch {
	case errors.Is(u.dead, ErrForgotten):
		return dropRemoved
	case u.dead == nil && u.away != 0:
		return dropGone
	case u.dead == nil && u.refusal != nil:
		return dropRefused
	}
	return dropClosed
}

// VersionOf returns the wire version that the last control connection to a peer has chosen, zero before the first.
func VersionOf(t *Transport, id peer.ID) uint16 {
	t.mu.Lock()
	r := t.remotes[id]
	t.mu.Unlock()
	if r == nil {
		return 0
	}
	c := r.ctl.Load()
	if c == nil {
		return 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.version
}
