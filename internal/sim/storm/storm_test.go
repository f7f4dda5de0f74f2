// The storm in small, as part of every test run.

package storm

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/base/long"
	"github.com/kith-io/kith/internal/sim/world"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/sim/setup"
)

// TestStorm runs a few seeds, TestLongStorm more; `make storm SEEDS=500` runs many.
func TestStorm(t *testing.T) { storms(t, 4) }

func TestLongStorm(t *testing.T) {
	long.Test(t)
	storms(t, 20)
}

func storms(t *testing.T, seeds int) {
	r := Run(Config{Seeds: seeds, First: 1, TraceDir: t.TempDir()})
	for _, f := range r.Failures {
		for _, v := range f.Violations {
			t.Errorf("seed %d: %s (%s)", f.Seed, v, f.Replay)
		}
	}
	require.Equal(t, 0, r.Violations)
	require.Greater(t, r.Delivered, 100*seeds, "a storm that delivers little shows little")
}

// A storm that is stopped has found what one of the seeds that ran finds, and says so (CARD-5).
func TestStormIsStopped(t *testing.T) {
	stop := make(chan struct{})
	cfg := Config{Seeds: 1000, First: 28, Workers: 1, TraceDir: t.TempDir(), Stop: stop}
	cfg.Progress = func(p Progress) {
		if p.Done == 1 {
			close(stop)
		}
	}
	part := Run(cfg)
	require.True(t, part.Stopped)
	require.Positive(t, part.Seeds)
	require.Less(t, part.Seeds, 4, "no other seed begins")
	none := Run(Config{Seeds: 3, First: 1, Stop: stop})
	require.Equal(t, []any{0, true, 0}, []any{none.Seeds, none.Stopped, none.Violations})
	whole := Run(Config{Seeds: part.Seeds, First: 28, TraceDir: t.TempDir()})
	require.False(t, whole.Stopped)
	require.Equal(t, whole.TraceHash, part.TraceHash)
	require.Equal(t, whole.Steps, part.Steps)
	require.Equal(t, whole.Accepted, part.Accepted)
}

// TestStatesWaitAtTheEnd: seeds that end while a state waits for an entity that could not be made, or has a slow
// worker, break no bound (SHD-9).
func TestStatesWaitAtTheEnd(t *testing.T) {
	for _, seed := range []uint64{287, 631, 843, 1171} {
		r := Run(Config{Seeds: 1, First: seed, TraceDir: t.TempDir()})
		require.Empty(t, r.Failures)
	}
}

// TestSleeperDoesNotReturnAlone: a storm in which all others ended and formed the next cluster while a node slept,
// which read of their end in its sockets (MEM-10, SHD-9, AVL-3).
func TestSleeperDoesNotReturnAlone(t *testing.T) {
	require.Empty(t, newStorm(3777, nil, false).run().violations)
}

// TestMixIsTheSeeds: the weights of the faults come from the seed, zero ones are never drawn, none is out of reach.
func TestMixIsTheSeeds(t *testing.T) {
	require.Equal(t, newStorm(3, nil, false).options(), newStorm(3, nil, true).options())
	require.NotEqual(t, newStorm(3, nil, false).mix, newStorm(4, nil, false).mix)
	m := make(mix, len(faults()))
	m[2], m[5] = 1, 2
	require.Equal(t, "partial 1 pause 2", m.String())
	var names []string
	for i := range 3 {
		names = append(names, m.next(func(int) int { return i }).name)
	}
	require.Equal(t, []string{"partial", "pause", "pause"}, names)
}

// TestFatesWaitForWhatTheDeadSent: a message that its sender wrote before it died comes to a handler late, and what the
// handler sends then waits for a home as long as any other. It is under way, not lost; what is lost, and what still
// counts as parked when nothing is, is named all the same.
func TestFatesWaitForWhatTheDeadSent(t *testing.T) {
	for _, tc := range []struct {
		name  string
		fault func(p *world.Process, id route.TypeID)
		rules []string
	}{
		{"all come out", func(*world.Process, route.TypeID) {}, nil},
		{"a message is nowhere", func(p *world.Process, id route.TypeID) {
			p.World.Book.Write(p, id, "a", 20)
		}, []string{"lost"}},
		{"the budget leaks", func(p *world.Process, _ route.TypeID) { world.FeignParked(p, 59) }, []string{"bounds"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			typ := &world.EntityType{Type: entity.Type{Name: "far", Shards: 1, Role: "nobody's", Mode: entity.Inline,
				New: func(string, route.Fence) entity.Handler { return nil }}}
			w := formed(t, 3, setup.Config{Data: setup.DataConfig{ParkWait: 20 * time.Second}}, typ)
			s, book := &storm{w: w, check: checks(w)}, &w.Book
			p, dead := w.Hosts[1].Process, w.Hosts[2].Process
			r := p.Region(route.TypeOf("far"))
			first, _ := book.Write(dead, r.ID, "a", 20)
			dead.Crash(true)
			w.After(4*time.Second, func() { // it arrives, and its handler sends another
				w.Fate(first, world.FateDelivered, route.OK, "")
				second, _ := book.Write(p, r.ID, "b", 20)
				_, err := r.Send("b", second, 0)
				require.NoError(t, err)
				tc.fault(p, r.ID)
			})
			s.demandFates()
			require.Zero(t, w.Untold(), "the dead holds nothing of others")
			w.Audit()
			var rules []string
			for _, v := range checks(w).Violations {
				rules = append(rules, v.Rule)
			}
			require.Equal(t, tc.rules, rules)
		})
	}
}

// TestSameSeedSameTrace: two runs of one seed are equal, two seeds are not.
func TestSameSeedSameTrace(t *testing.T) {
	a, b, c := newStorm(5, nil, false).run(), newStorm(5, nil, true).run(), newStorm(6, nil, false).run()
	require.Equal(t, a.hash, b.hash, "text must not change a run")
	require.Equal(t, a.records, b.records)
	require.NotEqual(t, a.hash, c.hash)
}

// TestStormsWithoutDraws: what is left out is not drawn, and leaves everything else of a seed as it was.
func TestStormsWithoutDraws(t *testing.T) {
	drawn := map[string]bool{}
	for seed := uint64(1); seed <= 200; seed++ {
		s := newStorm(seed, nil, false)
		for _, what := range strings.Split(strings.TrimPrefix(s.drawn(), ", "), ", ") {
			drawn[strings.Fields(what + " -")[0]] = true
		}
		require.Empty(t, newStorm(seed, Draws(), false).drawn())
	}
	for _, what := range []string{"a", "role", "at", "an", "first", "sleeps", "named", "senders", "balance", "keeps",
		"strategies", "drains"} {
		require.True(t, drawn[what], what)
	}
	s := newStorm(7, []string{OffTrials}, false)
	require.Nil(t, s.trial)
	require.Equal(t, newStorm(7, nil, false).mix, s.mix)
}

// TestSendToTheRemoved: that the peer is lost is a good reason to reject a message with a route to a member that was
// removed here, and no other time.
func TestSendToTheRemoved(t *testing.T) {
	for _, why := range []error{world.ErrDeadEnd, route.ErrPeerLost} {
		w := formed(t, 1, setup.Config{})
		a := w.Hosts[0].Process
		_, nth := w.Book.Write(a, route.TypeOf("t"), "e", world.LedgerSize)
		(&storm{w: w, check: checks(w)}).rejected(a, nth, fmt.Errorf("to b: %w", why))
		require.Equal(t, why == world.ErrDeadEnd, len(checks(w).Violations) == 0)
	}
}
