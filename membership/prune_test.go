// Tests of pruning the clock: by the leader, when all have seen it, without losing or repeating a change (GOS-2).

package membership

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/internal/core/members"
)

// pruned is a machine that is the leader and has just pruned: of the entries of 1, 2 and 3 its own and one are left.
func prunedMachine(t *testing.T) (m *Machine, before *members.State) {
	m = New(ip(1), Config{ClockEntries: 2, ClockEntryAge: time.Minute}, newWorld(t, 1).rng)
	require.NoError(t, m.Do(0, JoinCommand{}))
	mailOf(m)
	for n := 2; n < 4; n++ {
		d := m.st.Draft()
		d.HighestUp++
		d.Add(cluster.Member{ID: ip(n), Status: cluster.Up, UpNumber: d.HighestUp})
		for range n {
			d.Clock = d.Clock.Bump(ip(n))
		}
		m.install(d.Commit(ip(1)), false)
	}
	m.now = 50 * time.Second
	d := m.st.Draft()
	d.Clock = d.Clock.Bump(ip(2))
	m.install(d.Commit(ip(1)), false)
	before = m.st
	m.now = 70 * time.Second
	require.Nil(t, m.leading.pruneClock(), "not all have seen it")
	for i := range m.st.Members {
		m.st.Seen.Add(i)
	}
	next := m.leading.pruneClock()
	require.NotNil(t, next)
	copied := *before
	copied.Seen = before.Seen.Clone()
	m.install(next, false)
	return m, &copied
}

// meets is what becomes of the state of m when it hears of remote.
func meets(m *Machine, remote *members.State) (*members.State, members.Outcome) {
	return m.store.NewerOrMerged(m.st, remote, m.held)
}

// The oldest go, no younger ones, and never the leader's own, which stands for all that was pruned.
func TestPruneClock(t *testing.T) {
	m, before := prunedMachine(t)
	require.Equal(t, []uint64{4, 0}, []uint64{before.Clock.Of(ip(3)) + 1, m.st.Clock.Of(ip(3))})
	require.Equal(t, before.Clock.Of(ip(2)), m.st.Clock.Of(ip(2)), "two are enough")
	require.Equal(t, before.Clock.Of(ip(1))+1, m.st.Clock.Of(ip(1)))
	require.Equal(t, before.Digest, m.st.Pruned)
	require.Equal(t, uint32(1), m.st.Prunes)
	for i := range m.st.Members {
		m.st.Seen.Add(i)
	}
	require.Nil(t, m.leading.pruneClock(), "short enough")
	m.cfg.ClockEntries = 1
	require.Nil(t, m.leading.pruneClock(), "the other entry changed 20 s ago")
	m.now = 200 * time.Second
	require.NotNil(t, m.leading.pruneClock())
	m.cfg.ClockEntries = 0
	require.Nil(t, m.leading.pruneClock(), "off")
}

// A node that holds the version that was pruned takes the pruned one for newer, and the other way round; one that
// changed something meanwhile joins both without the entry; one that knows nothing of that version gets the entry back.
func TestPrunedVersionsMeet(t *testing.T) {
	m, before := prunedMachine(t)
	after := m.st
	node := func(st *members.State) *Machine {
		o := New(ip(2), Config{}, newWorld(t, 2).rng)
		require.NoError(t, o.Do(0, JoinCommand{}))
		mailOf(o)
		o.history = members.History{}
		o.st = &members.State{Version: st.Version, Seen: st.Seen.Clone()}
		return o
	}
	next, how := meets(node(before), after)
	require.Equal(t, members.Newer, how)
	require.Same(t, after, next)
	next, how = meets(m, before)
	require.Equal(t, members.Older, how)
	require.Same(t, after, next)

	o := node(before)
	o.install(o.st.Draft().Commit(ip(2)), false)
	next, how = meets(o, after)
	require.Equal(t, members.Merged, how)
	require.Zero(t, next.Clock.Of(ip(3)))
	require.Equal(t, before.Clock.Of(ip(2))+1, next.Clock.Of(ip(2)))
	require.Equal(t, uint32(1), next.Prunes)
	again, how := meets(m, o.st)
	require.Equal(t, members.Merged, how)
	require.Equal(t, next.Digest, again.Digest, "both sides come to the same")

	d := before.Draft()
	stranger := node(d.Commit(ip(2)))
	next, how = meets(stranger, after)
	require.Equal(t, members.Merged, how)
	require.Equal(t, before.Clock.Of(ip(3)), next.Clock.Of(ip(3)), "it comes back, and nothing is lost")
}

// A node with a pruned entry goes on from its own count: its next change is never taken for an old one.
func TestPrunedCountsGoOn(t *testing.T) {
	m, before := prunedMachine(t)
	o := New(ip(3), Config{}, newWorld(t, 2).rng)
	require.NoError(t, o.Do(0, JoinCommand{}))
	mailOf(o)
	o.install(&members.State{Version: before.Version, Seen: before.Seen.Clone()}, false)
	next, _ := meets(o, m.st)
	o.install(&members.State{Version: next.Version, Seen: next.Seen.Clone()}, false)
	require.Zero(t, o.st.Clock.Of(ip(3)))
	changed := o.st.Draft().Commit(ip(3))
	require.Equal(t, before.Clock.Of(ip(3))+1, changed.Clock.Of(ip(3)))
}

// In a cluster that changes without end clocks stay short, and every change of a node with a pruned entry is known to
// all.
func TestClocksStayShort(t *testing.T) {
	for seed := range uint64(4) {
		w := newWorld(t, seed)
		w.cfg.ClockEntries, w.cfg.ClockEntryAge = 3, 2*time.Second
		all := w.cluster(8)
		for round := range 3 {
			w.chaos = true
			for i, a := range all {
				w.do(a, SetMetadataCommand{Key: string(rune('a' + i)), Value: []byte{byte('0' + round)}})
				w.run(500 * time.Millisecond)
			}
			w.chaos = false
			w.run(15 * time.Second)
			w.until(20*time.Second, "settled", w.settled)
			for _, a := range all {
				require.LessOrEqual(t, len(a.m.st.Clock), 4, "seed %d", seed)
				require.Positive(t, a.m.st.Prunes)
				for i := range all {
					value, _ := a.view.MetadataValue(string(rune('a' + i)))
					require.Equal(t, []byte{byte('0' + round)}, value, "seed %d: what %s knows", seed, a.id)
				}
			}
		}
	}
}
