// Tests of the model: the protocol holds in a small matrix, every rule is needed, the search finds what is there.

package model

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestHandOff looks at every state of the small matrix (SHD-7, SHD-8, SHD-9).
func TestHandOff(t *testing.T) {
	r := Prove(Options{Runs: Runs(false), States: 1_000_000, Workers: 2})
	for _, f := range r.Failed {
		t.Errorf("%s: %s\n  %s", f.Name, f.Violation, strings.Join(f.Steps, "\n  "))
	}
	require.Equal(t, r.Runs, r.Complete)
	require.Greater(t, r.Runs, 30)
	require.Greater(t, r.States, 100_000)
}

// TestEveryRuleIsNeeded switches off one rule after the other: what each is there for is found, and
// docs/contributing/model.md says so.
func TestEveryRuleIsNeeded(t *testing.T) {
	r := Prove(Options{Needs: Needs(), States: 1_000_000, Workers: 2})
	require.Empty(t, r.Missed)
	require.Equal(t, len(Rules()), r.BrokenRulesFound)
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "contributing", "model.md"))
	require.NoError(t, err)
	for i, f := range r.Found {
		require.NotEmpty(t, f.Steps, f.Name)
		kind, _, _ := strings.Cut(f.Violation, ":")
		row := regexp.MustCompile("(?m)^\\| `" + needs[i].rule.String() + "` \\| .* \\| " + kind + "\\b.*\\|$")
		require.Regexp(t, row, string(text), "docs/contributing/model.md on %s", f.Name)
	}
}

// TestEveryRuleHasARow holds names and rows against the rules.
func TestEveryRuleHasARow(t *testing.T) {
	var all Rule
	for _, n := range needs {
		require.Zero(t, all&n.rule, n.rule.String())
		all |= n.rule
	}
	require.Equal(t, lastRule-1, all)
	require.Len(t, rules, len(needs))
	for _, name := range Rules() {
		r, ok := RuleOf(name)
		require.True(t, ok)
		require.Equal(t, name, r.String())
	}
	_, ok := RuleOf("no-rule")
	require.False(t, ok)
}

// TestRunsHaveNames holds that a run can be picked by its name.
func TestRunsHaveNames(t *testing.T) {
	var names []string
	for _, c := range append(Runs(true), Needs()...) {
		require.NotEmpty(t, c.Name)
		names = append(names, c.Name)
	}
	slices.Sort(names)
	require.Len(t, slices.Compact(slices.Clone(names)), len(names))
}

// TestCodeKeepsStates takes random walks: what is encoded and decoded has the same next steps.
func TestCodeKeepsStates(t *testing.T) {
	for _, c := range Runs(true) {
		w := c.begin()
		for n := range 60 {
			b := c.encode(nil, w)
			var back world
			c.decode(b, &back)
			require.Equal(t, b, c.encode(nil, &back), c.Name)
			acts := c.actions(w, nil)
			require.Equal(t, acts, c.actions(&back, nil), c.Name)
			if len(acts) == 0 {
				break
			}
			a := acts[(n*7+3)%len(acts)]
			require.NotEmpty(t, c.text(w, a))
			s := actorIn(&c, w)
			s.run(a)
			require.Empty(t, s.bad, c.Name)
		}
	}
}

// TestSearchIsBounded holds the bound on states, and that one run is like the next.
func TestSearchIsBounded(t *testing.T) {
	c := base("bounded", 1)
	whole := Explore(c, 1_000_000, nil)
	require.True(t, whole.Complete)
	again := Explore(c, 1_000_000, nil)
	again.Seconds = whole.Seconds
	require.Equal(t, whole, again)
	some := Explore(c, 100, nil)
	require.False(t, some.Complete)
	require.Empty(t, some.Violation)
	require.Less(t, some.States, whole.States)
}

// TestDeadEnds holds the check that every state has a way out.
func TestDeadEnds(t *testing.T) {
	var w ways
	for _, s := range []struct {
		to    []uint32
		rests bool
	}{{[]uint32{1, 2}, false}, {[]uint32{3}, false}, {[]uint32{2}, false}, {nil, true}} {
		for _, to := range s.to {
			w.step(to)
		}
		w.end(s.rests)
	}
	at, found := w.dead()
	require.True(t, found)
	require.Equal(t, 2, at)
	w.rests[2] = true
	_, found = w.dead()
	require.False(t, found)
}
