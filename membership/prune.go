// Prune: the leader takes entries that have not changed for long out of a clock that is too long, an option (GOS-2).
//
// It does so only when every member has seen the version, as a change of its own that names the version which it
// pruned. Whoever holds that version, or held it lately, drops the same entries before it compares, so the pruned
// version is newer for it; for anybody else the two are concurrent and the entries come back, which costs bytes and
// nothing else. A clock without an entry only says less than is true: whoever has the leader's entry for the pruning
// has all that was pruned. A node whose entry was pruned counts on from its own count.

package membership

import (
	"cmp"
	"slices"

	"github.com/kith-io/kith/internal/members"
	"github.com/kith-io/kith/peer"
)

// pruneClock returns the version without the entries that are the oldest and too many, nil when there are none or not
// every member has seen the present one.
func (l *leading) pruneClock() *members.State {
	many := len(l.st.Clock) - l.cfg.ClockEntries
	if l.cfg.ClockEntries <= 0 || many <= 0 || !l.st.Seen.Full() {
		return nil
	}
	var old []entryAge
	for _, a := range l.ages.entries {
		if a.entry.ID != l.self && l.now-a.since >= l.cfg.ClockEntryAge {
			old = append(old, a)
		}
	}
	slices.SortStableFunc(old, func(a, b entryAge) int { return cmp.Compare(a.since, b.since) })
	var gone peer.Set
	for _, a := range old[:min(many, len(old))] {
		gone.Add(a.entry.ID)
	}
	if len(gone) == 0 {
		return nil
	}
	return l.st.PruneEntries(gone, l.self)
}
