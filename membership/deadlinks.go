// Dead links: pairs of addresses of which one was downed because of the other while the rest heard both. A node that
// comes again behind such a link would be downed again until the link is mended. So its join is put off, each time for
// longer.

package membership

import (
	"fmt"
	"slices"
	"time"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/internal/core/members"
	"github.com/kith-io/kith/peer"
)

const (
	maxDeadLinks   = 64               // pairs that are remembered
	deadLinkFor    = 30 * time.Minute // how long a pair is remembered after the last downing
	sameDowning    = 5 * time.Second  // in which both of a pair may be downed for one decision
	leastPutOff    = 30 * time.Second // after the second downing; doubled with each further one
	mostPutOff     = 5 * time.Minute
	downingsBefore = 2 // from so many on newcomers are put off: the first one may be anybody's mishap
)

// deadLink is one pair, the lower address first.
type deadLink struct {
	low, high peer.Addr
	downings  int
	last      time.Duration // when the last one was learnt
	told      int           // the downings at the last report that a newcomer is put off
}

// deadLinks are the pairs that a machine knows of.
type deadLinks struct{ list []deadLink }

func (d *deadLinks) find(a, b peer.Addr) int {
	if b.Compare(a) < 0 {
		a, b = b, a
	}
	return slices.IndexFunc(d.list, func(l deadLink) bool { return l.low == a && l.high == b })
}

// follow notes the pairs for which the resolver has downed a member between two states. watched is how many others
// watch each member.
func (d *deadLinks) follow(before, after *members.State, watched int, now time.Duration) {
	for i := range after.Members {
		m := &after.Members[i]
		if m.Status != cluster.Down || m.Cause != cluster.CauseResolver {
			continue
		}
		if st := before.Status(m.ID); st == cluster.Down || st == cluster.Removed {
			continue
		}
		for _, o := range before.Members {
			if o.ID != m.ID && (apart(before, o.ID, m.ID, watched) || apart(before, m.ID, o.ID, watched)) {
				d.note(o.ID.Addr, m.ID.Addr, now)
			}
		}
	}
}

// apart reports whether an observer accuses a subject that most of its watchers hear: then the link between the two is
// dead, and the subject is not.
func apart(s *members.State, observer, subject peer.ID, watched int) bool {
	accusers := s.Accusers(subject)
	return accusers.Has(observer) && 2*len(accusers) <= min(watched, len(s.Members)-1)
}

func (d *deadLinks) note(a, b peer.Addr, now time.Duration) {
	d.list = slices.DeleteFunc(d.list, func(l deadLink) bool { return now-l.last >= deadLinkFor })
	i := d.find(a, b)
	if i < 0 {
		if len(d.list) >= maxDeadLinks {
			d.list = slices.Delete(d.list, 0, 1)
		}
		if b.Compare(a) < 0 {
			a, b = b, a
		}
		d.list = append(d.list, deadLink{low: a, high: b, downings: 1, last: now})
		return
	}
	if now-d.list[i].last >= sameDowning {
		d.list[i].downings++
	}
	d.list[i].last = now
}

// heard forgets a pair: what one of the two says has come to the other.
func (d *deadLinks) heard(a, b peer.Addr) {
	if i := d.find(a, b); i >= 0 {
		d.list = slices.Delete(d.list, i, i+1)
	}
}

// putsOff returns the pair because of which a newcomer at an address is put off, while the other end is a member, and
// until when; nil for none.
func (d *deadLinks) putsOff(newcomer peer.Addr, st *members.State, now time.Duration) (*deadLink, time.Duration) {
	for i := range d.list {
		l := &d.list[i]
		other := l.low
		if other == newcomer {
			other = l.high
		} else if l.high != newcomer {
			continue
		}
		until := l.last + min(leastPutOff<<min(max(0, l.downings-downingsBefore), 8), mostPutOff)
		if at := st.At(other); l.downings >= downingsBefore && now < until && !at.IsZero() && st.Status(at) != cluster.Down {
			return l, until
		}
	}
	return nil, 0
}

// putOff returns why a newcomer is put off for a dead link, empty when it is not; it is reported once for each downing.
func (a *admission) putOff(j *joinBody) string {
	l, until := a.dead.putsOff(j.id.Addr, a.st, a.now)
	if l == nil {
		return ""
	}
	text := fmt.Sprintf("%s and %s do not hear each other, others hear both: one of them was downed for it %d times, and "+
		"is let in again in %v", l.low, l.high, l.downings, (until - a.now).Round(time.Second))
	if l.told < l.downings {
		l.told = l.downings
		a.tell(Event{Kind: JoinPutOff, By: j.id, Detail: text})
	}
	return text
}
