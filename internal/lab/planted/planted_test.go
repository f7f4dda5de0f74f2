// Tests of the mutation check on a tiny module: what is caught, what gets away, and what is the list's own fault.

package main

import (
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/sim/model"
)

// check runs the whole check over the tiny module.
func check(t *testing.T, list ...bug) (summary, string, error) {
	t.Helper()
	t.Setenv("GOFLAGS", "")
	t.Setenv("GOWORK", "off")
	root, err := filepath.Abs(filepath.Join("testdata", "tiny"))
	require.NoError(t, err)
	var progress strings.Builder
	s, err := checkNets(context.Background(), root, list, 2*time.Minute, &progress)
	return s, progress.String(), err
}

var (
	always = bug{Name: "always-wrong", Rules: "sums", In: "lib.Add", Old: "return a + b", New: "return a - b", Seeds: 3}
	late   = bug{Name: "wrong-from-seed-seven", Rules: "sums", In: "lib.Add", Old: "return a + b",
		New: "if a >= 7 { b++ }; return a + b", Seeds: 10}
	tested = bug{Name: "tested", Rules: "sums", In: "lib.Add", Old: "return a + b", New: "return a",
		Package: "./lib", Run: "TestAdd"}
	harmless = bug{Name: "harmless", Rules: "sums", In: "lib.Add", Old: "return a + b", New: "return b + a", Seeds: 3}
	unseen   = bug{Name: "unseen", Rules: "sums", In: "lib.Twice", Old: "Add(a, a)", New: "Add(a, 1)",
		Package: "./lib", Run: "TestAdd"}
	crash = bug{Name: "crash", Rules: "sums", In: "cmd/lab.main", Old: "var failures", New: "os.Exit(9); var failures",
		Seeds: 3}
)

// TestCheckNets plants bugs that the nets catch and bugs that they miss, in one run.
func TestCheckNets(t *testing.T) {
	s, progress, err := check(t, always, late, tested, harmless, unseen, crash)
	require.NoError(t, err)
	require.Positive(t, s.WallSeconds)
	s.WallSeconds, s.CPUMax = 0, 0
	require.Equal(t, summary{Bugs: 6, Caught: 3, Missed: 3, MissedNames: []string{"harmless", "unseen", "crash"}}, s)
	require.Regexp(t, `1/6 +caught +always-wrong .* by storm, seed 1\n`, progress)
	require.Regexp(t, `2/6 +caught +wrong-from-seed-seven .* by storm, seed 7\n`, progress)
	require.Regexp(t, `3/6 +caught +tested .* by test TestAdd\n`, progress)
	require.Regexp(t, `4/6 +MISSED +harmless .* nothing was seen\n`, progress)
	require.Regexp(t, `5/6 +MISSED +unseen .* nothing was seen\n`, progress)
	require.Regexp(t, `6/6 +MISSED +crash .* failed without a violation: exit status 9\n`, progress)
}

// TestListFaults holds what stops the check instead of passing for a caught bug.
func TestListFaults(t *testing.T) {
	with := func(b bug, change func(*bug)) bug {
		change(&b)
		return b
	}
	for _, c := range []struct {
		name, want string
		list       []bug
	}{
		{"empty list", "list of planted bugs is empty", nil},
		{"too many", "109 planted bugs, at most 108", make([]bug, mostBugs+1)},
		{"no rule", "names no rule", []bug{with(always, func(b *bug) { b.Rules = "" })}},
		{"two lines", "more than one short line", []bug{with(always, func(b *bug) { b.Old = "return a +\nb" })}},
		{"a long line", "more than one short line", []bug{with(always, func(b *bug) { b.Old = strings.Repeat("a", 101) })}},
		{"old text gone", "stands 0 times in lib.Add", []bug{with(always, func(b *bug) { b.Old = "return a * b" })}},
		{"old text twice", "stands 2 times in lib.Add", []bug{with(always, func(b *bug) { b.Old = "b" })}},
		{"no such place", "declared 0 times", []bug{with(always, func(b *bug) { b.In = "lib.Gone" })}},
		{"outside", "names no declaration", []bug{with(always, func(b *bug) { b.In = "../lib.Add" })}},
		{"no change", "nothing would change", []bug{with(always, func(b *bug) { b.New = b.Old })}},
		{"no net", "needs Seeds, or Package and Run", []bug{with(always, func(b *bug) { b.Seeds = 0 })}},
		{"two nets", "has Seeds and a test", []bug{with(always, func(b *bug) { b.Run = "Test" })}},
		{"bad name", "lower case words", []bug{with(always, func(b *bug) { b.Name = "../x" })}},
		{"same name", "two bugs are named", []bug{always, always}},
		{"does not compile", "always-wrong does not build", []bug{with(always, func(b *bug) { b.New = "return x" })}},
		{"no such test", `no test of ./lib ran for "TestNone"`, []bug{with(tested, func(b *bug) { b.Run = "TestNone" })}},
	} {
		_, _, err := check(t, c.list...)
		require.ErrorContains(t, err, c.want, c.name)
	}
}

// TestNoisyNet holds that a net which fails, or cannot run, without any bug stops the check.
func TestNoisyNet(t *testing.T) {
	var h hunter
	require.NoError(t, h.quiet(catch{Why: passed}, nil))
	require.ErrorContains(t, h.quiet(catch{By: "storm", Seed: 9}, nil), "without any planted bug (by storm, seed 9)")
	require.ErrorContains(t, h.quiet(catch{Why: "the storm failed without a violation"}, nil), "without a violation")
	require.ErrorIs(t, h.quiet(catch{}, context.Canceled), context.Canceled)
}

// TestReadsTheLastLine holds how the storm's answer is read.
func TestReadsTheLastLine(t *testing.T) {
	r := reportOf([]byte("seeds 1 to 5\nstorm {\"violations\":2,\"failures\":[{\"seed\":42},{\"seed\":43}]}\n"), "storm")
	require.Equal(t, 2, *r.Violations)
	require.Equal(t, uint64(42), r.seed())
	require.Zero(t, reportOf([]byte("storm {\"violations\":0}"), "storm").seed())
	for _, text := range []string{"", "storm {}", "storm {\"violations\":", "a storm {\"violations\":2}"} {
		require.Nil(t, reportOf([]byte(text), "storm"), text)
	}
}

// TestRealListIsWhole holds that the real list has not rotted: every entry is well formed and what it changes stands
// exactly once.
func TestRealListIsWhole(t *testing.T) {
	require.NoError(t, checkAll(bugs))
	for i := range bugs {
		_, _, err := bugs[i].mutate(filepath.Join("..", "..", ".."))
		require.NoError(t, err)
	}
}

// Why a rule has no planted bug.
const (
	ownMistake = "what it watches is the simulator's or the storm's own work: no short line of a node breaks it"
	fed        = "no short line of a node breaks it alone: TestCheckersCryOut feeds it"
	noPeer     = "no honest peer breaks it: package flow has a test of its own"
	crewOnly   = "three mistakes in plane.Crew showed nothing in 12 seeds: TestCrewLaw holds it"
	dataTests  = "no bug is listed yet: tests of package replica and TestReplicatedMajoritySurvives hold it"
	tableTests = "no bug is listed yet: TestMergeLaws, TestPlanLaws and TestPlanMovesLittle of package partition hold it"
	endTests   = "no bug is listed yet: tests of package watch and of the ends in package entity hold it"
	bound      = "no bug is listed yet: TestTenureBound has no proof"
	modelOnly  = "lab model switches it off; in the code it is no short line"
)

// unplanted lists the rules that no planted bug breaks, and why.
var unplanted = map[string]string{
	"delivery": ownMistake, "host": ownMistake, "route": ownMistake, "view-self": ownMistake, "rejection": ownMistake,
	"leave-notice": ownMistake, "frame": fed, "downed-without-cause": fed, "removed-without-cause": fed,
	"knows-its-end": fed, "view-order": fed, "credit": noPeer, "pool": crewOnly, "replicated": dataTests,
	"partitions": tableTests, "partition-twice": tableTests, "partition-back": tableTests, "watches": endTests,
	"tenure-bound": bound,

	"queued-markers": modelOnly, "self-asks-fail": modelOnly, "deadline-fails-asks": modelOnly,
	"drop-at-ack": modelOnly, "told-proxies": modelOnly, "proxies-follow": modelOnly, "states-come-last": modelOnly,
}

// outside are rules that neither a checker nor the model knows: the lock by which a process proves the one before it
// dead is the kernel's, and the simulator has none (docs/sharding.md, "Proof of death"). Of the rules of records on
// disks (docs/contributing/quorum.md) it is one: TestMistakesAreFound of package records plants the others.
var outside = []string{"lock", "leave-is-decided"}

// TestEveryRuleIsPlanted holds that each rule of the checkers and of docs/contributing/model.md, and those outside, has
// a planted bug or a reason why not, and that the list names no other rules.
func TestEveryRuleIsPlanted(t *testing.T) {
	rules := slices.Concat(checked(t), model.Rules(), outside)
	require.Greater(t, len(rules), 100)
	planted := map[string]bool{}
	for _, b := range bugs {
		for _, rule := range strings.Fields(b.Rules) {
			require.Contains(t, rules, rule, "of %s", b.Name)
			planted[rule] = true
		}
	}
	for _, rule := range rules {
		require.NotEqual(t, planted[rule], unplanted[rule] != "", "rule %s: either planted or said why not", rule)
	}
	for rule := range unplanted { // each is looked at alone: no order
		require.Contains(t, rules, rule)
	}
}

// checked returns the rules that checkers, simulator and storms watch over: what they name in their violations.
func checked(t *testing.T) (rules []string) {
	t.Helper()
	for _, folder := range []string{"check", "world", "storm"} {
		files, err := filepath.Glob(filepath.Join("..", "..", "sim", folder, "*.go"))
		require.NoError(t, err)
		for _, file := range files {
			parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
			require.NoError(t, err)
			ast.Inspect(parsed, func(n ast.Node) bool {
				call, is := n.(*ast.CallExpr)
				if !is || len(call.Args) < 2 || strings.HasSuffix(file, "_test.go") {
					return true
				}
				if f, is := call.Fun.(*ast.SelectorExpr); is && f.Sel.Name == "Violate" {
					if word, is := call.Args[1].(*ast.BasicLit); is {
						rule, err := strconv.Unquote(word.Value)
						require.NoError(t, err)
						rules = append(rules, rule)
					}
				}
				return true
			})
		}
	}
	slices.Sort(rules)
	return slices.Compact(rules)
}

// TestPrintList holds what the list says of each entry.
func TestPrintList(t *testing.T) {
	var out strings.Builder
	printList(&out, []bug{always, tested})
	require.Regexp(t, `(?m)^always-wrong +sums +lib.Add +storm$`, out.String())
	require.Regexp(t, `(?m)^tested +sums +lib.Add +test ./lib TestAdd$`, out.String())
}
