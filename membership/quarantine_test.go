// Tests of quarantine: final, seen by all, never a downing by itself, and not believed of most members (FD-4).

package membership

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/cluster"
)

func eventOf(events []Event, kind EventKind) (Event, bool) {
	i := slices.IndexFunc(events, func(e Event) bool { return e.Kind == kind })
	if i < 0 {
		return Event{}, false
	}
	return events[i], true
}

// Scenario 24, quarantine: node 3 quarantines node 2, all see it, the member stays Up whatever is heard of it; downed,
// it is removed and the table is empty.
func TestScenario24Quarantine(t *testing.T) {
	w := newWorld(t, 24)
	all := w.cluster(5)
	two := all[1].id
	w.do(all[2], QuarantineCommand{ID: two, Reason: "nothing was acknowledged"})
	w.until(2*time.Second, "known to all", func() bool {
		for _, a := range all {
			if !a.view.Quarantined().Has(two) {
				return false
			}
		}
		return true
	})
	for i, a := range all {
		e, ok := eventOf(a.events, MemberQuarantined)
		require.Equal(t, i != 1, ok, "nothing is said of oneself")
		if ok {
			require.Equal(t, two, e.Member.ID)
			require.Equal(t, all[2].id, e.By)
			require.Equal(t, i == 2, strings.HasSuffix(e.Reason(), ": nothing was acknowledged"), e.Reason())
		}
	}
	w.run(2 * time.Minute)
	for _, a := range all {
		m, ok := a.view.Member(two)
		require.True(t, ok && m.Status == cluster.Up, "it is alive and heard, and is not downed by this")
		require.True(t, a.view.Quarantined().Has(two))
		require.Equal(t, a != all[1], a.view.Unreachable.Has(two))
		require.Equal(t, []cluster.Accusation{{Observer: all[2].id, Subject: two, Quarantined: true}}, a.view.Accusations)
	}
	seq := all[2].view.Seq
	w.do(all[2], QuarantineCommand{ID: two, Reason: "again"})
	require.Equal(t, seq, all[2].view.Seq, "once is enough")

	w.do(all[0], DownCommand{ID: two})
	w.until(20*time.Second, "removed", func() bool {
		return !slices.ContainsFunc(w.alive(), func(a *actor) bool { return len(a.view.Members) != 4 })
	})
	for _, a := range w.alive() {
		require.Empty(t, a.view.Accusations)
	}
}

// An observer that gave up on more than half of the others takes the fault for its own: it says so and records nothing.
// Of two nodes neither can quarantine the other.
func TestSelfSuspected(t *testing.T) {
	for _, c := range []struct{ nodes, allowed int }{{2, 0}, {3, 1}, {4, 1}, {5, 2}, {6, 2}} {
		w := newWorld(t, uint64(c.nodes))
		all := w.cluster(c.nodes)
		before := all[0].m.st.Digest
		for i := 1; i < c.nodes; i++ {
			w.do(all[0], QuarantineCommand{ID: all[i].id, Reason: "silence"})
			require.Len(t, all[0].view.Quarantined(), min(i, c.allowed), "%d nodes", c.nodes)
		}
		e, ok := eventOf(all[0].events, SelfSuspected)
		require.True(t, ok)
		require.Equal(t, all[c.allowed+1].id, e.Member.ID)
		require.Contains(t, e.Reason(), "silence")
		require.Equal(t, uint64(c.nodes-1-c.allowed), all[0].m.Stats().SelfSuspected)
		require.Equal(t, c.allowed == 0, before == all[0].m.st.Digest)
	}
}

// A member that is about to be given up as well counts already, so that not even the first of too many is quarantined.
func TestSelfSuspectedAtTheFirst(t *testing.T) {
	for alike, want := range []int{1, 1, 0, 0} {
		w := newWorld(t, 5)
		all := w.cluster(5)
		w.do(all[0], QuarantineCommand{ID: all[1].id, Reason: "silence", Alike: alike})
		require.Len(t, all[0].view.Quarantined(), want, "%d alike", alike)
		_, indicted := eventOf(all[0].events, SelfSuspected)
		require.Equal(t, want == 0, indicted)
	}
}

func TestQuarantineErrors(t *testing.T) {
	w := newWorld(t, 1)
	stranger := newWorld(t, 1).start(1)
	require.ErrorIs(t, stranger.m.Do(0, QuarantineCommand{ID: ip(2)}), ErrNotMember)
	all := w.cluster(3)
	now := w.now - all[0].epoch
	require.ErrorIs(t, all[0].m.Do(now, QuarantineCommand{ID: all[0].id}), ErrUnknownMember)
	require.ErrorIs(t, all[0].m.Do(now, QuarantineCommand{ID: ip(99)}), ErrUnknownMember)
	require.NoError(t, all[0].m.Do(now, QuarantineCommand{ID: all[1].id, Reason: strings.Repeat("x", 1000)}))
	var out Effects
	all[0].m.Drain(&out)
	e, ok := eventOf(out.Events, MemberQuarantined)
	require.True(t, ok)
	require.Len(t, e.Why, maxWhy)
}
