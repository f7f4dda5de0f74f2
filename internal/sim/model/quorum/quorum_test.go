// Tests of the model: the protocol holds in the small runs, and every rule is needed.

package quorum

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestQuorum looks at every state of the small runs (SHD-11).
func TestQuorum(t *testing.T) {
	r := Prove(Runs(false), nil, 1_000_000, 2)
	for _, f := range r.Failed {
		t.Errorf("%s: %s\n  %s", f.Name, f.Violation, strings.Join(f.Steps, "\n  "))
	}
	require.Equal(t, r.Runs, r.Complete)
	require.Greater(t, r.States, 10_000)
}

// TestEveryRuleIsNeeded switches off one rule after the other: what each is there for is found, and
// docs/contributing/quorum.md says so (SHD-11).
func TestEveryRuleIsNeeded(t *testing.T) {
	needs := Needs()
	r := Prove(nil, needs, 1_000_000, 2)
	require.Empty(t, r.Missed)
	require.Len(t, Rules(), r.BrokenRulesFound)
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", "contributing", "quorum.md"))
	require.NoError(t, err)
	all := Rule(0)
	for i, f := range r.Found {
		require.NotEmpty(t, f.Steps, f.Name)
		kind, _, _ := strings.Cut(f.Violation, ":")
		name := needs[i].Broken.String()
		row := regexp.MustCompile("(?m)^\\| `" + name + "` \\| .* \\| " + kind + "\\b.*\\|$")
		require.Regexp(t, row, string(text), "docs/contributing/quorum.md on %s", f.Name)
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

// TestNamesDoNotMatter holds that replicas which no set tells apart are one to the search, and no others are.
func TestNamesDoNotMatter(t *testing.T) {
	c := compile(&Config{Shards: []Shard{{Owners: 2, Wishes: "124"}}})
	require.Equal(t, [][]int{{0, 1}, {2}, {3}}, c.classes)
	a, b := c.begin(), c.begin()
	for i, s := range []*state{a, b} {
		s.s[0].r[i] = replica{promise: 2, disk: 2, fence: 1, number: 1, h: history{1}}
		s.s[0].o[1].got = only(i)
	}
	names := []int{0, 1, 2, 3, 4, 5}
	c.settle(a, nil)
	c.settle(b, names)
	require.Equal(t, a, b)
	require.Equal(t, c.encode(nil, a), c.encode(nil, b))
	b.swap(1, 3)
	c.settle(b, nil)
	require.NotEqual(t, a, b)
}
