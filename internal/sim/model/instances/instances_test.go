// Tests of the model: the rules hold, every one is needed, and the page says so.

package instances

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/internal/base/long"
	"github.com/kith-io/kith/internal/core/partition"
)

func holds(t *testing.T, runs []Config) {
	r := Prove(runs, nil, 2_000_000, 2)
	for _, f := range r.Failed {
		t.Errorf("%s: %s\n  %s", f.Name, f.Violation, strings.Join(f.Steps, "\n  "))
	}
	require.Equal(t, r.Runs, r.Complete)
	require.Greater(t, r.States, 50_000)
}

// TestInstances looks at every state of the small runs (PRT-4).
func TestInstances(t *testing.T) { holds(t, Runs(false)) }

// TestLongInstances looks at every state of all runs (PRT-4).
func TestLongInstances(t *testing.T) {
	long.Test(t)
	holds(t, Runs(true))
}

// TestRulesAreNeeded switches off one rule after the other: what each is there for is found, and
// docs/contributing/instances.md says so (PRT-4).
func TestRulesAreNeeded(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", "contributing", "instances.md"))
	require.NoError(t, err)
	text := string(b)
	var rows []string
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z-]+)` \\|").FindAllStringSubmatch(text, -1) {
		rows = append(rows, m[1])
	}
	require.Equal(t, Rules(), rows)
	all := Rule(0)
	for _, name := range Rules() {
		r, ok := RuleOf(name)
		require.True(t, ok)
		require.Equal(t, name, r.String())
		all |= r
	}
	require.Equal(t, lastFence-1, all|lastRule)
	_, ok := RuleOf("no-rule")
	require.False(t, ok)
	needs := Needs()
	r := Prove(nil, needs, 1_000_000, 2)
	require.Empty(t, r.Missed)
	for i, f := range r.Found {
		require.NotEmpty(t, f.Steps, f.Name)
		kind, _, _ := strings.Cut(f.Violation, ":")
		row := regexp.MustCompile("(?m)^\\| `" + needs[i].Broken.String() + "` \\| .* \\| " + kind + "\\b.*\\|$")
		require.Regexp(t, row, text, "docs/contributing/instances.md on %s", f.Name)
	}
}

// TestSecondFences holds what the page says of them: nothing is found without.
func TestSecondFences(t *testing.T) {
	r := Prove(Fences(), nil, 1_000_000, 2)
	require.Empty(t, r.Failed)
	require.Equal(t, r.Runs, r.Complete)
}

// TestTablesMerge holds the model's merge against that of the code, for what nodes meet in a run.
func TestTablesMerge(t *testing.T) {
	c := compile(stateless.with(forthAndBack, crashing))
	s, pairs := newSearch(c), map[[2]view]bool{}
	s.add(c.begin(), origin{parent: -1})
	for len(s.next) > 0 && len(pairs) < 3000 {
		for i := range s.next {
			for x := range nodes {
				for y := range nodes {
					if f := &s.next[i]; f.alive.has(x) && f.alive.has(y) && f.view[x] != f.view[y] {
						pairs[[2]view{f.view[x], f.view[y]}] = true
					}
				}
			}
		}
		s.first += int32(len(s.front))
		s.front, s.next = s.next, nil
		s.level(1_000_000)
	}
	require.Greater(t, len(pairs), 300)
	for p := range pairs {
		m := c.merge(&p[0], &p[1])
		want := partition.Merge(p[0].table(c), p[1].table(c))
		require.True(t, partition.Equal(want, m.table(c)), "%v and %v", p[0], p[1])
	}
}

func (v *view) table(c *compiled) partition.Table {
	return partition.Table{v.partitionOf(c.Way, slots)}
}

// TestSearchIsBounded holds the bound on states, and that one run is like the next.
func TestSearchIsBounded(t *testing.T) {
	c := Runs(false)[1]
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

// TestAllHandoffsAreHere: each hand-off that package cluster accepts, and buffers nothing, has a run.
func TestAllHandoffsAreHere(t *testing.T) {
	has := map[cluster.Handoff]bool{}
	for _, r := range Runs(true) {
		has[r.Way] = true
	}
	for old := range cluster.OldDrops + 1 {
		for late := range cluster.LateDrops + 1 {
			h := cluster.Handoff{Old: old, Late: late}
			require.Equal(t, h.Validate() == nil, has[h], "%v", h)
		}
	}
	require.True(t, has[cluster.Ordered])
}
