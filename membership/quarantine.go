// Quarantine: a member with a state that can no longer be trusted is unreachable for good (FD-4).

package membership

import (
	"fmt"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/peer"
)

// maxWhy bounds the reason of a quarantine, in bytes.
const maxWhy = 256

// QuarantineCommand says that this node has given up on a member: what it had to know was never acknowledged, so the
// two no longer hold the same state. The member becomes unreachable for all, and stays so until it or this node is
// removed, whatever is heard of it; whether it is downed is decided as for any unreachable member. When this node would
// thereby have quarantined more than half of all others, the fault is likelier its own: nothing is recorded, and
// SelfSuspected tells. Alike others that are about to be given up as well count as if they were under quarantine
// already. Reason is for people, cut at 256 bytes; only this node knows it.
type QuarantineCommand struct {
	ID     peer.ID
	Reason string
	Alike  int
}

func (QuarantineCommand) command() {}

// whyQuarantined keeps a reason until its event is reported.
type whyQuarantined struct {
	id     peer.ID
	reason string
}

// quarantine carries out a QuarantineCommand.
func (w *watch) quarantine(c QuarantineCommand) error {
	if w.phase != member {
		return ErrNotMember
	}
	i := w.st.Index(c.ID)
	if i < 0 || c.ID == w.self {
		return fmt.Errorf("%w: %s", ErrUnknownMember, c.ID)
	}
	if w.st.Reach.Quarantines(w.self, c.ID) {
		return nil
	}
	reason := c.Reason[:min(len(c.Reason), maxWhy)]
	if mine, others := w.quarantined(); (mine+1+max(c.Alike, 0))*2 > others {
		w.stats.SelfSuspected++
		w.tell(Event{Kind: SelfSuspected, Member: w.st.Members[i], Previous: w.st.Members[i].Status, By: w.self, Why: reason})
		return nil
	}
	w.whys = append(w.whys, whyQuarantined{c.ID, reason})
	d := w.st.Draft()
	d.Reach = d.Reach.Quarantine(w.self, c.ID)
	w.install(d.Commit(w.self), true)
	return nil
}

// quarantined counts the members that this node holds under quarantine, and all members but itself; Down ones are over
// already.
func (w *watch) quarantined() (mine, others int) {
	for i := range w.st.Members {
		o := &w.st.Members[i]
		if o.ID == w.self || o.Status == cluster.Down {
			continue
		}
		others++
		if w.st.Reach.Quarantines(w.self, o.ID) {
			mine++
		}
	}
	return mine, others
}

// quarantineEvents appends an event for each member that is under quarantine and was not, by the first observer that
// says so.
func quarantineEvents(events []Event, old, next *cluster.View) []Event {
	if sameSlice(old.Accusations, next.Accusations) {
		return events
	}
	now := next.Quarantined()
	if len(now) == 0 {
		return events
	}
	was := old.Quarantined()
	for _, id := range now {
		if m, ok := next.Member(id); ok && !was.Has(id) && id != next.Self {
			events = append(events, Event{Kind: MemberQuarantined, Member: m, Previous: m.Status, By: next.QuarantinedBy(id)})
		}
	}
	return events
}
