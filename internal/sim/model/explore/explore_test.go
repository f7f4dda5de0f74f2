// Tests of what models share.

package explore

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

type bits uint32

type play struct {
	name   string
	broken bits
}

var rules = Rules[bits, play]{{1, "first", play{name: "a"}}, {4, "second", play{name: "b"}}}

// TestRules: a rule is found by its name, a set prints its names, and a run is made for each.
func TestRules(t *testing.T) {
	require.Equal(t, []string{"first", "second"}, rules.Names())
	second, ok := rules.Of("second")
	require.True(t, ok)
	require.EqualValues(t, 4, second)
	_, ok = rules.Of("third")
	require.False(t, ok)
	require.Equal(t, "first,second", rules.Text(7))
	require.Empty(t, rules.Text(2))
	needs := rules.Needs(func(in play, rule bits, name string) play { return play{in.name + "/" + name, rule} })
	require.Equal(t, []play{{"a/first", 1}, {"b/second", 4}}, needs)
}

// TestProve: a run with a finding fails, one that must find something and does not is missed, whatever ends first.
func TestProve(t *testing.T) {
	runs := []play{{name: "holds"}, {name: "fails"}, {name: "unfinished"}}
	needs := []play{{"found", 1}, {"missed", 4}}
	run := func(p play) Found {
		f := Found{Name: p.name, States: len(p.name), Depth: len(p.name), Complete: p.name != "unfinished"}
		if p.name == "fails" || p.name == "found" {
			f.Violation, f.Complete = "LOST", false
		}
		return f
	}
	for workers := range 4 {
		r := Prove(runs, needs, workers, run, func(p play) string { return rules.Text(p.broken) })
		r.WallSeconds = 0
		require.Equal(t, Result{Runs: 3, Complete: 1, States: 20, Depth: 10, Violations: 1, BrokenRules: 2,
			BrokenRulesFound: 1, Missed: []string{"second"}, Failed: r.Found[1:2], Found: r.Found}, r)
		for i, p := range append(runs, needs...) {
			require.Equal(t, p.name, r.Found[i].Name)
		}
	}
}

// TestLead: states that lead to a good one are good, those behind it and those on a circle of their own are not.
func TestLead(t *testing.T) {
	// 0 to 1 to 2 to 3, 4 and 5 in a circle that 1 leads to, 2 is good
	steps := []Step{{1, 0}, {2, 1}, {3, 2}, {4, 1}, {5, 4}, {4, 5}}
	good := []bool{false, false, true, false, false, false}
	Lead(steps, good)
	require.Equal(t, "[true true true false false false]", fmt.Sprint(good))
	Lead(nil, nil)
}
