// Removed: former members that a node still talks to for a moment.

package plane

import (
	"slices"
	"time"

	"github.com/kith-io/kith/peer"
)

// ForgetAfter is how long a removed member is still talked to, so that it hears of its end.
const ForgetAfter = 2 * time.Second

// Removed holds members that were removed and are not forgotten yet, oldest first. There are no more of them than
// members that come and go within ForgetAfter. The zero value is empty.
type Removed struct{ list []removedPeer }

type removedPeer struct {
	id   peer.ID
	at   time.Duration
	lost bool
}

// Add notes a member that was removed, and whether it was lost: it did not leave in order. One that is here already is
// forgotten ForgetAfter this time.
func (r *Removed) Add(now time.Duration, id peer.ID, lost bool) {
	r.list = slices.DeleteFunc(r.list, func(o removedPeer) bool { return o.id == id })
	r.list = append(r.list, removedPeer{id, now + ForgetAfter, lost})
}

// Lost hands over a member that was lost, even before its time. A node that ends calls it until there is none: what
// it holds for the lost was lost with them, and is not abandoned with this node.
func (r *Removed) Lost() (id peer.ID, ok bool) {
	i := slices.IndexFunc(r.list, func(o removedPeer) bool { return o.lost })
	if i < 0 {
		return peer.ID{}, false
	}
	id = r.list[i].id
	r.list = slices.Delete(r.list, i, i+1)
	return id, true
}

// Has reports whether a member was removed a moment ago.
func (r *Removed) Has(id peer.ID) bool {
	return slices.ContainsFunc(r.list, func(o removedPeer) bool { return o.id == id })
}

// Due hands over a member that is to be forgotten now. Call it until there is none.
func (r *Removed) Due(now time.Duration) (id peer.ID, ok bool) {
	if at, some := r.Next(); !some || now < at {
		return peer.ID{}, false
	}
	id = r.list[0].id
	r.list = r.list[1:]
	return id, true
}

// Next returns when Due has one.
func (r *Removed) Next() (deadline time.Duration, ok bool) {
	if len(r.list) == 0 {
		return 0, false
	}
	return r.list[0].at, true
}
