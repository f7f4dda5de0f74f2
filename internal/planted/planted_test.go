// Tests of the mutation check on a tiny module: what is caught, what gets away, and what is the list's own fault.

package main

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
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
	always = bug{Name: "always-wrong", File: "lib/lib.go", Old: "return a + b", New: "return a - b", Seeds: 3}
	late   = bug{Name: "wrong-from-seed-seven", File: "lib/lib.go", Old: "return a + b",
		New: "if a >= 7 { b++ }; return a + b", Seeds: 10}
	tested = bug{Name: "tested", File: "lib/lib.go", Old: "return a + b", New: "return a", Package: "./lib",
		Run: "TestAdd"}
	harmless = bug{Name: "harmless", File: "lib/lib.go", Old: "return a + b", New: "return b + a", Seeds: 3}
	unseen   = bug{Name: "unseen", File: "lib/lib.go", Old: "Add(a, a)", New: "Add(a, 1)", Package: "./lib",
		Run: "TestAdd"}
	crash = bug{Name: "crash", File: "cmd/kith/main.go", Old: "var failures", New: "os.Exit(9); var failures",
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
		{"old text gone", "stands 0 times in lib/lib.go", []bug{with(always, func(b *bug) { b.Old = "return a * b" })}},
		{"old text twice", "stands 4 times in lib/lib.go", []bug{with(always, func(b *bug) { b.Old = "return" })}},
		{"no such file", "no such file", []bug{with(always, func(b *bug) { b.File = "lib/gone.go" })}},
		{"file outside", "not inside the module", []bug{with(always, func(b *bug) { b.File = "../x.go" })}},
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

// TestRealListIsWhole holds that the real list has not rotted: every entry is well formed and its old text stands
// exactly once.
func TestRealListIsWhole(t *testing.T) {
	require.GreaterOrEqual(t, len(bugs), 30)
	require.NoError(t, checkAll(bugs))
	for i := range bugs {
		_, _, err := bugs[i].mutate(filepath.Join("..", ".."))
		require.NoError(t, err)
	}
}

// TestSlowPathIsForStorms holds that storms catch at least half of what is planted into the data plane beyond the fast
// path, and that what counts for it is there: a package or file that is renamed does not drop out of the count.
func TestSlowPathIsForStorms(t *testing.T) {
	root := filepath.Join("..", "..")
	storms, all, err := slowShare(root, bugs)
	require.NoError(t, err)
	require.GreaterOrEqual(t, all, 40)
	require.GreaterOrEqual(t, 2*storms, all, "%d of %d are for storms", storms, all)
	for _, room := range slowRooms {
		require.DirExists(t, filepath.Join(root, filepath.FromSlash(room)))
	}
	for _, file := range slowFiles {
		require.FileExists(t, filepath.Join(root, "internal", "driver", file))
	}
	require.True(t, slow("internal/plane/drain.go"))
	require.True(t, slow("internal/driver/ask.go"))
	require.False(t, slow("internal/driver/tls.go"))
	require.False(t, slow("shard/host.go"))
	require.False(t, slow("internal/exec/stall.go"))
}

// TestPrintList holds what the list says of each entry.
func TestPrintList(t *testing.T) {
	var out strings.Builder
	require.NoError(t, printList(&out, filepath.Join("testdata", "tiny"), []bug{always, tested}))
	require.Regexp(t, `(?m)^always-wrong +lib/lib.go +storm$`, out.String())
	require.Regexp(t, `(?m)^tested +lib/lib.go +test ./lib TestAdd$`, out.String())
	require.Regexp(t, `slow path of the data plane: 0 bugs, 0 of them for storms\n$`, out.String())
	gone := bug{Name: "gone", File: "lib/gone.go", Old: "a", New: "b", Seeds: 1}
	require.ErrorContains(t, printList(&out, filepath.Join("testdata", "tiny"), []bug{gone}), "no such file")
}
