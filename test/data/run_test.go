// Tests of the whole: real processes, and mistakes that are planted.

package main

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/base/long"
	"github.com/kith-io/kith/internal/cli/env"
	"github.com/kith-io/kith/internal/cli/env/envtest"
)

// TestMain lets the test binary be the program, as its own children need.
func TestMain(m *testing.M) {
	envtest.Main(m, map[string]func() int{"data": func() int { return execute(os.Args[1:], env.Of("data")) }})
}

// program runs the command in this process and returns exit code and output; children are this test binary.
func program(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	return envtest.Run(t, execute, "data", args...)
}

func TestWrongCommandLines(t *testing.T) {
	envtest.Wrong(t, program, [][2]string{
		{"--minutes=0", "--minutes must be"},
		{"--rate=0.5", "--rate must be"},
		{"--only=rain", "\"rain\" is none of"},
		{"--break=heart", "--break"},
	})
}

// A seed draws the same faults each time, each kind once before any comes again.
func TestFaultsAreAFunctionOfTheSeed(t *testing.T) {
	kinds, err := kindsOf(nil)
	require.NoError(t, err)
	for seed := range uint64(50) {
		a, b := newDraws(seed, kinds), newDraws(seed, kinds)
		for range 3 {
			came := map[string]bool{}
			for range kinds {
				f := a.next()
				require.Equal(t, f, b.next())
				came[f.kind] = true
				require.True(t, f.many <= 2 || f.kind == faultLeave && f.many == nodes)
			}
			require.Len(t, came, len(kinds))
		}
	}
}

// A short run of each fault finds nothing wrong (DYN-1 to DYN-4).
func TestFaults(t *testing.T) {
	code, out, said := program(t, "--minutes=0.2", "--seed=1", "--rate=20", "--only=kill,empty,bit,power", "--out="+t.TempDir())
	require.Equal(t, env.ExitOK, code, "%s\n%s", out, said)
	require.Contains(t, out, "data {")
	require.Contains(t, out, "\"lost\":0")
}

// TestLongDisksGoOneByOne: all disks leave for good, and others come, under writes; nothing is lost (DYN-1).
func TestLongDisksGoOneByOne(t *testing.T) {
	long.Test(t)
	code, out, said := program(t, "--minutes=0.05", "--seed=1", "--only=leave", "--out="+t.TempDir())
	require.Equal(t, env.ExitOK, code, "%s\n%s", out, said)
	require.Contains(t, out, "\"left\":5,\"needed\":0")
}

// Mistakes that are planted are found: what was acknowledged and not written, and reads of what was there before.
func TestPlantedMistakes(t *testing.T) {
	for mistake, law := range map[string]string{"forget": "\"linearizable\":false", "stale": "\"linearizable\":false"} {
		code, out, said := program(t, "--minutes=0.1", "--seed=1", "--only=none", "--break="+mistake, "--out="+t.TempDir())
		require.Equal(t, env.ExitFailed, code, "%s: %s\n%s", mistake, out, said)
		require.Contains(t, out, law, mistake)
		require.NotContains(t, out, "\"lost\":0,\"stale_reads\":0", mistake)
	}
}

// TestJudge: what W + R > N alone allows is no register: one reads a write that has not returned, and then it is not
// there. A write that nobody has heard of may be missing.
func TestJudge(t *testing.T) {
	at := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
	history := []step{
		{Register: "r", Write: 1, From: at(0), To: at(1), Outcome: done},
		{Register: "r", Caller: 1, Write: 2, From: at(2), To: at(9), Outcome: unknown},
		{Register: "r", Caller: 2, Read: 1, From: at(3), To: at(4), Outcome: done},
	}
	require.True(t, judge(history).Judged)
	history = append(history, step{Register: "r", Caller: 2, Read: 2, From: at(5), To: at(6), Outcome: done})
	require.True(t, judge(history).Judged)
	j := judge(append(history, step{Register: "r", Caller: 3, Read: 1, From: at(7), To: at(8), Outcome: done}))
	require.False(t, j.Judged)
	require.Equal(t, "r", strings.Join(j.violating, ""))
}

// TestSets: a read has all marks that were acknowledged before it began, and the last one has all.
func TestSets(t *testing.T) {
	adds := []add{{"k", 1, 5}, {"k", 2, 7}, {"other", 3, 1}}
	has := func(all ...int64) map[int64]bool {
		m := map[int64]bool{}
		for _, n := range all {
			m[n] = true
		}
		return m
	}
	late, lost := stale(adds, []look{{"k", has(1), 6}, {"k", has(), 4}}, map[string]map[int64]bool{"k": has(1, 2, 9)})
	require.Zero(t, late)
	require.Empty(t, lost)
	late, lost = stale(adds, []look{{"k", has(2), 8}}, map[string]map[int64]bool{"k": has(2)})
	require.Equal(t, 1, late)
	require.Equal(t, adds[:1], lost)
}
