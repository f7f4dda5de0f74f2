// Heartbeats: probes to the ring neighbours, their answers and the probes of others to the detectors, verdicts to the
// reachability table (FD-1 to FD-3, FD-5).

package membership

import (
	"slices"
	"time"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/fd"
	"github.com/kith-io/kith/gossip"
	"github.com/kith-io/kith/internal/core/members"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

const (
	// maxStepAge is the age of a node's last control step above which its answer is no sign of life: its loop is stuck,
	// even though its connection still answers.
	maxStepAge = 5 * time.Second
	// verdictBatch is how long a verdict waits for others, so that peers that fell silent together are one change.
	verdictBatch = 20 * time.Millisecond
	// lastProbe is the sequence number of the last probe to a peer. Others count from one.
	lastProbe = 0
	// secondProbe is set in the sequence number of a probe beside those of the ring: its receiver must not expect more of
	// them. It goes by address alone, so that any node at the address takes it, or to a member that is only listened to.
	secondProbe = 1 << 63
)

// watch is the failure detection of a machine: which members it probes, which it hears, and what it says of them.
type watch struct {
	*core
	beliefs *beliefs

	monitor *fd.Monitor
	probes  uint64         // how many rounds of probes it has sent
	ringFor gossip.Digest  // the version that the monitor knows of
	people  members.Roster // of the version before
	targets []peer.ID
	judged  []fd.Verdict
	whys    []whyQuarantined
}

// newMonitor makes the monitor that cfg asks for; cfg has its defaults.
func newMonitor(self peer.ID, cfg Config) *fd.Monitor {
	return fd.NewMonitor(self, cfg.detectors(), cfg.Detector, cfg.HeartbeatExpectedAfter, cfg.MonitoredBy)
}

// heartbeat probes every target, and sends former targets their last probe. A target that is late with its answer is
// probed by its address alone as well, which goes over another connection: a packet that is lost again and again holds
// up one connection for longer than the detector bears. A member that is only listened to is probed once.
func (w *watch) heartbeat() {
	w.in(timerHeartbeat, w.cfg.HeartbeatInterval)
	w.probes++
	w.targets = w.monitor.Targets(w.targets[:0])
	w.beat(w.probes)
	w.monitor.Sent(w.now)
	w.targets = w.monitor.Doubted(w.now, w.targets[:0])
	w.stats.SecondProbes += uint64(len(w.targets))
	for i := range w.targets {
		w.targets[i].Inc = 0
	}
	w.beat(w.probes | secondProbe)
	w.targets = w.monitor.Asked(w.targets[:0])
	w.beat(w.probes | secondProbe)
	w.targets = w.monitor.LeaveNotices(w.targets[:0])
	w.beat(lastProbe)
}

func (w *watch) beat(seq uint64) {
	h := wire.Heartbeat{Seq: seq, Sent: uint64(w.now)}
	for _, to := range w.targets {
		w.post(to, wire.KindHeartbeat, func(b []byte) []byte { return wire.AppendHeartbeat(b, h) })
	}
}

// onHeartbeat needs no answer, the connection gave it. That it came says that the way from its sender is open. A
// removed incarnation that still probes is notified.
func (w *watch) onHeartbeat(arrived time.Duration, from peer.ID, body []byte) error {
	h, err := wire.ParseHeartbeat(body)
	if err != nil || w.phase != member || w.beliefs.tellRemoved(from) {
		return err
	}
	switch {
	case h.Seq == lastProbe:
		w.monitor.Parted(from, arrived)
	case h.Seq&secondProbe != 0:
		w.monitor.Sign(from, arrived)
	default:
		w.monitor.Probed(from, arrived)
	}
	return nil
}

func (w *watch) onHeartbeatAck(arrived time.Duration, from peer.ID, body []byte) error {
	a, err := wire.ParseHeartbeatAck(body)
	if err != nil || w.phase != member {
		return err
	}
	w.beliefs.answers(from)
	if a.StepAge > uint64(maxStepAge) {
		w.stats.LateAnswers++
		return nil
	}
	if a.Seq == lastProbe {
		w.monitor.Noticed(from)
	}
	w.monitor.Heard(from, arrived)
	if w.monitor.Undecided() {
		w.judge()
	}
	return nil
}

// linkLost takes evidence that a peer's process is gone. Only members that probe the peer weigh it: they are enough,
// and a change by all that had a connection would be a storm. What it weighs is decided when its hold is over. When
// links to several were lost together the others are probed at once: their answers show which side is at fault.
func (w *watch) linkLost(c LinkLostCommand) {
	if w.phase == member && c.ID != w.self && w.st.Has(c.ID) {
		w.stats.LinksLost++
		w.monitor.Lost(c.ID, w.now, c.Replaced)
		w.targets = w.monitor.Others(w.now, w.targets[:0])
		w.beat(w.probes | secondProbe)
	}
}

// noticePause looks, at the beginning of a verb, for a time in which this node should have stepped and did not: more
// than half a heartbeat interval beyond its least deadline. Its peers may have spoken and it did not listen, so that
// time is taken out of their silence: a node that stood still accuses nobody before it has listened for as long as it
// takes to call a peer silent.
func (w *watch) noticePause(now time.Duration) {
	if w.phase != member {
		return
	}
	due := now
	for _, t := range w.timers {
		if t.on {
			due = min(due, t.at)
		}
	}
	if late := now - max(due, w.now); late > w.cfg.HeartbeatInterval/2 {
		w.stats.LateSteps++
		w.stats.LateTime += late
		w.monitor.Forgive(now, late)
	}
}

// followRing updates the monitor when the state is another one: which members are neighbours, and whether a second
// observer now agrees about a lost link.
func (w *watch) followRing() {
	if w.ringFor == w.st.Digest {
		return
	}
	w.ringFor = w.st.Digest
	members, ring, zones := w.st.Everybody(&w.people)
	others := w.st.Reach.Accusers(w.self)
	absent := fd.Absent{Unreachable: w.st.Unreachable, Down: w.st.Down()}
	if across := ring.Across(zones, w.self, absent, w.cfg.MonitoredBy); len(across) > 0 {
		for _, id := range across {
			others.Add(id)
		}
	}
	w.monitor.SetRing(w.now, members, ring, absent, others)
	if w.monitor.Undecided() {
		w.judge()
	}
}

// nextVerdict returns when the silence of some peer becomes a verdict.
func (w *watch) nextVerdict() (at time.Duration, ok bool) {
	at, ok = w.monitor.NextVerdict()
	return at + verdictBatch, ok
}

// reap looks at all verdicts once in a while: those that withdraw an accusation have no deadline.
func (w *watch) reap() {
	w.in(timerReaper, w.cfg.ReaperInterval)
	w.judge()
}

// judge writes this node's verdicts into its row, all in one change: members that went silent, and its own accusations
// of members that are heard again. It accuses only members that it watches.
func (w *watch) judge() {
	w.judged = w.monitor.Judge(w.now, w.seconded, w.judged[:0])
	reach := w.st.Reach
	for _, id := range reach.AccusedBy(w.self) {
		if _, watched := w.verdictOn(id); !watched {
			reach = reach.With(w.self, id, false)
		}
	}
	for _, v := range w.judged {
		if st := w.st.Status(v.ID); st == cluster.Removed || st == cluster.Down && !v.Available && w.st.Replaced(v.ID) {
			continue // a successor at its address removes it: no need to say that it is gone
		}
		reach = reach.With(w.self, v.ID, !v.Available)
	}
	if reach.VersionOf(w.self) != w.st.Reach.VersionOf(w.self) {
		d := w.st.Draft()
		d.Reach = reach
		w.install(d.Commit(w.self), true)
	}
}

func (w *watch) verdictOn(id peer.ID) (fd.Verdict, bool) {
	i, ok := slices.BinarySearchFunc(w.judged, id, func(v fd.Verdict, id peer.ID) int { return v.ID.Compare(id) })
	if !ok {
		return fd.Verdict{}, false
	}
	return w.judged[i], true
}

// seconded reports whether another observer that counts accuses id.
func (w *watch) seconded(id peer.ID) bool {
	return w.st.AccusedByAnother(id, w.self)
}
