// Tests of the model: the rules hold in the small runs, and every one is needed.

package tenure

import (
	"hash/maphash"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/base/long"
)

// TestTenure looks at every state of the small runs (MEM-10, AVL-5).
func TestTenure(t *testing.T) {
	r := Prove(Runs(false), nil, 2_000_000, 2, nil)
	for _, f := range r.Failed {
		t.Errorf("%s: %s\n  %s", f.Name, f.Violation, strings.Join(f.Steps, "\n  "))
	}
	require.Equal(t, r.Runs, r.Complete)
	require.Greater(t, r.States, 5_000)
}

// slow are the rules without which something is found only after many states.
var slow = downFirst | wordsNameOthers | joinersReport | convergedJoins | sameList | wordsOfMembers | ordersOfMembers |
	seekerMarks | ordersCarry | emptiedFirst | seenByAll | quorumStays

// TestRulesAreNeeded switches off one rule after the other: what each is there for is found, and
// docs/contributing/tenure.md says so (MEM-10).
func TestRulesAreNeeded(t *testing.T) {
	table(t)
	needed(t, func(r Rule) bool { return r&slow == 0 })
}

// TestLongRulesAreNeeded does the same with the others.
func TestLongRulesAreNeeded(t *testing.T) {
	long.Test(t)
	needed(t, func(r Rule) bool { return r&slow != 0 })
}

func needed(t *testing.T, wanted func(Rule) bool) {
	var some []Config
	for _, c := range Needs() {
		if wanted(c.Broken) {
			some = append(some, c)
		}
	}
	r := Prove(nil, some, 4_000_000, 2, nil)
	require.Empty(t, r.Missed)
	text := page(t)
	for i, f := range r.Found {
		require.NotEmpty(t, f.Steps, f.Name)
		kind, _, _ := strings.Cut(f.Violation, ":")
		row := regexp.MustCompile("(?m)^\\| `" + some[i].Broken.String() + "` \\| .* \\| " + kind + "\\b.*\\|$")
		require.Regexp(t, row, text, "docs/contributing/tenure.md on %s", f.Name)
	}
}

func page(t *testing.T) string {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", "contributing", "tenure.md"))
	require.NoError(t, err)
	return string(text)
}

// table holds that the page lists every rule and every second fence once, in the order of the code.
func table(t *testing.T) {
	var rows []string
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z-]+)` \\|").FindAllStringSubmatch(page(t), -1) {
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
}

// TestLongSecondFences holds what the page says of them: nothing is found without. The run without lower-writer has
// more states than can be held: it is looked at up to a bound.
func TestLongSecondFences(t *testing.T) {
	long.Test(t)
	r := Prove(Fences(), nil, 500_000, 2, nil)
	require.Empty(t, r.Failed)
	require.Equal(t, r.Runs-1, r.Complete)
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

// sight is what a state shows but what is dropped because nobody reads it any more.
type sight struct {
	alive, farewells        set
	written                 uint8
	view                    [nodes]view
	fence, left, promised   [nodes]uint8
	reign                   [nodes]reign
	over                    [nodes][lists]set
	crashes, mistakes, news uint8
}

func (c *compiled) sees(s *state) sight {
	v := sight{alive: s.alive, farewells: s.farewells, written: s.written, promised: s.promised, reign: s.reign,
		crashes: s.crashes, mistakes: s.mistakes, news: s.writes + s.refounds + s.reigns + s.prunes}
	for x := range c.n {
		v.reign[x].rests = [epochs]set{}
		v.fence[x], v.left[x], v.over[x] = s.own[x].fence, c.left(s, x), s.seat[x].over
		if s.alive.has(x) {
			v.view[x] = s.view[x]
			v.view[x].seen = 0
		}
	}
	return v
}

// sights returns all that is seen in a run.
func sights(c Config) (all map[sight]bool, states int) {
	all = map[sight]bool{}
	s := &search{c: compile(c), seed: maphash.MakeSeed(), seen: map[uint64]int32{}}
	s.add(s.c.begin(), origin{parent: -1})
	for len(s.next) > 0 {
		for i := range s.next {
			all[s.c.sees(&s.next[i])] = true
		}
		s.first += int32(len(s.front))
		s.front, s.next = s.next, s.front[:0]
		s.level(1 << 30)
	}
	return all, len(s.origins)
}

// TestDroppingChangesNothing: a run in which states keep what nobody reads any more has more states, and nothing is
// seen in one that is not seen in the other.
func TestDroppingChangesNothing(t *testing.T) {
	dying := refound.with(func(c *Config) { c.Mistakes, c.Crashes, c.Refounds = 1, 1, 0 })
	for _, c := range append(Runs(false), dying) {
		few, less := sights(c)
		c.Whole = true
		all, more := sights(c)
		require.Greater(t, more, less, c.Name)
		require.Equal(t, len(all), len(few), c.Name)
		for v := range all { // each is looked up alone: no order
			require.True(t, few[v], "%s: %+v", c.Name, v)
		}
	}
}
