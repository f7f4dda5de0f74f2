// Stats: what the transport counts, gathered from its loops and links on demand.

package transport

import (
	"slices"
	"sync/atomic"
	"time"
)

// loopStats are written by one loop only (wakes: by whoever rings it).
type loopStats struct {
	_                                                                       [64]byte
	bytesIn, bytesOut, frames, batches, reads, writes, wakes, rests, stalls atomic.Uint64
	polls, pollsVain, parks                                                 atomic.Uint64
	_                                                                       [64]byte
}

func (s *loopStats) read(n int) {
	s.bytesIn.Add(uint64(n))
	s.reads.Add(1)
}

func (s *loopStats) wrote(n int) {
	s.bytesOut.Add(uint64(n))
	s.writes.Add(1)
}

// counters are for events that are rare.
type counters struct {
	in, out        [2]atomic.Int64 // by lane
	dialsFailed    atomic.Uint64
	controlFull    atomic.Uint64
	mailLost       atomic.Uint64
	tooNew         atomic.Uint64
	lost           atomic.Uint64
	silences       atomic.Uint64
	replaced       atomic.Uint64
	dropped        [dropWhys]atomic.Uint64
	faultsProtocol atomic.Uint64
	faultsHello    atomic.Uint64
	tooMany        atomic.Uint64
	putOut         atomic.Uint64
	saidNothing    atomic.Uint64
	withdrawn      atomic.Uint64
	tooManyEach    atomic.Uint64
	tooOften       atomic.Uint64
	tlsRefused     [tlsReasons]atomic.Uint64
	tlsFailed      [tlsReasons]atomic.Uint64
	tlsRenewed     atomic.Uint64
	tlsPutOff      atomic.Uint64
	refused        [refusalCount]atomic.Uint64
}

// LaneStats counts one lane.
type LaneStats struct {
	In, Out           int64  // connections accepted and dialled that stand now
	BytesIn, BytesOut uint64 // after the hello
	Frames, Batches   uint64 // delivered up, and the calls or passes they came in
	Reads, Writes     uint64 // system calls' worth of socket reads and of flushes
	Wakes             uint64 // times a sleeping loop was woken
	Rests             uint64 // times a loop slept so that more frames could gather before it wrote
	Polls, PollsVain  uint64 // times a loop polled before it slept (Config.PollFor), and of them until the time was over
	Parks             uint64 // times the control loop waited in Go's poller
	Stalls            uint64 // writes that a socket did not take whole: the rest waited in a goroutine of its own
}

// Stats is a snapshot of the transport's counters.
type Stats struct {
	Control, Data LaneStats
	Bulk          BulkStats
	Peers         int
	Pending       int               // connections that have not said hello yet
	Queued        uint64            // bytes queued on links and control connections
	BufferBytes   uint64            // memory of the buffers of all links, of Config.LinkBudget
	BuffersFull   uint64            // buffers that were not to be had because that budget was used up
	PartialBytes  int               // held of frames that are not whole, of Config.PartialBudget
	PartialsFull  uint64            // connections closed because that, or their peer's half of it, was used up
	PartialsSlow  uint64            // connections closed because a frame did not become whole in time
	ControlFull   uint64            // mail refused because its queue was full
	MailLost      uint64            // bytes of mail dropped because the peer could not be dialled
	MailTooNew    uint64            // mail not sent because its peer speaks an older wire version
	LostBytes     uint64            // bytes of data sent and not consumed when their connection broke
	DroppedBytes  uint64            // bytes of data never sent
	Dropped       map[string]uint64 // the same by reason: the peer was removed, refused us, or this node closed
	DialsFailed   uint64            // attempts to connect that failed or were refused
	Silent        int               // connections on which nothing that was sent is acknowledged now
	Silences      uint64            // times that this began
	Replaced      uint64            // silent connections that were given up for a new one
	Unreached     int               // connections wanted now whose attempts fail: each is logged, then every 30 s
	FaultsHello   uint64            // connections closed for a missing, broken or late hello
	FaultsFrames  uint64            // connections closed for breaking the protocol afterwards
	TooMany       uint64            // connections closed because too many had not said hello
	TooManyEach   uint64            // the same, because too many of them came from one address
	PutOut        uint64            // of both: those whose place a later one took; the others were closed at once
	SaidNothing   uint64            // connections closed because not a byte came in FirstByteTimeout
	Withdrawn     uint64            // connections that whoever opened them ended before a byte: no fault
	TooOften      uint64            // connections closed because one address opened too many in a short time
	TLSRefused    map[string]uint64 // accepted connections given up for TLS, by TLSReason; only those that occurred
	TLSFailed     map[string]uint64 // dialled connections given up for TLS, by TLSReason
	TLSEnds       time.Time         // when this node's own certificate ends; zero without TLS
	TLSReloads    uint64            // times that the credentials were loaded, the start included
	TLSRenewed    uint64            // connections that were made anew, in order, under newer credentials
	TLSPutOff     uint64            // renewals that failed: the connection stays as it is, and is tried again
	TLSReloadsBad uint64            // times that they could not be: the old ones stay
	TLSRevoked    int               // certificates on the revocation lists of now
	TLSStaleCRLs  int               // lists of now that were due to be replaced: they hold, and nobody new is on them
	Refused       map[string]uint64 // hellos refused, by reason; only those that occurred
	Links         []PeerStats       // by peer
}

// Stats gathers a snapshot.
func (t *Transport) Stats() Stats {
	s := Stats{
		ControlFull: t.count.controlFull.Load(), MailLost: t.count.mailLost.Load(), MailTooNew: t.count.tooNew.Load(),
		LostBytes: t.count.lost.Load(), Silences: t.count.silences.Load(), Replaced: t.count.replaced.Load(),
		Dropped: map[string]uint64{}, DialsFailed: t.count.dialsFailed.Load(),
		FaultsHello: t.count.faultsHello.Load(), FaultsFrames: t.count.faultsProtocol.Load(),
		TooMany: t.count.tooMany.Load(), TooManyEach: t.count.tooManyEach.Load(), TooOften: t.count.tooOften.Load(),
		PutOut: t.count.putOut.Load(), SaidNothing: t.count.saidNothing.Load(), Withdrawn: t.count.withdrawn.Load(),
		Refused:    map[string]uint64{},
		TLSRefused: byTLSReason(&t.count.tlsRefused), TLSRenewed: t.count.tlsRenewed.Load(),
		TLSPutOff: t.count.tlsPutOff.Load(),
		TLSFailed: byTLSReason(&t.count.tlsFailed),
	}
	if t.trust != nil {
		s.TLSReloads, s.TLSReloadsBad = t.trust.reloads.Load(), t.trust.failures.Load()
		c := t.trust.current.Load()
		s.TLSEnds, s.TLSRevoked = c.ends, c.revoked.known()
		s.TLSStaleCRLs, _ = c.revoked.stale(t.trust.now())
	}
	for r := range t.count.refused {
		if n := t.count.refused[r].Load(); n > 0 {
			s.Refused[Refusal(r).String()] = n
		}
	}
	for why, name := range dropNames {
		if n := t.count.dropped[why].Load(); n > 0 {
			s.DroppedBytes += n
			s.Dropped[name] = n
		}
	}
	s.Control = laneStats(&t.count, int(t.ctl.lane), t.ctl)
	if len(t.loops) > 0 {
		s.Data = laneStats(&t.count, int(t.loops[0].lane), t.loops...)
	}
	s.PartialBytes, s.PartialsFull, s.PartialsSlow = t.partials.figures()
	out, refused := t.buffers.figures()
	s.BufferBytes, s.BuffersFull = uint64(out), refused
	remotes, pending := t.snapshot(nil)
	s.Peers, s.Pending = len(remotes), pending
	s.Bulk = t.bulkStats(remotes)
	for _, r := range remotes {
		s.Links = append(s.Links, r.peerStats(t.dataFrom(nil, r.id)))
		for _, l := range r.made() {
			l.mu.Lock()
			s.Queued += uint64(l.queue.Pending())
			s.unreached(&l.uplink)
			l.mu.Unlock()
		}
		if c := r.ctl.Load(); c != nil {
			c.mu.Lock()
			s.Queued += uint64(c.queue.Len())
			s.unreached(&c.uplink)
			c.mu.Unlock()
		}
	}
	slices.SortFunc(s.Links, func(a, b PeerStats) int { return a.Peer.Compare(b.Peer) })
	return s
}

func byTLSReason(counts *[tlsReasons]atomic.Uint64) map[string]uint64 {
	by := map[string]uint64{}
	for r := range counts {
		if n := counts[r].Load(); n > 0 {
			by[TLSReason(r).String()] = n
		}
	}
	return by
}

// unreached counts an uplink, whose lock is held, that does not get through.
func (s *Stats) unreached(u *uplink) {
	if u.unreached > 0 && u.dead == nil {
		s.Unreached++
	}
	if u.silence.on {
		s.Silent++
	}
}

func laneStats(n *counters, lane int, loops ...*Loop) LaneStats {
	s := LaneStats{In: n.in[lane].Load(), Out: n.out[lane].Load()}
	for _, l := range loops {
		s.BytesIn += l.stats.bytesIn.Load()
		s.BytesOut += l.stats.bytesOut.Load()
		s.Frames += l.stats.frames.Load()
		s.Batches += l.stats.batches.Load()
		s.Reads += l.stats.reads.Load()
		s.Writes += l.stats.writes.Load()
		s.Wakes += l.stats.wakes.Load()
		s.Rests += l.stats.rests.Load()
		s.Polls += l.stats.polls.Load()
		s.PollsVain += l.stats.pollsVain.Load()
		s.Parks += l.stats.parks.Load()
		s.Stalls += l.stats.stalls.Load()
	}
	return s
}
