// Join, the member's side: answer probes, hand joins to the leader, admit, welcome, refuse with a reason (JOIN-1,
// MEM-1).

package membership

import (
	"fmt"
	"slices"
	"time"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

const (
	forwardFor    = 500 * time.Millisecond // how long the leader has to act on a join handed to it
	maxForwards   = 256                    // joins handed on at a time; further ones are admitted at once
	challengeFor  = 10 * time.Second       // how long a challenge may be answered
	maxChallenges = 64

	leastLostJoiners = 16 // joining members that nobody hears, before newcomers are refused
)

// forward is a join handed to the leader; this node admits the joiner itself when nothing came of it by due.
type forward struct {
	join joinBody
	due  time.Duration
}

// challenge is what a joiner must repeat before it displaces another incarnation at its address. Only a process that
// lives now can: a join that was delayed on its way cannot displace its own successor.
type challenge struct {
	id    peer.ID
	value uint64
	until time.Duration
}

func (m *Machine) onProbe(from peer.ID, body []byte) error {
	nonce, err := readProbe(body)
	if err != nil {
		return err
	}
	if m.phase == member {
		// One that is about to go keeps silent: "no cluster here" might let a first seed form a second one.
		if m.st.Status(m.self) != cluster.Exiting && !m.st.Orphaned() {
			m.sendProbeAck(from, nonce, 0)
		}
		return nil
	}
	m.join.probers = slices.DeleteFunc(m.join.probers, func(p prober) bool { return p.id.Addr == from.Addr })
	if len(m.join.probers) < maxProbers {
		m.join.probers = append(m.join.probers, prober{from, nonce})
	}
	if m.join.remembers() && m.phase == probing {
		m.formAnswer(from, nonce, 0)
		return nil
	}
	m.post(from, wire.KindJoinProbeNak, func(b []byte) []byte {
		return wire.AppendU64(wire.AppendU64(b, from.Inc), nonce)
	})
	return nil
}

func (m *Machine) sendProbeAck(to peer.ID, nonce, challenge uint64) {
	a := probeAckBody{to.Inc, nonce, m.st.Cluster, m.st.Birth, challenge, m.cfg.Settings}
	m.post(to, wire.KindJoinProbeAck, func(b []byte) []byte { return appendProbeAck(b, a) })
}

// onJoin admits a joiner. Asking again is harmless: a member is welcomed again. A new incarnation at the address of a
// member downs that one and is admitted beside it. Members hand joins of others on, so the sender may be a member
// instead of the joiner.
func (m *Machine) onJoin(from peer.ID, body []byte) error {
	j, err := readJoin(body)
	if err != nil || m.phase != member || m.st.Orphaned() {
		return err
	}
	if j.id != from && !m.st.Has(from) {
		return nil
	}
	if m.refuse(from, &j) {
		return nil
	}
	if m.st.Has(j.id) {
		m.welcome(j.id, j.nonce)
		return nil
	}
	if old := m.st.At(j.id.Addr); !old.IsZero() && !m.proven(&j) {
		return nil
	}
	leader := m.st.Leader(m.self)
	if j.id != from || j.challenge != 0 || leader == m.self || leader.IsZero() || len(m.forwards) >= maxForwards {
		m.admit(from, &j)
		return nil
	}
	if !slices.ContainsFunc(m.forwards, func(f forward) bool { return f.join.id == j.id }) {
		m.forwards = append(m.forwards, forward{j, m.now + forwardFor})
		if !m.timers[timerForward].on {
			m.in(timerForward, forwardFor)
		}
		m.post(leader, wire.KindJoin, func(b []byte) []byte { return append(b, body...) })
	}
	return nil
}

// lostJoiners returns how many members are joining, or weakly up, and unreachable, and how many of them keep further
// newcomers out: a join is one frame, and whoever sends many and never comes alive fills the table, and the decisions
// of a resolver, with members that were never there.
func (m *Machine) lostJoiners() (lost, most int) {
	up := 0
	for i := range m.st.Members {
		switch o := &m.st.Members[i]; o.Status {
		case cluster.Up:
			up++
		case cluster.Joining, cluster.WeaklyUp:
			if m.st.Unreachable.Has(o.ID) {
				lost++
			}
		}
	}
	return lost, max(up, leastLostJoiners)
}

// refuses returns why j cannot be admitted here, zero when it can.
func (m *Machine) refuses(j *joinBody) (refusal, string) {
	st := m.st.Status(j.id)
	switch own := m.st.Status(m.self); {
	case j.id.Addr == m.self.Addr:
		return refuseTwin, fmt.Sprintf("the address %s is in use by the member asked", m.self.Addr)
	case own == cluster.Exiting || own == cluster.Down:
		return refuseBusy, fmt.Sprintf("the member asked is %s", own)
	case m.rejoin:
		return refuseBusy, "the member asked is about to join another cluster"
	case st == cluster.Removed && cluster.Preparing(m.st.Members):
		return refuseStop, "the cluster prepares for a full shutdown"
	case st == cluster.Down:
		return refuseDown, fmt.Sprintf("incarnation %s is down and never comes back", j.id)
	case st == cluster.Removed && len(m.st.Members) >= cluster.MaxMembers:
		return refuseFull, fmt.Sprintf("the cluster has its greatest size, %d members", cluster.MaxMembers)
	}
	if t, dead := m.st.Tomb(j.id); dead {
		return refuseRemoved, fmt.Sprintf("incarnation %s was removed when %s and never comes back", j.id, t.Last)
	}
	if lost, most := m.lostJoiners(); st == cluster.Removed && lost >= most {
		return refuseBusy, fmt.Sprintf("%d members are joining that nobody hears", lost)
	}
	if text := differs(m.cfg.Settings, j.settings); st == cluster.Removed && m.disagree(text) {
		return refuseSetting, text
	}
	return 0, ""
}

// proven reports whether the joiner repeated a challenge of this node; if not it is challenged.
func (m *Machine) proven(j *joinBody) bool {
	m.proofs = slices.DeleteFunc(m.proofs, func(c challenge) bool { return c.until <= m.now })
	i := slices.IndexFunc(m.proofs, func(c challenge) bool { return c.id == j.id })
	if i >= 0 && m.proofs[i].value == j.challenge {
		m.proofs = slices.DeleteFunc(m.proofs, func(c challenge) bool { return c.id.Addr == j.id.Addr })
		return true
	}
	if i < 0 {
		if len(m.proofs) >= maxChallenges {
			m.proofs = slices.Delete(m.proofs, 0, 1)
		}
		i = len(m.proofs)
		m.proofs = append(m.proofs, challenge{j.id, m.nonce(), m.now + challengeFor})
	}
	m.sendProbeAck(j.id, j.nonce, m.proofs[i].value)
	return false
}

// admitForwarded admits those whom the leader did not.
func (m *Machine) admitForwarded() {
	waiting := m.forwards[:0]
	var due []joinBody
	for _, f := range m.forwards {
		switch {
		case m.st.Has(f.join.id):
		case f.due > m.now:
			waiting = append(waiting, f)
		default:
			due = append(due, f.join)
		}
	}
	m.forwards = waiting
	if m.st.Orphaned() {
		due = nil
	}
	for i := range due {
		if code, _ := m.refuses(&due[i]); code == 0 && m.st.At(due[i].id.Addr).IsZero() {
			m.admit(due[i].id, &due[i])
		}
	}
	if len(waiting) > 0 {
		m.timers[timerForward] = timer{waiting[0].due, true}
	}
}
