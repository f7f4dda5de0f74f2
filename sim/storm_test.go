// The storm in small, as part of every test run.

package sim

import (
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

// TestClocksDrift: a process finds the moment at which its own clock shows a time, fast or slow.
func TestClocksDrift(t *testing.T) {
	for _, drift := range []int64{0, 1, 500, -500, 100_000} {
		p := &proc{w: &world{}, origin: -time.Hour, drift: drift}
		for _, clock := range []time.Duration{time.Hour, time.Hour + 7, 2*time.Hour + 123_456_789, 30 * time.Hour} {
			at := p.reaches(clock)
			require.GreaterOrEqual(t, p.clockAt(at), clock)
			require.Less(t, p.clockAt(at-3), clock)
		}
	}
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
		{"a message is nowhere", func(p *proc, id route.TypeID) { p.w.book.write(p, id, "a", 20) }, []string{"lost"}},
		{"the budget leaks", func(p *proc, _ route.TypeID) { p.parked.Take(59) }, []string{"bounds"}},
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
