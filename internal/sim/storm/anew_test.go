// Tests of nodes that an operator starts anew: where others have owned what a side owns.

package storm

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/sim/world"
)

// mistaken is a cluster in which an operator at the first host has downed members that live behind a cut: more than
// half of all, with two of three seats. They have proven the first host over, and those on its side.
func mistaken(t *testing.T, n int, lost ...int) *storm {
	cfg := alone
	cfg.TenureVoters, cfg.TenureGrant = 3, 2*time.Second
	w := formed(t, n, cfg)
	s := &storm{w: w, check: checks(w), rng: rand.New(rand.NewPCG(1, 1))}
	w.Advance(5 * time.Second) // the seats have holders
	s.apart(lost, time.Hour)
	for _, i := range lost {
		p := w.Hosts[i].Process
		p.Doomed, p.Outside = true, true
		s.down(w.Hosts[0].Process, p.ID)
	}
	there := w.Hosts[lost[0]].Process
	over := func() bool { return provenOver(w.Hosts[0].Process) && len(there.View.Members) == len(lost) }
	require.True(t, w.Until(time.Minute, over))
	return s
}

// TestNobodyRefoundsWhereOthersOwned: the lost have ended, and the quorum of the seats with them. That is true, but
// they have owned what lives on this side, under higher fences: the operator does not say it, and all nodes start anew.
// Found by storms 9338120215 and 11700001659.
func TestNobodyRefoundsWhereOthersOwned(t *testing.T) {
	lost := []int{1, 2, 4}
	s := mistaken(t, 5, lost...)
	w := s.w
	w.Net.Heal()
	s.ending = true
	before := []*world.Process{w.Hosts[0].Process, w.Hosts[3].Process}
	for _, i := range lost {
		w.Hosts[i].Process.Crash(true)
	}
	refound(refoundEvery, s)
	w.Advance(10 * time.Second)
	for _, p := range before {
		require.False(t, p.Alive)
	}
	s.calm()
	require.Empty(t, checks(w).Violations)
	require.Zero(t, w.Leases.Tenures.Assumed)
	require.True(t, s.isUp(0) && s.isUp(3))
}

// TestTheSideProvenOverBeginsAnew: the lost let two newcomers in before they end, and the other side lets in another
// two. So one number is borne on each, and nobody is left that knows of both sides: an operator ends the one that was
// proven over. Found by storm 11700000483.
func TestTheSideProvenOverBeginsAnew(t *testing.T) {
	s := mistaken(t, 8, 1, 2, 6, 7)
	w := s.w
	for _, i := range []int{6, 7} {
		w.Hosts[i].Process.Crash(true)
		s.down(w.Hosts[1].Process, w.Hosts[i].Process.ID)
		w.Start(i, w.Seeds([]int{1}))
	}
	for _, i := range []int{4, 5} {
		w.Hosts[i].Process.Crash(true)
		s.down(w.Hosts[0].Process, w.Hosts[i].Process.ID)
		w.Start(i, w.Seeds([]int{0}))
	}
	require.True(t, w.Until(time.Minute, func() bool { return s.isUp(4) && s.isUp(5) && s.isUp(6) && s.isUp(7) }))
	refound(refoundEvery, s)
	s.calm()
	require.Empty(t, checks(w).Violations)
	for _, i := range []int{0, 3, 4, 5, 6, 7} {
		require.True(t, s.isUp(i))
	}
}
