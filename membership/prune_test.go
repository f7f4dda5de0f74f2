// Tests of pruning the clock: by the leader, when all have seen it, without losing or repeating a change (GOS-2).

package membership

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// pruned is a machine that is the leader and has just pruned: of the entries of 1, 2 and 3 its own and one are left.
func prunedMachine(t *testing.T) (m *Machine, before *state) {
	m = New(ip(1), Config{ClockEntries: 2, ClockEntryAge: time.Minute}, newWorld(t, 1).rng)
	require.NoError(t, m.Do(0, JoinCommand{}))
	mailOf(m)
	for n := 2; n < 4; n++ {
		d := m.st.draft()
		d.highestUp++
		d.add(cluster.Member{ID: ip(n), Status: cluster.Up, UpNumber: d.highestUp})
		for range n {
			d.clock = d.clock.Bump(ip(n))
		}
		m.install(d.commit(ip(1)), false)
	}
	m.now = 50 * time.Second
	d := m.st.draft()
	d.clock = d.clock.Bump(ip(2))
	m.install(d.commit(ip(1)), false)
	before = m.st
	m.now = 70 * time.Second
	require.Nil(t, m.pruneClock(), "not all have seen it")
	for i := range m.st.members {
		m.st.seen.Add(i)
	}
	next := m.pruneClock()
	require.NotNil(t, next)
	copied := *before
	copied.seen = before.seen.Clone()
	m.install(next, false)
	return m, &copied
}

// meets is what becomes of the state of m when it hears of remote.
func meets(m *Machine, remote *state) (*state, outcome) {
	return m.store.newerOrMerged(m.st, remote, m.held)
}

// The oldest go, no younger ones, and never the leader's own, which stands for all that was pruned.
func TestPruneClock(t *testing.T) {
	m, before := prunedMachine(t)
	require.Equal(t, []uint64{4, 0}, []uint64{before.clock.Of(ip(3)) + 1, m.st.clock.Of(ip(3))})
	require.Equal(t, before.clock.Of(ip(2)), m.st.clock.Of(ip(2)), "two are enough")
	require.Equal(t, before.clock.Of(ip(1))+1, m.st.clock.Of(ip(1)))
	require.Equal(t, before.digest, m.st.pruned)
	require.Equal(t, uint32(1), m.st.prunes)
	for i := range m.st.members {
		m.st.seen.Add(i)
	}
	require.Nil(t, m.pruneClock(), "short enough")
	m.cfg.ClockEntries = 1
	require.Nil(t, m.pruneClock(), "the other entry changed 20 s ago")
	m.now = 200 * time.Second
	require.NotNil(t, m.pruneClock())
	m.cfg.ClockEntries = 0
	require.Nil(t, m.pruneClock(), "off")
}

// Who holds the version that was pruned takes the pruned one for newer, and the other way round; who changed something
// meanwhile joins both without the entry; who knows nothing of that version gets the entry back.
func TestPrunedVersionsMeet(t *testing.T) {
	m, before := prunedMachine(t)
	after := m.st
	node := func(st *state) *Machine {
		o := New(ip(2), Config{}, newWorld(t, 2).rng)
		require.NoError(t, o.Do(0, JoinCommand{}))
		mailOf(o)
		o.history = history{}
		o.st = &state{version: st.version, seen: st.seen.Clone()}
		return o
	}
	next, how := meets(node(before), after)
	require.Equal(t, isNewer, how)
	require.Same(t, after, next)
	next, how = meets(m, before)
	require.Equal(t, isOlder, how)
	require.Same(t, after, next)

	o := node(before)
	o.install(o.st.draft().commit(ip(2)), false)
	next, how = meets(o, after)
	require.Equal(t, isMerged, how)
	require.Zero(t, next.clock.Of(ip(3)))
	require.Equal(t, before.clock.Of(ip(2))+1, next.clock.Of(ip(2)))
	require.Equal(t, uint32(1), next.prunes)
	again, how := meets(m, o.st)
	require.Equal(t, isMerged, how)
	require.Equal(t, next.digest, again.digest, "both sides come to the same")

	d := before.draft()
	stranger := node(d.commit(ip(2)))
	next, how = meets(stranger, after)
	require.Equal(t, isMerged, how)
	require.Equal(t, before.clock.Of(ip(3)), next.clock.Of(ip(3)), "it comes back, and nothing is lost")
}

// A node whose entry was pruned goes on from its own count: its next change is never taken for an old one.
func TestPrunedCountsGoOn(t *testing.T) {
	m, before := prunedMachine(t)
	o := New(ip(3), Config{}, newWorld(t, 2).rng)
	require.NoError(t, o.Do(0, JoinCommand{}))
	mailOf(o)
	o.install(&state{version: before.version, seen: before.seen.Clone()}, false)
	next, _ := meets(o, m.st)
	o.install(&state{version: next.version, seen: next.seen.Clone()}, false)
	require.Zero(t, o.st.clock.Of(ip(3)))
	changed := o.st.draft().commit(ip(3))
	require.Equal(t, before.clock.Of(ip(3))+1, changed.clock.Of(ip(3)))
}

// In a cluster that changes without end clocks stay short, and every change of a node whose entry went is known to all.
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
				require.LessOrEqual(t, len(a.m.st.clock), 4, "seed %d", seed)
				require.Positive(t, a.m.st.prunes)
				for i := range all {
					value, _ := a.view.MetadataValue(string(rune('a' + i)))
					require.Equal(t, []byte{byte('0' + round)}, value, "seed %d: what %s knows", seed, a.id)
				}
			}
		}
	}
}

// The fields of a pruning travel, in states and in deltas, and a pruning of nothing is refused.
func TestPruningTravels(t *testing.T) {
	m, before := prunedMachine(t)
	got, err := readState(wire.KindGossip, payload(m.st))
	require.NoError(t, err)
	require.Equal(t, m.st.pruned, got.pruned)
	require.Equal(t, uint32(1), got.prunes)
	changes, ok := appendDelta(nil, before.version, m.st.version)
	require.True(t, ok)
	v, err := new(work).readDelta(wire.KindDelta, before.version, changes)
	require.NoError(t, err)
	require.Equal(t, m.st.digest, v.digest)
	m.st.pruned = 0
	core, _ := appendCore(nil, m.st.version)
	_, err = readState(wire.KindGossip, core)
	require.ErrorIs(t, err, wire.ErrBadValue)
	require.False(t, m.st.has(peer.ID{}))
}
