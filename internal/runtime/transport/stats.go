// Stats: what the transport counts, gathered from its loops and links on demand.

package transport

import (
	"slices"
	"sort"
	"sync/atomic"

	"github.com/kith-io/kith/internal/core/hello"
	"github.com/kith-io/kith/internal/runtime/loop"
	"github.com/kith-io/kith/internal/runtime/trust"
	"github.com/kith-io/kith/stats"
	"github.com/kith-io/kith/wire"
)

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
	tlsRefused     [trust.TLSReasons]atomic.Uint64
	tlsFailed      [trust.TLSReasons]atomic.Uint64
	tlsRenewed     atomic.Uint64
	tlsPutOff      atomic.Uint64
	refused        [hello.RefusalCount]atomic.Uint64
}

// Stats gathers a snapshot.
func (t *Transport) Stats() stats.Transport {
	s := stats.Transport{
		ControlFull: t.count.controlFull.Load(), MailLost: t.count.mailLost.Load(), MailTooNew: t.count.tooNew.Load(),
		LostBytes: t.count.lost.Load(), Silences: t.count.silences.Load(), Replaced: t.count.replaced.Load(),
		Dropped: map[string]uint64{}, DialsFailed: t.count.dialsFailed.Load(),
		FaultsHello: t.count.faultsHello.Load(), FaultsFrames: t.count.faultsProtocol.Load(),
		OverLimit: t.count.tooMany.Load(), TooManyEach: t.count.tooManyEach.Load(), OverRate: t.count.tooOften.Load(),
		PutOut: t.count.putOut.Load(), SaidNothing: t.count.saidNothing.Load(), Withdrawn: t.count.withdrawn.Load(),
		Refused:    map[string]uint64{},
		TLSRefused: byTLSReason(&t.count.tlsRefused), TLSRenewed: t.count.tlsRenewed.Load(),
		TLSPutOff: t.count.tlsPutOff.Load(),
		TLSFailed: byTLSReason(&t.count.tlsFailed),
	}
	if t.trust != nil {
		s.TLSReloads, s.TLSReloadsBad = t.trust.Figures()
		c := t.trust.State()
		s.CertificateExpiry, s.TLSRevoked, s.TLSStaleCRLs = c.Ends(), c.Revoked(), c.Overdue(t.trust.Now())
		s.Credentials = stats.Credentials{Serial: c.Serial(), Fingerprint: c.Fingerprint(),
			Authorities: slices.Clone(c.Authorities())}
	}
	for r := range t.count.refused {
		if n := t.count.refused[r].Load(); n > 0 {
			s.Refused[hello.Refusal(r).String()] = n
		}
	}
	for why, name := range dropNames {
		if n := t.count.dropped[why].Load(); n > 0 {
			s.DroppedBytes += n
			s.Dropped[name] = n
		}
	}
	s.Control = laneStats(&t.count, wire.LaneControl, t.ctl)
	if len(t.loops) > 0 {
		s.Data = laneStats(&t.count, wire.LaneData, t.loops...)
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
			addUnreached(&s, &l.uplink)
			l.mu.Unlock()
		}
		if c := r.ctl.Load(); c != nil {
			c.mu.Lock()
			s.Queued += uint64(c.queue.size())
			addUnreached(&s, &c.uplink)
			c.mu.Unlock()
		}
	}
	sort.Slice(s.Links, func(i, k int) bool { return s.Links[i].Peer.Compare(s.Links[k].Peer) < 0 })
	return s
}

func byTLSReason(counts *[trust.TLSReasons]atomic.Uint64) map[string]uint64 {
	by := map[string]uint64{}
	for r := range counts {
		if n := counts[r].Load(); n > 0 {
			by[trust.TLSReason(r).String()] = n
		}
	}
	return by
}

// addUnreached counts an uplink that does not get through; its lock is held.
func addUnreached(s *stats.Transport, u *uplink) {
	if u.unreached > 0 && u.dead == nil {
		s.FailedDials++
	}
	if u.silence.on {
		s.Silent++
	}
}

func laneStats(n *counters, lane wire.Lane, loops ...*loop.Loop) stats.Lane {
	s := stats.Lane{In: n.in[lane].Load(), Out: n.out[lane].Load()}
	for _, l := range loops {
		n := l.Stats()
		s.BytesIn += n.BytesIn
		s.BytesOut += n.BytesOut
		s.Frames += n.Frames
		s.Batches += n.Batches
		s.Reads += n.Reads
		s.Writes += n.Writes
		s.Wakes += n.Wakes
		s.CoalescingWaits += n.CoalescingWaits
		s.Polls += n.Polls
		s.EmptyPolls += n.EmptyPolls
		s.PollerWaits += n.PollerWaits
		s.Stalls += n.Stalls
	}
	return s
}
