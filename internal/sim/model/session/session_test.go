// Tests of the model: the rules hold in all runs, and every one is needed.

package session

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSession looks at every state of all runs (MEM-10, AVL-5).
func TestSession(t *testing.T) {
	r := Prove(Runs(), nil, 2_000_000)
	for _, f := range r.Failed {
		t.Errorf("%s: %s\n  %s", f.Name, f.Violation, strings.Join(f.Steps, "\n  "))
	}
	require.Equal(t, r.Runs, r.Complete)
	require.Greater(t, r.States, 10_000)
}

// TestEveryRuleIsNeeded switches off one rule after the other: what each is there for is found, and
// docs/contributing/session.md says so.
func TestEveryRuleIsNeeded(t *testing.T) {
	needs := Needs()
	r := Prove(nil, needs, 2_000_000)
	require.Empty(t, r.Missed)
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", "contributing", "session.md"))
	require.NoError(t, err)
	all := Rule(0)
	for i, f := range r.Found {
		require.NotEmpty(t, f.Steps, f.Name)
		kind, _, _ := strings.Cut(f.Violation, ":")
		name := needs[i].Broken.String()
		row := regexp.MustCompile("(?m)^\\| `" + name + "` \\| .* \\| " + kind + "\\b.*\\|$")
		require.Regexp(t, row, string(text), "docs/contributing/session.md on %s", f.Name)
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
	c := Runs()[0]
	whole := Explore(c, 2_000_000)
	require.True(t, whole.Complete)
	again := Explore(c, 2_000_000)
	again.Seconds = whole.Seconds
	require.Equal(t, whole, again)
	some := Explore(c, 100)
	require.False(t, some.Complete)
	require.Empty(t, some.Violation)
	require.Less(t, some.States, whole.States)
}
