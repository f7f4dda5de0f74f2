// Tests of a member that never came Up and has lost all that did (MEM-10).

package sbr

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// strayed is A, which never came Up, in a cluster with B, the only Up member, out of reach; C says so.
func strayed(t *testing.T) *rig {
	r := newRig(t, 'A', seven)
	r.see("Aw B Cw Dw Ew", "", true, "")
	r.now += time.Minute
	r.see("Aw B Cw Dw Ew", "C>B", false, "")
	return r
}

// A member that never came Up and has lost all that did goes after the patience, whatever others like it do meanwhile:
// that they are lost, or end, or come, begins no patience anew. Found by storms 3277 and 5262, where each of six kept
// the next one for the whole patience.
func TestWhoNeverCameUpWaitsForNoOther(t *testing.T) {
	for what, others := range map[string][2]string{
		"nothing":         {"Aw B Cw Dw Ew", "C>B"},
		"one is lost":     {"Aw B Cw Dw Ew", "A>D C>B"},
		"one ends":        {"Aw B Cw Dd Ew", "C>B"},
		"one comes":       {"Aw B Cw Dw Ew Fj", "C>B"},
		"the accuser":     {"Aw B Cd Dw Ew", ""},
		"it is removed":   {"Aw B Dw Ew", ""},
		"another accuses": {"Aw B Cw Dw Ew", "A>B C>B"},
	} {
		r := strayed(t)
		began := r.now
		for range 6 {
			require.Empty(t, r.run(time.Second), what)
		}
		r.see(others[0], others[1], false, "")
		f := find(began, r.run(10*time.Second))
		require.Equal(t, "A", f.down, what)
		require.Equal(t, 7*time.Second, f.decided, what)
		require.Contains(t, r.m.Decisions()[0].String(), "0 of 1 members reachable", what)
		require.True(t, r.m.Decisions()[0].Lost.Has(idOf('B')), what)
	}
}

// TestWhoAccusedHasEnded: when the accusers of the last member that counts end soon after they accused it, it may be
// well: it has not had the time to show that it hears this node. Another member has to accuse it; if none does, all is
// well.
func TestWhoAccusedHasEnded(t *testing.T) {
	r := strayed(t)
	began := r.now
	require.Empty(t, r.run(time.Second))
	r.see("Aw B Cd Dw Ew", "", false, "")
	require.True(t, r.m.Stray(r.now))
	require.Empty(t, r.run(8*time.Second))
	r.see("Aw B Cd Dw Ew", "A>B", false, "")
	require.Equal(t, 9*time.Second+1750*time.Millisecond, find(began, r.run(time.Minute)).decided,
		"it is out of reach since the first word")

	r = strayed(t)
	r.run(time.Second)
	r.see("Aw B Cd Dw Ew", "", false, "")
	require.Empty(t, r.run(13*time.Second))
	require.False(t, r.m.Stray(r.now))
	began = r.now
	r.see("Aw B Cd Dw Ew", "A>B", false, "")
	require.Equal(t, 7*time.Second, find(began, r.run(time.Minute)).decided)
}

// TestInReachOfWhoCounts: a member that never came Up is not stray while one that did is in reach, or has shown that it
// hears this node, and no longer when it is again.
func TestInReachOfWhoCounts(t *testing.T) {
	for what, c := range map[string]struct {
		members, accusations, contact string
		stray                         bool
	}{
		"lost":           {"Aw B Cw Dw Ew", "C>B", "", true},
		"taken back":     {"Aw B Cw Dw Ew", "", "", false},
		"in contact":     {"Aw B Cw Dw Ew", "C>B", "B", false},
		"another counts": {"Aw B C Dw Ew", "C>B", "", false},
		"it came Up":     {"A B Cw Dw Ew", "C>B", "", false},
		"all are Down":   {"Aw Bd Cw Dw Ew", "C>B", "", false},
	} {
		r := strayed(t)
		require.True(t, r.m.Stray(r.now), what)
		require.Empty(t, r.run(6*time.Second), what)
		r.see(c.members, c.accusations, false, c.contact)
		require.Equal(t, c.stray, r.m.Stray(r.now), what)
		require.Equal(t, c.stray, len(r.run(time.Second)) > 0, what)
	}
	r := newRig(t, 'A', Config{Strategy: Off})
	r.see("Aw B C", "A>B A>C", false, "")
	require.False(t, r.m.Stray(r.now))
}

// TestHeardOnceMore: one accuser takes its word back and another ends: the accused member has to have the time to show
// that it hears this node, or a member has to accuse it anew.
func TestHeardOnceMore(t *testing.T) {
	r := strayed(t)
	r.see("Aw B Cw Dw Ew", "C>B D>B", false, "")
	require.Empty(t, r.run(6500*time.Millisecond))
	r.see("Aw B Cw Dw Ew", "C>B", false, "")
	require.Empty(t, r.run(1500*time.Millisecond))
	r.see("Aw B Cd Dw Ew", "", false, "")
	require.Empty(t, r.run(time.Minute))
}

// TestStraySleeps: a stray member that slept listens before it goes, also one that is joining still.
func TestStraySleeps(t *testing.T) {
	for _, self := range []string{"Aw", "Aj"} {
		r := newRig(t, 'A', seven)
		r.see(self+" B C", "", true, "")
		r.see(self+" B C", "A>B A>C", false, "")
		r.now += 30 * time.Second
		woke := r.now
		require.True(t, r.m.Open())
		require.NoError(t, r.m.Do(r.now, SleptCommand{}))
		require.Equal(t, settle, find(woke, r.run(time.Minute)).decided, self)
	}
}

// TestSleptWhereNobodyCameUp: a member that joins, in a cluster in which nobody ever came Up, waits with the others.
// When it has slept, nobody is let in before all others have confirmed it, and one that is out of reach may be gone for
// good: it goes after the patience, whatever those in reach do. Found by storm 19000008989, in which four new processes
// asked one that had slept, for ever.
func TestSleptWhereNobodyCameUp(t *testing.T) {
	forming := func(accusations string, slept bool) *rig {
		r := newRig(t, 'A', seven)
		r.see("Aj Bj Cj Dj", "", false, "")
		r.see("Aj Bj Cj Dj", accusations, false, "")
		r.run(time.Minute)
		require.NoError(t, r.m.Do(r.now, UnconfirmedCommand{On: slept}))
		return r
	}
	for what, c := range map[string]struct {
		accusations string
		slept, goes bool
	}{
		"it has not slept":   {"A>B A>C A>D", false, false},
		"all are in reach":   {"", true, false},
		"all are lost":       {"A>B A>C A>D", true, true},
		"one is lost":        {"A>B", true, true},
		"as others say":      {"C>B", true, true},
		"it is accused, too": {"B>A A>B", true, true},
	} {
		r := forming(c.accusations, c.slept)
		began := r.now
		require.Equal(t, c.goes, r.m.Stray(r.now), what)
		f := find(began, r.run(time.Minute))
		if !c.goes {
			require.Zero(t, f, what)
			continue
		}
		require.Equal(t, found{7 * time.Second, "A", r.m.Decisions()[0].Cause}, f, what)
	}
	for what, ends := range map[string]func(r *rig){
		"confirmed":   func(r *rig) { require.NoError(t, r.m.Do(r.now, UnconfirmedCommand{})) },
		"heard again": func(r *rig) { r.see("Aj Bj Cj Dj", "", false, "") },
		"in contact":  func(r *rig) { r.see("Aj Bj Cj Dj", "A>B", false, "B") },
		"replaced":    func(r *rig) { r.see("Aj Bd Cj Dj", "A>B", false, "") },
		"one is Up":   func(r *rig) { r.see("Aj Bj C Dj", "A>B", false, "") },
	} {
		r := forming("A>B", true)
		require.Empty(t, r.run(6*time.Second), what)
		ends(r)
		require.False(t, r.m.Stray(r.now), what)
		require.Empty(t, r.run(time.Minute), what)
	}
	r := forming("A>B", true) // it sleeps again, and listens first
	r.run(6 * time.Second)
	r.now += 30 * time.Second
	woke := r.now
	require.NoError(t, r.m.Do(r.now, SleptCommand{}))
	require.Equal(t, settle, find(woke, r.run(time.Minute)).decided)
}
