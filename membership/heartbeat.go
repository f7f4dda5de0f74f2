// Heartbeats: probes to the ring neighbours, answers to the detector, verdicts to the reachability table (FD-1 to
// FD-3).

package membership

import (
	"time"

	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// maxStepAge is the age of a node's last control step above which its answer is no sign of life: its loop is stuck,
// even though its connection still answers.
const maxStepAge = 5 * time.Second

func (m *Machine) heartbeat() {
	m.in(timerHeartbeat, m.cfg.HeartbeatInterval)
	m.probes++
	h := wire.Heartbeat{Seq: m.probes, Sent: uint64(m.now)}
	m.targets = m.monitor.Targets(m.targets[:0])
	for _, to := range m.targets {
		m.post(to, wire.KindHeartbeat, func(b []byte) []byte { return wire.AppendHeartbeat(b, h) })
	}
	m.monitor.Sent(m.now)
}

// onHeartbeat needs no answer, the connection gave it. A removed incarnation that still probes is told.
func (m *Machine) onHeartbeat(from peer.ID, body []byte) error {
	_, err := wire.ParseHeartbeat(body)
	if err == nil && m.phase == member {
		m.tellRemoved(from)
	}
	return err
}

func (m *Machine) onHeartbeatAck(arrived time.Duration, from peer.ID, body []byte) error {
	a, err := wire.ParseHeartbeatAck(body)
	if err != nil || m.phase != member {
		return err
	}
	if a.StepAge > uint64(maxStepAge) {
		m.stats.LateAnswers++
		return nil
	}
	m.monitor.Heard(from, arrived)
	return nil
}

// reap writes this node's verdicts into its row, all in one change: members that went silent, and its own accusations
// whose subject answers again. Whom it does not watch it does not accuse.
func (m *Machine) reap() {
	m.in(timerReaper, m.cfg.ReaperInterval)
	reach := m.st.reach
	for i := range m.st.members {
		id := m.st.members[i].ID
		if id == m.self {
			continue
		}
		reach = reach.with(m.self, id, !m.monitor.Available(id, m.now))
	}
	if reach.versionOf(m.self) != m.st.reach.versionOf(m.self) {
		d := m.st.draft()
		d.reach = reach
		m.install(d.commit(m.self), true)
	}
}
