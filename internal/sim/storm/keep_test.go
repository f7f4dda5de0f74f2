// Tests of what storms keep alive.

package storm

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/base/long"
	"github.com/kith-io/kith/internal/sim/world"
	"github.com/kith-io/kith/route"
)

// TestStormsKeepDaemonsAlive: seeds that draw daemons call them often, and find nothing wrong (SHD-12).
func TestStormsKeepDaemonsAlive(t *testing.T) { require.Positive(t, daemonStorms(t, 4)) }

func TestLongStormsKeepDaemonsAlive(t *testing.T) {
	long.Test(t)
	require.Greater(t, daemonStorms(t, 12), 3)
}

// daemonStorms returns how many of the first seeds drew daemons.
func daemonStorms(t *testing.T, seeds uint64) (drawn int) {
	runs := 0
	for seed := uint64(1); seed <= seeds; seed++ {
		s := newStorm(seed, nil, false)
		r := s.run()
		require.Empty(t, r.violations, "seed %d", seed)
		if s.keeps != nil {
			drawn++
			runs += s.keeps.runs
		}
	}
	require.GreaterOrEqual(t, runs, 50*drawn)
	return drawn
}

// TestStormOfALeaverWhoseClockGoesBack: the last member leaves, the wall clock of its host goes back, and what its next
// process forms issues fences above the old ones (JOIN-1). Of 1,230 violations once.
func TestStormOfALeaverWhoseClockGoesBack(t *testing.T) {
	s := newStorm(7770, []string{OffReadiness, OffHolds}, false)
	require.Empty(t, s.run().violations)
}

// TestLateOwnersPageTakesNobodysPlace: a remembered entity is begun anew by an owner who was lost and does not know it,
// while it lives at the next owner, and ends there with its node: it lives on (SHD-12). Found by storm 881196, in which
// an owner that was cut off for more than a minute began one again after a panic.
func TestLateOwnersPageTakesNobodysPlace(t *testing.T) {
	w := formed(t, 2, alone)
	late, next := w.Hosts[0].Process, w.Hosts[1].Process
	k := &keeps{paged: map[string]*page{}}
	lives := &page{k, next, "page4", route.MakeFence(1, 2, 3)}
	lives.begins()
	again := &page{k, late, "page4", route.MakeFence(1, 1, 9)}
	again.begins()
	again.end()
	require.Same(t, lives, k.paged["page4"])
	newest := &page{k, late, "page4", route.MakeFence(1, 2, 4)}
	newest.begins()
	require.Same(t, newest, k.paged["page4"])
	late.Crash(true)
	lives.begins()
	require.Same(t, lives, k.paged["page4"], "who ended with its process holds no place")
}

// TestWhoMayBeginADaemon: nobody may while it goes on elsewhere, but in a cluster that was formed anew while the node
// that has it slept or was suspended: there nobody knows of it, and it goes on with nothing. Found by storm 1858, whose
// other nodes all ended while one slept.
func TestWhoMayBeginADaemon(t *testing.T) {
	w := formed(t, 3, alone)
	s := &storm{w: w, check: checks(w)}
	here, asleep, dead := w.Hosts[0].Process, w.Hosts[1].Process, w.Hosts[2].Process
	asleep.Pause(time.Hour)
	dead.Crash(true)
	w.Advance(w.Takeover())
	require.True(t, asleep.Held())
	require.False(t, here.Held())
	old, anew := route.MakeFence(1, 2, 3), route.MakeFence(2, 1, 1)
	for _, tc := range []struct {
		was   *world.Process
		fence route.Fence
		may   bool
	}{{here, old, false}, {here, anew, false}, {asleep, old, false}, {asleep, anew, true}, {dead, old, true}} {
		require.Equal(t, tc.may, mayBegin(s, life{here, tc.fence}, life{tc.was, old}))
	}
}
