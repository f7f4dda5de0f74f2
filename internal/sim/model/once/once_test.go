// Tests of the model: the protocol holds in the small runs, and every rule is needed.

package once

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestOnce looks at every state of the small runs (SHD-12).
func TestOnce(t *testing.T) {
	r := Prove(Runs(false), nil, 1_000_000, 2)
	for _, f := range r.Failed {
		t.Errorf("%s: %s\n  %s", f.Name, f.Violation, strings.Join(f.Steps, "\n  "))
	}
	require.Equal(t, r.Runs, r.Complete)
	require.Greater(t, r.States, 50_000)
}

// TestEveryRuleIsNeeded switches off one rule after the other: what each is there for is found, and
// docs/contributing/once.md says so (SHD-12).
func TestEveryRuleIsNeeded(t *testing.T) {
	needs := Needs()
	r := Prove(nil, needs, 1_000_000, 2)
	require.Empty(t, r.Missed)
	require.Len(t, Rules(), r.BrokenRulesFound)
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", "contributing", "once.md"))
	require.NoError(t, err)
	all := Rule(0)
	for i, f := range r.Found {
		require.NotEmpty(t, f.Steps, f.Name)
		kind, _, _ := strings.Cut(f.Violation, ":")
		name := needs[i].Broken.String()
		row := regexp.MustCompile("(?m)^\\| `" + name + "` \\| .* \\| " + kind + "\\b.*\\|$")
		require.Regexp(t, row, string(text), "docs/contributing/once.md on %s", f.Name)
		rule, ok := RuleOf(name)
		require.True(t, ok)
		all |= rule
	}
	require.Equal(t, lastRule-1, all)
	_, ok := RuleOf("no-rule")
	require.False(t, ok)
}

// TestSearchIsBounded holds the bound on states, and that one run is like the next.
func TestSearchIsBounded(t *testing.T) {
	c := Runs(false)[0]
	whole := Explore(c, 1_000_000)
	require.True(t, whole.Complete)
	again := Explore(c, 1_000_000)
	again.Seconds = whole.Seconds
	require.Equal(t, whole, again)
	some := Explore(c, 100)
	require.False(t, some.Complete)
	require.Empty(t, some.Violation)
	require.Less(t, some.States, whole.States)
}
