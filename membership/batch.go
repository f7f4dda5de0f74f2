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

// applicant is a join that may be admitted, the contact that handed it on, and the member at its address when that was
// found.
type applicant struct {
	join         joinBody
	contact, old peer.ID
}

// admit makes the joiner a joining member: at once, or together with others when this node admitted another just now.
func (a *admission) admit(contact peer.ID, j *joinBody) {
	joiner := applicant{*j, contact, a.st.At(j.id.Addr)}
	if i := slices.IndexFunc(a.waiting, func(o applicant) bool { return o.join.id == j.id }); i >= 0 {
		a.waiting[i] = joiner
	} else {
		a.waiting = append(a.waiting, joiner)
	}
	if a.now >= a.admitAt || len(a.waiting) > maxWaiting {
		a.admitAll()
		return
	}
	a.timers[timerAdmit] = timer{a.admitAt, true}
}

// admitAll admits all waiting joiners, in one change with the downing of what was at their addresses, and welcomes them
// into it. A joiner that has to be refused by now gets the refusal; it leaves others to ask again: the second of two at
// one address, or one at an address that another node has taken.
func (a *admission) admitAll() {
	a.stop(timerAdmit)
	waiting := a.waiting
	a.waiting = nil
	d := a.st.Draft()
	admitted := waiting[:0]
	for i := range waiting {
		j := &waiting[i].join
		switch {
		case a.st.Has(j.id):
			a.welcome(j.id, j.nonce)
		case a.refuse(waiting[i].contact, j):
		case len(d.Members) >= cluster.MaxMembers: // refused when it asks again
		case a.st.At(j.id.Addr) != waiting[i].old,
			slices.ContainsFunc(admitted, func(o applicant) bool { return o.join.id.Addr == j.id.Addr }):
		default:
			for k := range d.Members {
				if o := d.Members[k].ID; o.Addr == j.id.Addr {
					d.SetDown(o, j.id, cluster.CauseReplaced)
				}
			}
			if j.dead != 0 {
				d.ProveDead(peer.ID{Addr: j.id.Addr, Inc: j.dead}, j.id)
			}
			d.Add(cluster.Member{ID: j.id, Status: cluster.Joining, Roles: j.roles, AppVersion: j.version})
			admitted = append(admitted, waiting[i])
		}
	}
	if len(admitted) == 0 {
		return
	}
	a.admitAt = a.now + admitEvery
	a.install(d.Commit(a.self), true)
	for i := range admitted {
		a.welcome(admitted[i].join.id, admitted[i].join.nonce)
	}
}

// refuse sends a joiner why it is refused, and reports whether it is. It notifies the contact too, which must not admit
// the joiner either.
func (a *admission) refuse(contact peer.ID, j *joinBody) bool {
	code, reason := a.refuses(j)
	if code == 0 {
		return false
	}
	a.stats.JoinsRefused++
	f := refusedBody{j.id.Inc, j.nonce, code, reason}
	a.post(j.id, wire.KindJoinRefused, func(b []byte) []byte { return appendRefused(b, f) })
	if contact != j.id {
		a.post(contact, wire.KindJoinRefused, func(b []byte) []byte { return appendRefused(b, f) })
	}
	return true
}

func (a *admission) welcome(to peer.ID, nonce uint64) { a.sendState(to, wire.KindWelcome, nonce) }
