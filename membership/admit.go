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

// admission is how a member lets others in.
type admission struct {
	*core
	forming *forming
	joining *joining
	leaving *leaving

	forwards []forward
	proofs   []challenge
	waiting  []applicant
	admitAt  time.Duration // earliest next admission
}

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

func (a *admission) onProbe(from peer.ID, body []byte) error {
	nonce, err := readProbe(body)
	if err != nil {
		return err
	}
	if a.phase == member {
		// One that is about to go keeps silent: "no cluster here" might let a first seed form a second one.
		if a.st.Status(a.self) != cluster.Exiting && !a.st.Orphaned() {
			a.sendProbeAck(from, nonce, 0)
		}
		return nil
	}
	a.joining.probers = slices.DeleteFunc(a.joining.probers, func(p prober) bool { return p.id.Addr == from.Addr })
	if len(a.joining.probers) < maxProbers {
		a.joining.probers = append(a.joining.probers, prober{from, nonce})
	}
	if a.forming.remembers() && a.phase == probing {
		a.forming.formAnswer(from, nonce, 0)
		return nil
	}
	a.post(from, wire.KindJoinProbeNak, func(b []byte) []byte {
		return wire.AppendU64(wire.AppendU64(b, from.Inc), nonce)
	})
	return nil
}

func (a *admission) sendProbeAck(to peer.ID, nonce, challenge uint64) {
	ack := probeAckBody{to.Inc, nonce, a.st.Cluster, a.st.Birth, challenge, a.cfg.Settings}
	a.post(to, wire.KindJoinProbeAck, func(b []byte) []byte { return appendProbeAck(b, ack) })
}

// onJoin admits a joiner. Asking again is harmless: a member is welcomed again. A new incarnation at the address of a
// member downs that one and is admitted beside it. Members hand joins of others on, so the sender may be a member
// instead of the joiner.
func (a *admission) onJoin(from peer.ID, body []byte) error {
	j, err := readJoin(body)
	if err != nil || a.phase != member || a.st.Orphaned() {
		return err
	}
	if j.id != from && !a.st.Has(from) {
		return nil
	}
	if from == j.id {
		a.dead.heard(a.self.Addr, j.id.Addr)
	} else {
		a.dead.heard(from.Addr, j.id.Addr) // the contact that hands it on has it from the joiner
	}
	if a.refuse(from, &j) {
		return nil
	}
	if a.st.Has(j.id) {
		a.welcome(j.id, j.nonce)
		return nil
	}
	if !a.believes(&j) {
		j.dead = 0
	}
	if old := a.st.At(j.id.Addr); (!old.IsZero() || j.dead != 0) && !a.proven(&j) {
		return nil
	}
	leader := a.st.Leader(a.self)
	if j.id != from || j.challenge != 0 || leader == a.self || leader.IsZero() || len(a.forwards) >= maxForwards {
		a.admit(from, &j)
		return nil
	}
	if !slices.ContainsFunc(a.forwards, func(f forward) bool { return f.join.id == j.id }) {
		a.forwards = append(a.forwards, forward{j, a.now + forwardFor})
		if !a.timers[timerForward].on {
			a.in(timerForward, forwardFor)
		}
		a.post(leader, wire.KindJoin, func(b []byte) []byte { return append(b, body...) })
	}
	return nil
}

// lostJoiners returns how many members are joining, or weakly up, and unreachable, and how many of them keep further
// newcomers out: a join is one frame. A sender of many joins that never comes alive would fill the table, and the
// decisions of a resolver, with members that were never there.
func (a *admission) lostJoiners() (lost, most int) {
	up := 0
	for i := range a.st.Members {
		switch o := &a.st.Members[i]; o.Status {
		case cluster.Up:
			up++
		case cluster.Joining, cluster.WeaklyUp:
			if a.st.Unreachable.Has(o.ID) {
				lost++
			}
		}
	}
	return lost, max(up, leastLostJoiners)
}

// refuses returns why j cannot be admitted here, zero when it can.
func (a *admission) refuses(j *joinBody) (refusal, string) {
	st := a.st.Status(j.id)
	switch own := a.st.Status(a.self); {
	case j.id.Addr == a.self.Addr:
		return refuseTwin, fmt.Sprintf("the address %s is in use by the member asked", a.self.Addr)
	case own == cluster.Exiting || own == cluster.Down:
		return refuseBusy, fmt.Sprintf("the member asked is %s", own)
	case a.leaving.rejoin:
		return refuseBusy, "the member asked is about to join another cluster"
	case st == cluster.Removed && cluster.Preparing(a.st.Members):
		return refuseStop, "the cluster prepares for a full shutdown"
	case st == cluster.Down:
		return refuseDown, fmt.Sprintf("incarnation %s is down and never comes back", j.id)
	case st == cluster.Removed && len(a.st.Members) >= cluster.MaxMembers:
		return refuseFull, fmt.Sprintf("the cluster has its greatest size, %d members", cluster.MaxMembers)
	}
	if t, dead := a.st.Tomb(j.id); dead {
		return refuseRemoved, fmt.Sprintf("incarnation %s was removed when %s and never comes back", j.id, t.Last)
	}
	if st == cluster.Removed && len(a.st.Parts) > 0 && slices.Contains(a.older, j.id) {
		return refuseSetting, "the cluster has partitions, which the wire version of the joining node does not know"
	}
	if lost, most := a.lostJoiners(); st == cluster.Removed && lost >= most {
		return refuseBusy, fmt.Sprintf("%d members are joining that nobody hears", lost)
	}
	if text := a.putOff(j); text != "" && st == cluster.Removed {
		return refuseBusy, text
	}
	if text := differs(a.cfg.Settings, j.settings); st == cluster.Removed && a.disagree(text) {
		return refuseSetting, text
	}
	return 0, ""
}

// proven reports whether the joiner repeated a challenge of this node; if not it is challenged.
func (a *admission) proven(j *joinBody) bool {
	a.proofs = slices.DeleteFunc(a.proofs, func(c challenge) bool { return c.until <= a.now })
	i := slices.IndexFunc(a.proofs, func(c challenge) bool { return c.id == j.id })
	if i >= 0 && a.proofs[i].value == j.challenge {
		a.proofs = slices.DeleteFunc(a.proofs, func(c challenge) bool { return c.id.Addr == j.id.Addr })
		return true
	}
	if i < 0 {
		if len(a.proofs) >= maxChallenges {
			a.proofs = slices.Delete(a.proofs, 0, 1)
		}
		i = len(a.proofs)
		a.proofs = append(a.proofs, challenge{j.id, a.drawNonce(), a.now + challengeFor})
	}
	a.sendProbeAck(j.id, j.nonce, a.proofs[i].value)
	return false
}

// admitForwarded admits the joiners that the leader did not.
func (a *admission) admitForwarded() {
	waiting := a.forwards[:0]
	var due []joinBody
	for _, f := range a.forwards {
		switch {
		case a.st.Has(f.join.id):
		case f.due > a.now:
			waiting = append(waiting, f)
		default:
			due = append(due, f.join)
		}
	}
	a.forwards = waiting
	if a.st.Orphaned() {
		due = nil
	}
	for i := range due {
		due[i].dead = 0 // nobody has repeated a challenge
		if code, _ := a.refuses(&due[i]); code == 0 && a.st.At(due[i].id.Addr).IsZero() {
			a.admit(due[i].id, &due[i])
		}
	}
	if len(waiting) > 0 {
		a.timers[timerForward] = timer{waiting[0].due, true}
	}
}
