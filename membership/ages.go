// Ages: since when this node has known the tombstones and the clock entries of its state, on its own clock.

package membership

import (
	"slices"
	"time"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/gossip"
	"github.com/kith-io/kith/internal/core/members"
	"github.com/kith-io/kith/peer"
)

// ages follows the tombstones of the state, and with Config.ClockEntries the entries of its clock.
type ages struct {
	tombs   []age
	entries []entryAge
}

// age is when this node first met a tombstone, on its own clock. Wall clocks of leaders are not compared.
type age struct {
	id    peer.ID
	since time.Duration
}

// entryAge is since when this node has known an entry of the clock as it is.
type entryAge struct {
	entry gossip.Entry
	since time.Duration
}

// followTombs brings the ages in line with the tombstones of a new state.
func (a *ages) followTombs(tombs []members.Tombstone, now time.Duration) {
	old := a.tombs
	if len(tombs) == 0 && len(old) == 0 {
		return
	}
	if slices.EqualFunc(old, tombs, func(o age, t members.Tombstone) bool { return o.id == t.ID }) {
		return
	}
	next := make([]age, 0, len(tombs))
	for _, t := range tombs {
		for len(old) > 0 && old[0].id.Less(t.ID) {
			old = old[1:]
		}
		n := age{t.ID, now}
		if len(old) > 0 && old[0].id == t.ID {
			n = old[0]
		}
		next = append(next, n)
	}
	a.tombs = next
}

// followClock brings the ages in line with the clock of a new state.
func (a *ages) followClock(clock gossip.Clock, now time.Duration) {
	old := a.entries
	next := make([]entryAge, 0, len(clock))
	for _, e := range clock {
		for len(old) > 0 && old[0].entry.ID.Less(e.ID) {
			old = old[1:]
		}
		n := entryAge{e, now}
		if len(old) > 0 && old[0].entry == e {
			n = old[0]
		}
		next = append(next, n)
	}
	a.entries = next
}

// of returns for how long the tombstone of id has been known, 0 without one.
func (a *ages) of(id peer.ID, now time.Duration) time.Duration {
	i, ok := slices.BinarySearchFunc(a.tombs, id, func(o age, id peer.ID) int { return o.id.Compare(id) })
	if !ok {
		return 0
	}
	return now - a.tombs[i].since
}

// expiry returns which tombstones may be forgotten at now: those older than limit, unless they are to be kept, and the
// oldest of a table that is fuller than half its bound, so that two halves can still unite.
func (a *ages) expiry(limit, now time.Duration, keep func(peer.ID) bool) func(peer.ID) bool {
	room := now // so old that there is no room for it
	if n := len(a.tombs) - cluster.MaxTombstones/2; n > 0 {
		since := make([]time.Duration, 0, len(a.tombs))
		for _, o := range a.tombs {
			since = append(since, o.since)
		}
		slices.Sort(since)
		room = now - since[n]
	}
	return func(id peer.ID) bool {
		age := a.of(id, now)
		return age > room || age > limit && !keep(id)
	}
}
