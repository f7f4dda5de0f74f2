// Statistics of each peer: what its links queue, have in flight, write and wait for, and its round trip.

package transport

import (
	"errors"
	"slices"
	"time"

	"github.com/kith-io/kith/internal/flow"
	"github.com/kith-io/kith/peer"
)

// PeerStats is a snapshot of the connections with one peer. Counts begin when the peer was first dealt with, and go
// when it is forgotten; the sums in Stats stay.
type PeerStats struct {
	Peer    peer.ID // incarnation zero: whoever is at the address, a contact point
	Version uint16  // of the wire protocol on the control connection to it; zero before the first
	Control ControlStats
	Data    []LinkStats // the data connections that this node writes, by number
	In      []InStats   // those of the peer that this node reads, by number
}

// ControlStats is a snapshot of the control connection that this node writes to a peer.
type ControlStats struct {
	Up        bool
	Connects  uint64 // times it came to stand: all but the first are reconnects
	Writes    uint64 // system calls of the loop to write
	Parked    Waits  // the socket was full, and a goroutine waited with the rest of a batch
	Silent    Waits  // nothing that was sent was acknowledged by the peer's system
	Queued    int    // bytes that wait to be written
	RoundTrip RoundTrip
}

// RoundTrip is how long heartbeat probes took to be answered by the peer's control loop, from the step that sent them.
type RoundTrip struct {
	Count          uint64
	Last, Min, Max time.Duration
	Mean           time.Duration // of all
}

// LinkStats is a snapshot of one data connection that this node writes to a peer. Over broken connections it goes on.
type LinkStats struct {
	Number     uint16
	Up         bool
	Generation uint32 // of the newest connection
	Connects   uint64 // times it came to stand: all but the first are reconnects

	Queued   int   // bytes that wait to be written
	InFlight int64 // bytes written and not consumed by the peer yet, as far as it has told; at most window and a frame
	Held     int   // bytes of memory that its buffers take

	Sent       uint64                   // bytes written
	Batches    uint64                   // they were written in
	BatchSizes [flow.SizeClasses]uint64 // batches of at most 64, 128, 256, ... bytes; the last class has no bound
	Writes     uint64                   // system calls of the loop to write
	Parked     Waits                    // the socket was full, and a goroutine waited with the rest of a batch

	Full       Waits // the buffer was over its bound: Reserve refused, until half of it was free again
	Refused    uint64
	Stalled    Waits  // something waited to be written, and the peer had returned no credit
	Silent     Waits  // nothing that was sent was acknowledged by the peer's system
	Lost       uint64 // bytes in flight when a connection broke
	NeverSent  uint64 // bytes dropped because the peer was removed or refused us, or this node closed
	FailedDial int    // attempts in a row that failed or were refused
}

// Waits counts how often something was waited for, and how long altogether, the present wait included.
type Waits struct {
	Times uint64
	Total time.Duration
	Now   bool // one is under way
}

// InStats is a snapshot of one data connection of a peer that this node reads.
type InStats struct {
	Number     uint16
	Generation uint32
	Received   uint64 // bytes of whole frames
	Open       uint64 // of them, not consumed yet: in mailboxes and queues of this node
}

// stopwatch is the making of Waits. It belongs to whoever holds its link's lock.
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

func (w *stopwatch) read(now time.Duration) Waits {
	s := Waits{Times: w.times, Total: w.total, Now: w.on}
	if w.on {
		s.Total += max(now-w.since, 0)
	}
	return s
}

// longestTrip bounds a round trip that is believed: what is longer was echoed wrongly.
const longestTrip = time.Hour

// trips is the making of a RoundTrip. It belongs to whoever holds its uplink's lock.
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

func (r *trips) read() RoundTrip {
	s := RoundTrip{Count: r.count, Last: r.last, Min: r.least, Max: r.most}
	if r.count > 0 {
		s.Mean = r.sum / time.Duration(r.count)
	}
	return s
}

// peerStats gathers what concerns one peer. in are its accepted data connections.
func (r *remote) peerStats(in []*InConn) PeerStats {
	s := PeerStats{Peer: r.id}
	if c := r.ctl.Load(); c != nil {
		c.mu.Lock()
		s.Version = c.version
		s.Control = ControlStats{Up: c.conn != nil, Connects: c.connects, Writes: c.writes.Load(), Queued: c.queue.Len(),
			Parked: c.fullSocket.read(r.t.cfg.Now()), Silent: c.silentFor.read(r.t.cfg.Now()), RoundTrip: c.trips.read()}
		c.mu.Unlock()
	}
	for _, l := range r.made() {
		s.Data = append(s.Data, l.stats())
	}
	for _, c := range in {
		s.In = append(s.In, c.stats())
	}
	slices.SortFunc(s.In, func(a, b InStats) int { return int(a.Number) - int(b.Number) })
	return s
}

func (l *Link) stats() LinkStats {
	now := l.t.cfg.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	q := l.queue.Stats()
	return LinkStats{
		Number: l.number, Up: l.conn != nil, Generation: l.queue.Generation(), Connects: l.connects,
		Queued: l.queue.Pending(), InFlight: l.queue.Outstanding(), Held: l.queue.Held(),
		Sent: q.Sent, Batches: q.Takes, BatchSizes: q.Sizes, Writes: l.writes.Load(),
		Parked: l.fullSocket.read(now),
		Full:   l.fullFor.read(now), Refused: q.Refused, Stalled: l.stalledFor.read(now), Lost: q.Lost,
		Silent:    l.silentFor.read(now),
		NeverSent: l.neverSent, FailedDial: l.unreached,
	}
}

func (c *InConn) stats() InStats {
	c.mu.Lock()
	defer c.mu.Unlock()
	return InStats{Number: c.number, Generation: c.generation, Received: c.received, Open: c.received - c.meter.Total()}
}

// dropWhy numbers the reasons why data was never sent.
type dropWhy int

const (
	dropRemoved dropWhy = iota
	dropRefused
	dropClosed
	dropWhys
)

var dropNames = [dropWhys]string{"removed", "refused", "closed"}

// dropReason is why an uplink drops what it holds. Its lock is held.
func (u *uplink) dropReason() dropWhy {
	switch {
	case errors.Is(u.dead, ErrForgotten):
		return dropRemoved
	case u.dead == nil && u.refusal != nil:
		return dropRefused
	}
	return dropClosed
}
