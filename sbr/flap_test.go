// Tests of flappers: which members are, and what a side does that heard itself beside them (MEM-10).

package sbr

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
)

// flaps shows pictures in turn, half a second each, until this node decides or the time is over. It returns what came
// since the first.
func (r *rig) flaps(d time.Duration, members string, late []peer.ID, pictures ...string) (began time.Duration,
	eff []Effects) {
	r.t.Helper()
	began = r.now
	for i := 0; r.now < began+d && decided(eff) == 0; i++ {
		r.see(members, pictures[i%len(pictures)], false, "")
		eff = append(eff, r.lateFor(500*time.Millisecond, late...)...)
	}
	return began, eff
}

// TestFlappers: a side that heard itself goes on beside members that are lost and come back, gives them the time in
// which the picture may come to rest, and downs them; nobody else goes.
func TestFlappers(t *testing.T) {
	const five, e, de = "A B C D E", "A>E B>E C>E D>E", "A>D B>D C>D A>E B>E C>E"
	for what, c := range map[string]struct {
		self     byte
		pictures []string
		down     string
		stops    bool
	}{
		"one":                        {'A', []string{e, ""}, "", false},                   // all are well in between
		"two, never both well":       {'A', []string{de, e}, "DE", false},                 // E is lost all the while
		"two in turn":                {'B', []string{e, "A>D B>D C>D"}, "DE", false},      // not the leader
		"no majority beside them":    {'A', []string{"A>E", "A>D", "A>C"}, "ABCDE", true}, //
		"one of them":                {'E', []string{"E>D A>E B>E", "E>D"}, "E", true},    // goes alone
		"one of two who accuse most": {'E', []string{de + " D>A D>B E>A", de + " D>A D>B E>C"}, "E", true},
	} {
		r := newRig(t, c.self, seven)
		r.see(five, "", true, "")
		began, eff := r.flaps(40*time.Second, five, nil, c.pictures...)
		f := find(began, eff)
		require.Equal(t, c.down, f.down, what)
		require.Equal(t, c.stops, stands(eff), what)
		if c.down != "" {
			require.InDelta(t, 24.5, f.decided.Seconds(), 0.6, what)
			require.Equal(t, membership.CauseUnstable, f.cause, what)
		}
	}
}

// TestNewFlapper: a node beside which a member becomes a flapper when there is no time left stops, for others may not
// know that yet, but it does not go; nor when one of its own side is late.
func TestNewFlapper(t *testing.T) {
	const members = "A B C D E F G"
	grow := func(late ...peer.ID) (r *rig, eff []Effects) {
		r = newRig(t, 'A', seven)
		r.see(members, "", true, "")
		_, eff = r.flaps(9*time.Second, members, nil, "A>G B>G", "A>G B>G A>F")
		_, more := r.flaps(11*time.Second, members, late, "A>G B>G A>E", "A>G B>G A>F")
		return r, append(eff, more...)
	}
	r, eff := grow()
	require.True(t, stands(eff), "E is one for less than a silence bound")
	require.Zero(t, decided(eff))
	_, eff = r.flaps(20*time.Second, members, nil, "A>G B>G A>E", "A>G B>G A>F")
	require.Equal(t, "EFG", find(0, eff).down)
	require.False(t, stands(eff), "it goes on")

	r, eff = grow(idOf('B'))
	require.Zero(t, decided(eff))
	_, eff = r.flaps(30*time.Second, members, []peer.ID{idOf('B')}, "A>G B>G A>E", "A>G B>G A>F")
	require.Zero(t, decided(eff), "without B it has three of seven, and waits")
	_, eff = r.flaps(30*time.Second, members, nil, "A>G B>G A>E", "A>G B>G A>F")
	require.Equal(t, "EFG", find(0, eff).down)
}

// TestQuietIsNoFlapper: a member that was accused once, and has been quiet for stable-after since, counts with our
// side.
func TestQuietIsNoFlapper(t *testing.T) {
	r := newRig(t, 'A', seven)
	r.see("A B C D E", "", true, "")
	began, _ := r.flaps(10*time.Second, "A B C D E", nil, "A>D A>E", "A>E")
	_, eff := r.flaps(30*time.Second, "A B C D E", nil, "A>E B>E", "A>E A>C")
	require.Equal(t, "CE", find(began, eff).down)
}

// TestWhoFlaps: the members with most accusers are taken away until none that is left has accused another of these,
// members that never came Up first.
func TestWhoFlaps(t *testing.T) {
	for said, who := range map[string]string{
		"A>E": "E", "A>E E>A": "AE", "A>E B>E E>A E>B": "E", "A>D D>A A>E E>A": "A", "F>A A>F": "F", "F>A F>B A>E": "EF",
		"A>B B>C C>D D>A": "ABCD", "": "",
	} {
		v := &membership.View{Members: side("A B C D E Fj")}
		for i := 0; i+3 <= len(said); i += 4 {
			v.Accusations = append(v.Accusations, membership.Accusation{Observer: idOf(said[i]), Subject: idOf(said[i+2])})
		}
		var f flaps
		f.look(v, time.Minute, time.Second)
		require.Equal(t, who, letters(f.who), said)
		v.Accusations = nil
		f.look(v, time.Minute+time.Second, time.Second)
		f.look(v, time.Minute+2*time.Second, time.Second)
		require.Empty(t, f.who, "it is past")
		require.Empty(t, f.said)
	}
}

// TestFlapperGoesAlone: a flapper that goes for instability downs itself and nobody else, by its own clock, which may
// run out before that of the others: to them that is as if it had died, and they need not go for it. They do go for a
// member that another flapper has downed, or that has decided about more than itself. Found by storm 1127301115, in
// which fourteen that nothing had met went.
func TestFlapperGoesAlone(t *testing.T) {
	for _, c := range []struct {
		by    byte
		cause membership.Cause
		goes  bool
	}{
		{'E', membership.CauseUnstable, false}, {'E', membership.CauseResolver, true},
		{'D', membership.CauseUnstable, true},
	} {
		r := newRig(t, 'A', seven)
		r.see("A B C D E", "", true, "")
		_, eff := r.flaps(10*time.Second, "A B C D E", nil, "A>D B>D C>D A>E B>E", "A>D B>D C>D")
		require.Zero(t, decided(eff))
		v := &membership.View{Self: r.m.self, Members: side("A B C D Ed")}
		v.Members[4].Cause, v.Members[4].By = c.cause, idOf(c.by)
		v.Accusations = []membership.Accusation{{Observer: idOf('A'), Subject: idOf('D')}}
		v.Unreachable = peer.SetOf(idOf('D'))
		require.NoError(t, r.m.Do(r.now, ViewCommand{v}))
		require.Equal(t, c.goes, r.m.unsure, "by %c for %v", c.by, c.cause)
	}
}

// TestFlapperDownedByAnother: another of our side downs the flappers before this node does. It knows what was decided,
// so it need not go; for a downed member that it does not know for a flapper it goes.
func TestFlapperDownedByAnother(t *testing.T) {
	for by, goes := range map[byte]bool{'B': false, 'D': true} {
		r := newRig(t, 'A', seven)
		r.see("A B C D E", "", true, "")
		_, eff := r.flaps(14*time.Second, "A B C D E", nil, "A>D B>D C>D A>E B>E", "A>D B>D C>D")
		require.Zero(t, decided(eff))
		v := &membership.View{Self: r.m.self, Members: side("A B C D Ed")}
		v.Members[4].Cause, v.Members[4].By = membership.CauseUnstable, idOf(by)
		v.Accusations = []membership.Accusation{{Observer: idOf('A'), Subject: idOf('D')}}
		v.Unreachable = peer.SetOf(idOf('D'))
		require.NoError(t, r.m.Do(r.now, ViewCommand{v}))
		require.Equal(t, goes, r.m.unsure, "by %c", by)
	}
}
