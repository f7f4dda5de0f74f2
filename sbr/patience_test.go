// Tests of what puts a decision off: members that are late and not accused yet (MEM-10).

package sbr

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/peer"
)

// lateFor runs the resolver for d, naming the late members to it at every deadline.
func (r *rig) lateFor(d time.Duration, ids ...peer.ID) []Effects {
	r.t.Helper()
	return r.lookFor(d, LateCommand{IDs: ids})
}

// lookFor lets time pass while that is so.
func (r *rig) lookFor(d time.Duration, late LateCommand) []Effects {
	r.t.Helper()
	r.eff = nil
	end := r.now + d
	for steps := 0; ; steps++ {
		require.Less(r.t, steps, 200, "it asks for the same deadline again and again")
		at, ok := r.m.Next()
		if !ok || at > end {
			break
		}
		r.now = max(r.now, at)
		require.NoError(r.t, r.m.Do(r.now, late))
		r.m.Tick(r.now)
		r.drain()
	}
	r.now = end
	return r.eff
}

func decided(eff []Effects) (n int) {
	for _, e := range eff {
		n += len(e.Decisions)
	}
	return n
}

// TestLateMemberPutsADecisionOff: while a member that counts and is not accused has not answered lately, the picture
// may be about to change. Found by storms 30113 and 41289: a cut that nobody had noticed yet had both its sides live.
func TestLateMemberPutsADecisionOff(t *testing.T) {
	for _, c := range []struct {
		what, members string
		late          byte
		waits         bool
	}{
		{"one who counts", "A B C D E", 'D', true},
		{"leaving counts", "A B C Dl E", 'D', true},
		{"accused already", "A B C D E", 'E', false},
		{"joining", "A B C Dj E", 'D', false},
		{"down", "A B C Dd E", 'D', false},
		{"no member", "A B C D E", 'X', false},
	} {
		r := newRig(t, 'A', seven)
		r.see(c.members, "", true, "")
		r.see(c.members, "A>E", false, "")
		eff := r.lateFor(7*time.Second+time.Millisecond, idOf(c.late))
		if c.waits {
			require.Zero(t, decided(eff), c.what)
			require.Zero(t, decided(r.lateFor(time.Second, idOf(c.late))), c.what)
			require.Equal(t, 1, decided(r.lateFor(300*time.Millisecond)), "at most a quarter of a second after it has answered")
			continue
		}
		require.Equal(t, 1, decided(eff), c.what)
	}
}

// TestLateMemberEndsNobody: a decision waits no longer than until shortly before all would have to go for instability,
// with a bound of its own where they never do.
func TestLateMemberEndsNobody(t *testing.T) {
	for _, c := range []struct {
		cfg   Config
		after time.Duration
	}{
		{Config{}, 9375 * time.Millisecond},
		{seven, 12 * time.Second},
		{Config{UnstableAfter: 2 * time.Second}, 7250 * time.Millisecond},
		{Config{UnstableAfter: -1}, 9375 * time.Millisecond},
		{Config{StableAfter: 40 * time.Second}, 46750 * time.Millisecond},
	} {
		r := newRig(t, 'A', c.cfg)
		r.see("A B C D E", "", true, "")
		r.see("A B C D E", "A>E", false, "")
		require.Zero(t, decided(r.lateFor(c.after-time.Millisecond, idOf('D'))), c.cfg)
		eff := r.lateFor(2*time.Millisecond, idOf('D'))
		require.Equal(t, 1, decided(eff), c.cfg)
		require.Equal(t, "E", downs(eff[0]), c.cfg)
	}
}

// TestLostWhileWaitedFor: a member that turns out to be lost while a decision waits for it has had its silence already,
// so what is waited for then is only that all on this side get to know it. Anything else begins the patience anew.
func TestLostWhileWaitedFor(t *testing.T) {
	at := func(late time.Duration, then string) (*rig, time.Duration) {
		r := newRig(t, 'A', seven)
		r.see("A B C D E", "", true, "")
		r.see("A B C D E", "A>E", false, "")
		require.Zero(t, decided(r.lateFor(late, idOf('D'))))
		r.see("A B C D E", then, false, "")
		return r, r.m.quietAt - r.now
	}
	r, wait := at(9*time.Second, "A>D A>E")
	require.Equal(t, 1750*time.Millisecond, wait)
	eff := r.lateFor(2 * time.Second)
	require.Equal(t, "DE", downs(eff[len(eff)-1]), "nobody else goes")
	_, wait = at(9*time.Second, "A>D")
	require.Equal(t, 7*time.Second, wait, "the other one came back")
	_, wait = at(11*time.Second, "A>D A>E")
	require.Equal(t, 7*time.Second, wait, "no time is left for all to get to know it")
	_, wait = at(6*time.Second, "A>D A>E")
	require.Equal(t, 7*time.Second, wait, "nothing was waiting")
}
