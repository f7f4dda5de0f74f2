// Batch: joins that arrive together become one change, so that a thousand of them are a few versions (JOIN-1, GOS-8).

package membership

import (
	"slices"
	"time"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

const (
	admitEvery = 50 * time.Millisecond // the least time between two admissions of this node
	maxWaiting = 256                   // joins that wait; one more and all are admitted at once
)

// applicant is a join that may be admitted, who handed it on, and who was a member at its address when that was found.
type applicant struct {
	join         joinBody
	contact, old peer.ID
}

// admit makes the joiner a joining member: at once, or together with others when this node admitted somebody just now.
func (m *Machine) admit(contact peer.ID, j *joinBody) {
	a := applicant{*j, contact, m.st.At(j.id.Addr)}
	if i := slices.IndexFunc(m.waiting, func(o applicant) bool { return o.join.id == j.id }); i >= 0 {
		m.waiting[i] = a
	} else {
		m.waiting = append(m.waiting, a)
	}
	if m.now >= m.admitAt || len(m.waiting) > maxWaiting {
		m.admitAll()
		return
	}
	m.timers[timerAdmit] = timer{m.admitAt, true}
}

// admitAll admits all who wait, in one change with the downing of what was at their addresses, and welcomes them into
// it. Of those for whom something has changed meanwhile, who are refused by now are told so, and the others ask again:
// two at one address, or one whose address somebody else has taken.
func (m *Machine) admitAll() {
	m.stop(timerAdmit)
	waiting := m.waiting
	m.waiting = nil
	d := m.st.Draft()
	admitted := waiting[:0]
	for i := range waiting {
		j := &waiting[i].join
		switch {
		case m.st.Has(j.id):
			m.welcome(j.id, j.nonce)
		case m.refuse(waiting[i].contact, j):
		case len(d.Members) >= cluster.MaxMembers: // refused when it asks again
		case m.st.At(j.id.Addr) != waiting[i].old,
			slices.ContainsFunc(admitted, func(o applicant) bool { return o.join.id.Addr == j.id.Addr }):
		default:
			for k := range d.Members {
				if o := d.Members[k].ID; o.Addr == j.id.Addr {
					d.SetDown(o, j.id, cluster.CauseReplaced)
				}
			}
			d.Add(cluster.Member{ID: j.id, Status: cluster.Joining, Roles: j.roles, AppVersion: j.version})
			admitted = append(admitted, waiting[i])
		}
	}
	if len(admitted) == 0 {
		return
	}
	m.admitAt = m.now + admitEvery
	m.install(d.Commit(m.self), true)
	for i := range admitted {
		m.welcome(admitted[i].join.id, admitted[i].join.nonce)
	}
}

// refuse tells a joiner why it is refused, and reports whether it is. The contact that handed it on is told too, for it
// must not admit it either.
func (m *Machine) refuse(contact peer.ID, j *joinBody) bool {
	code, reason := m.refuses(j)
	if code == 0 {
		return false
	}
	m.stats.JoinsRefused++
	f := refusedBody{j.id.Inc, j.nonce, code, reason}
	m.post(j.id, wire.KindJoinRefused, func(b []byte) []byte { return appendRefused(b, f) })
	if contact != j.id {
		m.post(contact, wire.KindJoinRefused, func(b []byte) []byte { return appendRefused(b, f) })
	}
	return true
}

func (m *Machine) welcome(to peer.ID, nonce uint64) { m.sendState(to, wire.KindWelcome, nonce) }
