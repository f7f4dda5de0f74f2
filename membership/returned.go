// Returned: a removed incarnation that comes back after its tombstone was forgotten (MEM-1).
//
// Tombstones are kept for a time. A side that was cut off for longer, and heard its own members meanwhile, is not
// isolated: it meets a cluster that removed it and remembers nothing of that. Up-numbers tell. Leaders give them in
// rising order, each in a state that every member in office has seen. So a state that knows of number n once had every
// bearer of n or a lower number as a member. A bearer that is no longer a member there was removed, and stays so.

package membership

import (
	"fmt"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/internal/core/members"
	"github.com/kith-io/kith/peer"
)

// isolated ends a node that has heard no member for half the retention, before it looks at anything else: it might
// outlive its own tombstone. What lies in its sockets is as old as its sleep. The same goes for a joiner from its first
// join on, which may have made it a member though nobody could tell it.
func (b *beliefs) isolated() bool {
	if b.phase == probing || b.phase == pending {
		return b.outlasts()
	}
	if b.phase != member {
		return false
	}
	if len(b.st.Members) == 1 {
		b.contact = b.now // nobody could have removed it
	}
	silent := b.now - b.contact
	if silent <= b.cfg.TombstoneRetention/2 {
		return false
	}
	b.end(EndIsolated, b.self, fmt.Sprintf("no contact to any member for %v", silent))
	return true
}

// outlasts ends a joiner that asked long ago: the members that let it in may soon have forgotten its removal. A refusal
// since then proves nothing: others than the refuser may have let it in.
func (b *beliefs) outlasts() bool {
	ago := b.now - b.joining.askedAt
	if !b.joining.forming.asked || ago <= b.cfg.TombstoneRetention/2 {
		return false
	}
	reason := fmt.Sprintf("asked to be let in %v ago: this incarnation may have been let in and removed since", ago)
	if b.joining.refused != "" {
		reason += "; last refused: " + b.joining.refused
	}
	b.end(EndIsolated, b.self, reason)
	return true
}

// returned deals with a received state that has members that this one has removed and forgotten: they get their
// tombstones again, as a change of this node, so that all remember; and with a state in which this node itself is
// removed and forgotten: it ends, unless its side has done the same with the sender and is the larger one. It reports
// whether the state is done with.
func (b *beliefs) returned(from peer.ID, remote *members.State) bool {
	own := &b.st.Members[b.st.Index(b.self)]
	if _, told := remote.Tomb(b.self); !told && remote.Covers(own) {
		i := remote.Index(from)
		mutual := i >= 0 && b.st.Covers(&remote.Members[i])
		if mutual {
			b.split(from)
		}
		if !mutual || !b.st.Outlives(remote.UpCount(), remote.LowestUp()) {
			b.end(EndRemoved, from, fmt.Sprintf("%s holds a state in which %s was removed and forgotten", from, b.self))
			return true
		}
	}
	if remote.SameMembers(b.st) {
		return false
	}
	var d *members.State
	missing := b.st.Missing(remote.Version)
	for _, joiners := range [...]bool{false, true} {
		for _, i := range missing {
			mb := &remote.Members[i]
			gone := b.st.Covers(mb)
			if joiners { // one without a number was joining among the removed, and goes with them
				gone = d != nil && mb.UpNumber == 0
			}
			if _, dead := b.st.Tomb(mb.ID); dead || !gone {
				continue
			}
			if d == nil {
				d = b.st.Draft()
			}
			if len(d.Tombs) >= cluster.MaxTombstones {
				return true // no room to remember it: the whole state is left alone
			}
			d.Entomb(members.Tombstone{ID: mb.ID, Last: cluster.Down, Cause: mb.Cause, By: mb.By})
			b.stats.Returned++
		}
	}
	if d != nil {
		b.install(d.Commit(b.self), true)
	}
	return b.tellRemoved(from)
}
