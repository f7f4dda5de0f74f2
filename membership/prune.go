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
	"time"

	"github.com/kith-io/kith/gossip"
	"github.com/kith-io/kith/internal/members"
	"github.com/kith-io/kith/peer"
)

// entryAge is since when this node has known an entry of the clock as it is.
type entryAge struct {
	entry gossip.Entry
	since time.Duration
}

// refreshEntryAges brings the ages in line with the clock of a new state; only with the option.
func (m *Machine) refreshEntryAges() {
	if m.cfg.ClockEntries <= 0 {
		return
	}
	old := m.entryAges
	next := make([]entryAge, 0, len(m.st.Clock))
	for _, e := range m.st.Clock {
		for len(old) > 0 && old[0].entry.ID.Less(e.ID) {
			old = old[1:]
		}
		a := entryAge{e, m.now}
		if len(old) > 0 && old[0].entry == e {
			a = old[0]
		}
		next = append(next, a)
	}
	m.entryAges = next
}

// pruneClock returns the version without the entries that are the oldest and too many, nil when there are none or not
// every member has seen the present one.
func (m *Machine) pruneClock() *members.State {
	many := len(m.st.Clock) - m.cfg.ClockEntries
	if m.cfg.ClockEntries <= 0 || many <= 0 || !m.st.Seen.Full() {
		return nil
	}
	var old []entryAge
	for _, a := range m.entryAges {
		if a.entry.ID != m.self && m.now-a.since >= m.cfg.ClockEntryAge {
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
	return m.st.PruneEntries(gone, m.self)
}
