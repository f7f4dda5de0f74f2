// Heartbeats: probes to the ring neighbours, their answers and the probes of others to the detectors, verdicts to the
// reachability table (FD-1 to FD-3, FD-5).

package membership

import (
	"slices"
	"time"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/fd"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

const (
	// maxStepAge is the age of a node's last control step above which its answer is no sign of life: its loop is stuck,
	// even though its connection still answers.
	maxStepAge = 5 * time.Second
	// verdictBatch is how long a verdict waits for others, so that peers that fell silent together are one change.
	verdictBatch = 20 * time.Millisecond
	// lastProbe is the sequence number of a probe after which no more will come. Others count from one.
	lastProbe = 0
	// secondProbe is set in the sequence number of a probe by address alone. Whoever runs there takes it: when that is the
	// successor of the one it is meant for, it must not expect more of them.
	secondProbe = 1 << 63
)

// newMonitor makes the monitor that cfg asks for; cfg has its defaults.
func newMonitor(self peer.ID, cfg Config) *fd.Monitor {
	return fd.NewMonitor(self, cfg.detectors(), cfg.Detector, cfg.HeartbeatExpectedAfter, cfg.MonitoredBy)
}

// heartbeat probes every target, and tells those who were one that no more will come. A target that is late with its
// answer is probed by its address alone as well, which goes over another connection: a packet that is lost again and
// again holds up one connection for longer than the detector bears.
func (m *Machine) heartbeat() {
	m.in(timerHeartbeat, m.cfg.HeartbeatInterval)
	m.probes++
	m.targets = m.monitor.Targets(m.targets[:0])
	m.beat(m.probes)
	m.monitor.Sent(m.now)
	m.targets = m.monitor.Doubted(m.now, m.targets[:0])
	m.stats.SecondProbes += uint64(len(m.targets))
	for i := range m.targets {
		m.targets[i].Inc = 0
	}
	m.beat(m.probes | secondProbe)
	m.targets = m.monitor.Farewells(m.targets[:0])
	m.beat(lastProbe)
}

func (m *Machine) beat(seq uint64) {
	h := wire.Heartbeat{Seq: seq, Sent: uint64(m.now)}
	for _, to := range m.targets {
		m.post(to, wire.KindHeartbeat, func(b []byte) []byte { return wire.AppendHeartbeat(b, h) })
	}
}

// onHeartbeat needs no answer, the connection gave it. That it came says that the way from its sender is open. A
// removed incarnation that still probes is told.
func (m *Machine) onHeartbeat(arrived time.Duration, from peer.ID, body []byte) error {
	h, err := wire.ParseHeartbeat(body)
	if err != nil || m.phase != member || m.tellRemoved(from) {
		return err
	}
	switch {
	case h.Seq == lastProbe:
		m.monitor.Parted(from, arrived)
	case h.Seq&secondProbe != 0:
		m.monitor.Sign(from, arrived)
	default:
		m.monitor.Probed(from, arrived)
	}
	return nil
}

func (m *Machine) onHeartbeatAck(arrived time.Duration, from peer.ID, body []byte) error {
	a, err := wire.ParseHeartbeatAck(body)
	if err != nil || m.phase != member {
		return err
	}
	m.answers(from)
	if a.StepAge > uint64(maxStepAge) {
		m.stats.LateAnswers++
		return nil
	}
	m.monitor.Heard(from, arrived)
	return nil
}

// linkLost takes evidence that a peer's process is gone. Only those who probe the peer weigh it: they are enough, and a
// change by everybody who had a connection would be a storm. What it weighs is decided when its hold is over.
func (m *Machine) linkLost(c LinkLostCommand) {
	if m.phase == member && c.ID != m.self && m.st.Has(c.ID) {
		m.stats.LinksLost++
		m.monitor.Lost(c.ID, m.now, c.Replaced)
	}
}

// noticePause looks, at the beginning of a verb, for a time in which this node should have stepped and did not: more
// than half a heartbeat interval beyond its least deadline. Its peers may have spoken and it did not listen, so that
// time is taken out of their silence: a node that stood still accuses nobody before it has listened for as long as it
// takes to call a peer silent.
func (m *Machine) noticePause(now time.Duration) {
	if m.phase != member {
		return
	}
	due := now
	for _, t := range m.timers {
		if t.on {
			due = min(due, t.at)
		}
	}
	if late := now - max(due, m.now); late > m.cfg.HeartbeatInterval/2 {
		m.stats.LateSteps++
		m.stats.LateTime += late
		m.monitor.Forgive(now, late)
	}
}

// followRing tells the monitor when the state is another one: who is a neighbour, and whether a second observer now
// agrees about a lost link.
func (m *Machine) followRing() {
	if m.ringFor == m.st.Digest {
		return
	}
	m.ringFor = m.st.Digest
	members, ring := m.st.Everybody(&m.people)
	m.monitor.SetRing(m.now, members, ring, m.st.Unreachable, m.st.Reach.Accusers(m.self))
	if m.monitor.Undecided() {
		m.judge()
	}
}

// nextVerdict returns when the silence of some peer becomes a verdict.
func (m *Machine) nextVerdict() (at time.Duration, ok bool) {
	at, ok = m.monitor.NextVerdict()
	return at + verdictBatch, ok
}

// reap looks at all verdicts once in a while: those that withdraw an accusation have no deadline.
func (m *Machine) reap() {
	m.in(timerReaper, m.cfg.ReaperInterval)
	m.judge()
}

// judge writes this node's verdicts into its row, all in one change: members that went silent, and its own accusations
// whose subject is heard again. Whom it does not watch it does not accuse.
func (m *Machine) judge() {
	m.judged = m.monitor.Judge(m.now, m.seconded, m.judged[:0])
	reach := m.st.Reach
	for _, id := range reach.AccusedBy(m.self) {
		if _, watched := m.verdictOn(id); !watched {
			reach = reach.With(m.self, id, false)
		}
	}
	for _, v := range m.judged {
		if st := m.st.Status(v.ID); st == cluster.Removed || st == cluster.Down && !v.Available && m.st.Replaced(v.ID) {
			continue // a successor at its address removes it: no need to say that it is gone
		}
		reach = reach.With(m.self, v.ID, !v.Available)
	}
	if reach.VersionOf(m.self) != m.st.Reach.VersionOf(m.self) {
		d := m.st.Draft()
		d.Reach = reach
		m.install(d.Commit(m.self), true)
	}
}

func (m *Machine) verdictOn(id peer.ID) (fd.Verdict, bool) {
	i, ok := slices.BinarySearchFunc(m.judged, id, func(v fd.Verdict, id peer.ID) int { return v.ID.Compare(id) })
	if !ok {
		return fd.Verdict{}, false
	}
	return m.judged[i], true
}

// seconded reports whether another observer that counts accuses id.
func (m *Machine) seconded(id peer.ID) bool {
	return m.st.AccusedByAnother(id, m.self)
}
