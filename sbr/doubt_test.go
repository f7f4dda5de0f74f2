// Tests of decisions that hang on members who may be gone: back for a moment near the decision, or late with their word
// (MEM-10).

package sbr

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/peer"
)

// stands says whether the last order that a run gave about this node's suspension was to stop.
func stands(eff []Effects) (stopped bool) {
	for _, e := range eff {
		if e.Suspend != nil {
			stopped = e.Suspend.On
		}
	}
	return stopped
}

// TestBackForAMoment: D was lost, some heard it again shortly before the decision, and it is silent again. A healthy
// member that has not heard it meanwhile does not go with it: who lives in any case waits, and goes on. The accuser
// waits for those, and stops when there is no time left. Found by storm seeds 172 and 3882.
func TestBackForAMoment(t *testing.T) {
	for _, c := range []struct {
		cfg   Config
		self  byte
		stops bool
	}{
		{seven, 'A', false}, {seven, 'C', false}, {seven, 'B', true},
		{Config{Strategy: StaticQuorum, QuorumSize: 3, StableAfter: seven.StableAfter}, 'A', false},
		{Config{Strategy: KeepOldest, StableAfter: seven.StableAfter}, 'A', false},
	} {
		r := newRig(t, c.self, c.cfg)
		r.see("A B C D", "", true, "")
		r.see("A B C D", "A>D B>D C>D", false, "")
		require.Zero(t, decided(r.lateFor(6*time.Second)))
		r.see("A B C D", "B>D", false, "D")
		require.Zero(t, decided(r.lateFor(2500*time.Millisecond)))
		eff := r.lateFor(5*time.Second, idOf('D'))
		require.Zero(t, decided(eff), "%c: D may have gone", c.self)
		require.Equal(t, c.stops, stands(eff), "%c", c.self)
		r.see("A B C D", "A>D B>D C>D", false, "")
		eff = r.lateFor(2 * time.Second)
		require.Equal(t, 1, decided(eff))
		d := r.m.Decisions()[0]
		require.True(t, d.Lives)
		require.Equal(t, "D", letters(d.Down))
		require.False(t, stands(eff))
	}
}

// TestBackForGood: when D is heard all the time by those in between, they decide without any delay, and so does the
// accuser when nobody tells it.
func TestBackForGood(t *testing.T) {
	for self, least := range map[byte]time.Duration{'A': 7 * time.Second, 'B': 12 * time.Second} {
		r := newRig(t, self, seven)
		r.see("A B C D", "", true, "")
		began := r.now
		r.see("A B C D", "B>D D>B", false, "BD")
		f := find(began, r.lateFor(time.Minute))
		require.GreaterOrEqual(t, f.decided, least)
		require.Less(t, f.decided, least+20*time.Second)
		require.Equal(t, "BD", letters(r.m.Decisions()[0].Down))
	}
}

// TestLateWithItsWord: C has accused D, who is in contact, and is late itself. Nobody above suspicion goes because of a
// word that may be the past: it is waited for, by whoever lives in any case without stopping. Found by storm seeds 1664
// and 6891.
func TestLateWithItsWord(t *testing.T) {
	for self, stops := range map[byte]bool{'A': false, 'D': true} {
		r := newRig(t, self, seven)
		r.see("A B C D", "", true, "")
		r.see("A B C D", "C>D", false, "D")
		require.Zero(t, decided(r.lateFor(4*time.Second)))
		eff := r.lateFor(10*time.Second, idOf('C'))
		require.Zero(t, decided(eff), "%c", self)
		require.Equal(t, stops, stands(eff), "%c", self)
		r.see("A B C D", "A>C B>C C>D D>C", false, "D")
		eff = r.lateFor(8 * time.Second)
		d := r.m.Decisions()[0]
		require.True(t, d.Lives)
		require.Equal(t, "C", letters(d.Down), "%c", self)
		require.False(t, stands(eff))
	}
}

// TestQuietWithItsWord: C has accused D, who is in contact, and has missed an answer when the decision is due: it may
// have taken its word back just before it stood still. Whoever lives in any case goes on and waits, and nobody goes
// when that turns out to be so; when C is heard all the time, its word stands. Found by storm seed 6891.
func TestQuietWithItsWord(t *testing.T) {
	for _, self := range []byte("ABD") {
		r := newRig(t, self, seven)
		r.see("A B C D", "", true, "")
		r.see("A B C D", "C>D", false, "D")
		eff := r.lookFor(9*time.Second, LateCommand{Quiet: []peer.ID{idOf('C')}})
		require.Zero(t, decided(eff), "%c", self)
		require.False(t, stands(eff), "%c", self)
		r.see("A B C D", "", true, "")
		require.Zero(t, decided(r.lateFor(time.Minute)), "%c", self)

		r = newRig(t, self, seven)
		r.see("A B C D", "", true, "")
		r.see("A B C D", "C>D", false, "D")
		require.Equal(t, 1, decided(r.lookFor(9*time.Second, LateCommand{Quiet: []peer.ID{idOf('A')}})), "%c", self)
		require.Equal(t, "CD", letters(r.m.Decisions()[0].Down), "%c", self)
	}
}

// TestDoubtEnds: what is waited for has an end, also when nothing is heard of those who are doubted.
func TestDoubtEnds(t *testing.T) {
	for _, self := range []byte("ABC") {
		r := newRig(t, self, seven)
		r.see("A B C D", "", true, "")
		r.see("A B C D", "A>D B>D C>D", false, "")
		require.Zero(t, decided(r.lateFor(6*time.Second)))
		r.see("A B C D", "B>D", false, "D")
		require.Equal(t, 1, decided(r.lateFor(12*time.Second+r.m.Bound(), idOf('D'))))
		require.Equal(t, "BD", letters(r.m.Decisions()[0].Down))
	}
}

// TestComesToRestInTime: a picture that has gone on changing, and has stood still for half the time that it needs when
// all would have to go, is given the other half. Found by storm seed 9074.
func TestComesToRestInTime(t *testing.T) {
	for rests, down := range map[time.Duration]string{20 * time.Second: "C", 23 * time.Second: "ABCD"} {
		r := newRig(t, 'A', seven)
		r.see("A B C D", "", true, "")
		began := r.now
		for i := 0; r.now-began < rests; i++ {
			r.see("A B C D", []string{"A>C", "A>C A>D"}[i%2], false, "")
			require.Zero(t, decided(r.run(500*time.Millisecond)))
		}
		r.see("A B C D", "A>C", false, "")
		require.Equal(t, down, find(began, r.run(time.Minute)).down, rests)
	}
}
