// Tests of the whole: real processes, and mistakes that are planted.

package main

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/base/long"
	"github.com/kith-io/kith/internal/cli"
	"github.com/kith-io/kith/internal/cli/env"
	"github.com/kith-io/kith/internal/cli/env/envtest"
)

// TestMain lets the test binary be the program, as its own children need.
func TestMain(m *testing.M) {
	envtest.Main(m, map[string]func() int{"durable": func() int { return execute(os.Args[1:], env.Of("durable")) }})
}

// program runs the command in this process and returns exit code and output; children are this test binary.
func program(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	return envtest.Run(t, execute, "durable", args...)
}

func TestWrongCommandLines(t *testing.T) {
	envtest.Wrong(t, program, [][2]string{
		{"--engine=paper", "--engine"},
		{"--minutes=0", "--minutes must be"},
		{"--nodes=2", "--nodes must be"},
		{"--accounts=9", "--accounts must be"},
		{"--rate=0", "--rate must be"},
		{"--accounts=10 --rate=5000 --minutes=60", "would have more than"},
		{"--only=rain", "\"rain\" is none of"},
		{"--only=server", "\"server\" is none of"},
		{"--stable-after=1s", "--stable-after must be"},
		{"--idle=-1s", "--idle must be"},
		{"--break=heart", "--break"},
		{"--engine=quorum --break=unbound", "no way past the fence"},
		{"--only=empty", "\"empty\" is none of"},
		{"--only=cut", "\"cut\" is none of"},
		{"--only=leave", "\"leave\" is none of"},
	})
}

func TestHelp(t *testing.T) {
	code, out, _ := program(t, "--help")
	require.Equal(t, env.ExitOK, code)
	require.Contains(t, out, "--engine")
	require.NotContains(t, out, "answer calls")
}

// A seed draws the same faults each time, each kind once before any comes again, and nothing that the engine, or a run
// of only some, does not have.
func TestFaultsAreAFunctionOfTheSeed(t *testing.T) {
	for _, engine := range []string{sqliteEngine, postgresEngine, etcdEngine, quorumEngine} {
		kinds, err := kindsOf(engine, nil)
		require.NoError(t, err)
		for seed := range uint64(50) {
			a, b := newDraws(seed, 5, engine, kinds), newDraws(seed, 5, engine, kinds)
			for range 4 {
				came := map[string]int{}
				for range kinds {
					f := a.next()
					require.Equal(t, f, b.next())
					came[f.kind]++
					require.NotEqual(t, f.victim, f.other)
					if f.beside != "" {
						require.Contains(t, kinds, f.beside)
					}
				}
				require.Len(t, came, len(kinds))
			}
		}
	}
	d := newDraws(1, 5, sqliteEngine, []string{faultKill})
	for range 50 {
		require.Empty(t, d.next().beside)
	}
}

// try runs a short run and returns its last line.
func try(t *testing.T, args ...string) (code int, r Result) {
	t.Helper()
	code, out, errs := program(t, append(args, "--out="+t.TempDir(), "--seed=1")...)
	if strings.Contains(errs, errNoServer.Error()) {
		t.Skip(errs)
	}
	require.NoError(t, cli.ParseLine([]byte(out), "durable", &r), errs)
	return code, r
}

// Nodes are killed, and nothing is lost.
func TestSmoke(t *testing.T) {
	for _, engine := range []string{sqliteEngine, postgresEngine, etcdEngine, quorumEngine} {
		t.Run(engine, func(t *testing.T) {
			code, r := try(t, "--engine="+engine, "--minutes=0.15", "--only=kill", "--accounts=50", "--rate=50", "--nodes=3")
			require.Zero(t, code, "%+v", r)
			require.Positive(t, r.Faults[faultKill])
			require.Positive(t, r.Transfers)
			require.True(t, r.Register.Judged)
			require.Positive(t, r.Register.Steps)
			require.Positive(t, r.Letters)
		})
	}
}

// TestLongDisksGoOneByOne: all disks leave for good, and others come, under transfers; nothing is lost (DYN-1).
func TestLongDisksGoOneByOne(t *testing.T) {
	long.Test(t)
	code, r := try(t, "--engine=quorum", "--minutes=0.1", "--only=leave", "--rate=20", "--accounts=50")
	require.Zero(t, code, "%+v", r)
	require.Equal(t, 5, r.Left)
}

// A law finds each mistake that can be planted.
func TestLongPlantedMistakes(t *testing.T) {
	long.Test(t)
	for mistake, c := range map[string]struct {
		only  string
		found func(*Result) bool
	}{
		breakEarly:   {faultKill, func(r *Result) bool { return r.Lost > 0 && r.LostCommits > 0 && r.SumError > 0 }},
		breakUnbound: {faultStop + "," + faultLock, func(r *Result) bool { return r.Stale > 0 }},
		breakForget:  {faultKill, func(r *Result) bool { return len(r.Stopped) > 0 }},
		breakAgain:   {faultLock, func(r *Result) bool { return r.AppliedTwice > 0 && r.SumError > 0 }},
		breakMarks:   {faultKill + "," + faultLock, func(r *Result) bool { return r.AppliedTwice > 0 }},
		breakOutbox:  {faultKill + "," + faultStop, func(r *Result) bool { return r.Lost > 0 }},
		breakAlarms:  {faultKill, func(r *Result) bool { return r.Lost > 0 }},
		breakReaders: {faultNone, func(r *Result) bool { return r.DeliveredLost > 0 && r.DeliveredOvertook > 0 }},
		breakStale:   {faultNone, func(r *Result) bool { return r.Register.Violations > 0 }},
	} {
		t.Run(mistake, func(t *testing.T) {
			code, r := try(t, "--minutes=0.5", "--break="+mistake, "--only="+c.only)
			require.Equal(t, env.ExitFailed, code)
			require.True(t, c.found(&r), "%+v", r)
		})
	}
}
