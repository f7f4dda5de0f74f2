// The storm in small, as part of every test run.

package sim

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/route"
)

// TestStorm runs a few seeds; `make storm SEEDS=500` runs many.
func TestStorm(t *testing.T) {
	seeds := 20
	if testing.Short() {
		seeds = 4
	}
	r := Storm(StormConfig{Seeds: seeds, First: 1, TraceDir: t.TempDir()})
	for _, f := range r.Failures {
		for _, v := range f.Violations {
			t.Errorf("seed %d: %s (%s)", f.Seed, v, f.Replay)
		}
	}
	require.Equal(t, 0, r.Violations)
	require.Greater(t, r.Delivered, 100*seeds, "a storm that delivers little shows little")
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
		fault func(p *proc, id route.TypeID)
		rules []string
	}{
		{"all come out", func(*proc, route.TypeID) {}, nil},
		{"a message is nowhere", func(p *proc, id route.TypeID) {
			p.w.book.write(p, id, "a", 20)
		}, []string{"lost"}},
		{"the budget leaks", func(p *proc, _ route.TypeID) { feignParked(p, 59) }, []string{"bounds"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			typ := &entityType{Type: entity.Type{Name: "far", Shards: 1, Role: "nobody's", Mode: entity.Inline,
				New: func(string, route.Fence) entity.Handler { return nil }}}
			w := formed(t, 3, Config{Data: DataConfig{ParkWait: 20 * time.Second}}, typ)
			s, book := &storm{w: w, check: checks(w)}, &w.book
			p, dead := w.hosts[1].proc, w.hosts[2].proc
			r := p.region(route.TypeOf("far"))
			first, _ := book.write(dead, r.id, "a", 20)
			dead.crash(true)
			w.after(4*time.Second, func() { // it arrives, and its handler sends another
				w.fate(first, fateDelivered, "")
				second, _ := book.write(p, r.id, "b", 20)
				_, err := r.send("b", second, 0)
				require.NoError(t, err)
				tc.fault(p, r.id)
			})
			s.demandFates()
			require.Zero(t, w.untold(), "the dead holds nothing of others")
			w.audit()
			var rules []string
			for _, v := range checks(w).violations {
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
		require.Empty(t, newStorm(seed, StormDraws(), false).drawn())
	}
	for _, what := range []string{"a", "role", "at", "an", "first", "sleeps"} {
		require.True(t, drawn[what], what)
	}
	s := newStorm(7, []string{OffTrials}, false)
	require.Nil(t, s.trial)
	require.Equal(t, newStorm(7, nil, false).mix, s.mix)
}

// TestSendToTheRemoved: that the peer is lost is a good reason to reject a message whose route leads to a member that
// was removed here, and no other time.
func TestSendToTheRemoved(t *testing.T) {
	for _, why := range []error{errDeadEnd, route.ErrPeerLost} {
		w := formed(t, 1, Config{})
		a := w.hosts[0].proc
		_, nth := w.book.write(a, route.TypeOf("t"), "e", ledgerSize)
		(&storm{w: w, check: checks(w)}).rejected(a, nth, fmt.Errorf("to b: %w", why))
		require.Equal(t, why == errDeadEnd, len(checks(w).violations) == 0)
	}
}
