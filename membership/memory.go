// Memory: what a node writes down of its cluster, when, and at its end; which joiners a leader lets in only then
// (JOIN-1).

package membership

import (
	"slices"
	"time"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/peer"
)

const (
	recordSoon  = 50 * time.Millisecond // the least time between two writes
	recordEvery = time.Second           // that between two of which the second brings no new name
)

// recordPatience is how long a leader waits for its own record before it lets members in that the record does not name:
// a disk that does not answer must not keep newcomers out for ever.
const recordPatience = 5 * time.Second

// Memory decides when a node writes which Record. The keeper of the records steps it: it notes views, writes what is
// due, reports how that went, and passes the machine a RecordedCommand. A record with a name that is not written yet is
// due at once, any other change a second after the last write. All times are of one clock.
type Memory struct {
	role   string
	kept   Record // as it is written
	wanted Record
	at     time.Duration // when a change that can wait is due
	soon   time.Duration // when one that cannot is due
}

// NewMemory returns the memory of a node that has kept a record, or the zero one; for the role see Record.Next.
func NewMemory(kept Record, role string) *Memory {
	return &Memory{role: role, kept: kept, wanted: kept}
}

// Kept returns the record that was written last.
func (k *Memory) Kept() Record { return k.kept }

// Wanted returns the record of the views that were noted.
func (k *Memory) Wanted() Record { return k.wanted }

// Note takes a view.
func (k *Memory) Note(v *cluster.View) { k.wanted = k.wanted.Next(v, k.role) }

// Due reports whether there is a change to write, and from when on: Wanted is the record, Wrote ends the matter.
func (k *Memory) Due() (at time.Duration, ok bool) {
	if k.wanted.Equal(k.kept) {
		return 0, false
	}
	if k.wanted.ClusterID != k.kept.ClusterID {
		return k.soon, true
	}
	fresh := func(a peer.Addr) bool { return !k.kept.Mentions(a) }
	if slices.ContainsFunc(k.wanted.Others, fresh) || slices.ContainsFunc(k.wanted.Bystanders, fresh) {
		return k.soon, true
	}
	return k.at, true
}

// Wrote notes that r was written at now, or that this failed: then it is tried again a second later.
func (k *Memory) Wrote(now time.Duration, r Record, ok bool) {
	k.at, k.soon = now+recordEvery, now+recordEvery
	if ok {
		k.kept, k.soon = r, now+recordSoon
	}
}

// After returns the record of a node after its membership ended as kind: what its next incarnation at the address is
// given. yielded is Ended.Record, nil except after EndDuplicate; last is its last view, nil if it had none; for the
// role see Next. Highest never falls, however it ends: a cluster that is formed here later, maybe when the clock has
// gone back, issues fences above all that were issued.
func (r Record) After(kind EndKind, yielded *Record, last *cluster.View, role string) Record {
	next := r
	switch {
	case yielded != nil:
		next = *yielded
	case kind == EndRejoin:
		next = Record{ClusterID: r.ClusterID, Birth: r.Birth}
	case kind == EndLeft && last != nil:
		next = r.Left(last, role)
	case (kind == EndDowned || kind == EndRemoved) && last != nil:
		next = r.went(last, role)
	}
	next.Highest = max(next.Highest, r.Highest)
	return next
}

// RecordedCommand says that a record is written so that it outlives the process. With Config.Records a leader gives
// up-numbers only to members that the latest such record names. So the next process at the leader's address knows every
// member that is Up, and asks it before it forms a second cluster.
type RecordedCommand struct{ Record Record }

func (RecordedCommand) command() {}

// named reports whether the record of this node names all that wait to be let in, or they have waited for long enough.
func (l *leading) named() bool {
	if !l.cfg.Records || l.recorded.More > 0 || len(l.recorded.Bystanders) >= MaxRemembered {
		return true // with more than a record holds no cluster is formed from it
	}
	for i := range l.st.Members {
		mb := &l.st.Members[i]
		switch {
		case mb.Status.Numbered() >= 0 || mb.ID.Addr == l.self.Addr:
		case l.recorded.ClusterID == l.st.Cluster && l.recorded.Mentions(mb.ID.Addr):
		case l.unnamed == 0:
			l.unnamed = l.now + recordPatience
			return false
		default:
			return l.now >= l.unnamed
		}
	}
	l.unnamed = 0
	return true
}

// onRecorded takes note that a record is written: members that waited for it may be let in.
func (l *leading) onRecorded(r Record) {
	l.recorded = r
	l.dirty = l.dirty || l.phase == member && l.unnamed != 0
}
