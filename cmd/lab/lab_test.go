// Tests of the laboratory's command line: flags, faults, exit codes, last lines.

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/cli/command"
	"github.com/kith-io/kith/internal/cli/env"
	"github.com/kith-io/kith/internal/cli/env/envtest"
	"github.com/kith-io/kith/internal/sim/check"
	"github.com/kith-io/kith/internal/sim/storm"
)

// TestMain lets the test binary be the laboratory, as its own children need, and the node binary.
func TestMain(m *testing.M) {
	envtest.Main(m, map[string]func() int{"lab": func() int { return execute(os.Args[1:], env.Of("lab")) },
		"kith": func() int { return command.Main(command.Name) }})
}

// program runs the command in this process and returns exit code and output; children are this test binary.
func program(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	return envtest.Run(t, execute, "lab", args...)
}

// withKith has commands that need the node binary take the test binary for it.
func withKith(t *testing.T) {
	self, was := envtest.Self(t), kithProgram
	kithProgram = func() (string, error) { return self, nil }
	kithEnv = envtest.Env("kith")
	t.Cleanup(func() { kithProgram, kithEnv = was, nil })
}

func TestHelp(t *testing.T) {
	code, out, _ := program(t, "--help")
	require.Equal(t, env.ExitOK, code)
	for _, want := range []string{"Exit codes:", "storm", "scale", "Real processes:"} {
		require.Contains(t, out, want)
	}
	require.NotContains(t, out, "answer calls", "the child is no business of a user's")
}

func TestWrongCommandLines(t *testing.T) {
	envtest.Wrong(t, program, [][2]string{
		{"", "expected one of"},
		{"storm --seeds=0", "--seeds must be"},
		{"storm --workers=-1", "--workers is negative"},
		{"storm --first=18446744073709551615", "--first is too large"},
		{"storm --without=naps,tea", "--without: \"tea\" is none of"},
		{"bootstrap-test --cases=rain", "no case \"rain\""},
		{"bootstrap-test --margin=0s", "--margin must be"},
		{"starts --starts=0", "--starts must be"},
		{"starts --workers=-1", "--workers is negative"},
		{"scale --nodes=1", "--nodes must be 2 to 10000"},
		{"scale --nodes=10001", "--nodes must be 2 to 10000"},
		{"scale --parts=join,tea", "no part \"tea\""},
		{"scale --crashes=-1", "--crashes must be"},
		{"scale --paths=1025", "--paths must be 0 to 1024"},
		{"kill-test --nodes=1", "--nodes must be 2 to 64"},
		{"kill-test --rounds=0", "--rounds must be 1 to 1000"},
		{"chaos --minutes=0", "--minutes must be"},
		{"partition-test --nodes=2", "--nodes must be 3 to 16"},
		{"partition-test --rounds=0", "--rounds must be 1 to 100"},
		{"partition-test --entities=0", "--entities must be 1 to 1000"},
		{"partition-test --stable-after=10ms", "--stable-after must be"},
		{"partition-test --cases=owners,rain", "no case \"rain\""},
		{"partition-test --net=carrier-pigeon", "--net"},
		{"chaos --nodes=2", "--nodes must be 3 to 16"},
		{"chaos --rounds=-1", "--rounds is negative"},
		{"chaos --net=carrier-pigeon", "--net"},
		{"chaos --only=kill,rain", "no fault \"rain\""},
		{"chaos --asks=0", "--asks must be"},
		{"chaos --tells=-1", "--tells must be"},
		{"chaos --entities=0", "--entities must be"},
		{"chaos --plan=-1", "--plan must be"},
		{"chaos --tenure=4", "--tenure"},
		{"chaos --tenure=3 --session=file", "nodes have one of the two"},
		{"failover --nodes=2", "--nodes must be 3 to 16"},
		{"failover --rounds=0", "--rounds must be 1 to 100"},
		{"failover --entities=0", "--entities must be"},
		{"failover --stable-after=2m", "--stable-after must be 0, or 1s to 1m"},
		{"failover --cases=owner,rain", "no case \"rain\""},
		{"scale-shards --parts=rain", "no part \"rain\""},
		{"scale-shards --shards=3", "--shards must be 4 to 1048576"},
		{"scale-shards --shards=2000000", "--shards must be 4 to 1048576"},
		{"scale-shards --home-shards=0", "--home-shards must be"},
		{"scale-shards --proxy-shards=0", "--proxy-shards must be"},
		{"scale-shards --entities=0", "--entities must be"},
		{"scale-shards --rate=-1", "--rate must not be negative"},
		{"scale-shards --max-moves=-1", "--max-moves must be"},
		{"scale-shards --home-limit=0s", "--home-limit must be positive"},
		{"scale-shards --steady=1ms", "--steady must be"},
		{"scale-shards --limit=0s", "--limit must be positive"},
		{"scale-shards --interval=1ms", "--interval must be"},
		{"rolling --nodes=1", "--nodes must be 2 to 16"},
		{"rolling --rounds=0", "--rounds must be 1 to 1000"},
		{"rolling --together=0", "--together must be"},
		{"rolling --link=20", "a rate is a number and mbit"},
		{"rolling --link=20000mbit", "--link must be"},
		{"rolling --link=20mbit --tls", "--link and --tls"},
		{"rolling --stall=2m", "--stall must be"},
		{"rolling --nodes=2 --stall=1s", "--stall needs a node"},
		{"rolling --nodes=3 --together=3", "--together must be"},
		{"rolling --entities=0", "--entities must be"},
		{"rolling --shards=0", "--shards must be"},
		{"rolling --senders=0", "--senders must be"},
		{"rolling --rate=0", "--rate must be"},
		{"rolling --asks=20001", "--asks must be"},
		{"rolling --pause=-1s", "--pause must be"},
		{"rolling --bound=0s", "--bound must be"},
		{"rolling --mode=lazy", "--mode"},
		{"rolling --work=1ms", "--work and --nested need --mode=blocking"},
		{"rolling --nested=2", "--work and --nested need --mode=blocking"},
		{"rolling --mode=blocking --work=-1s", "--work must be"},
		{"rolling --large=-1", "--large is negative"},
		{"rolling --mode=blocking --nested=-1", "--nested is negative"},
		{"rolling --state=-1", "--state must be 0 to 1MiB"},
		{"rolling --state=2MiB", "--state must be 0 to 1MiB"},
		{"rolling --state=much", "--state"},
		{"rolling --state=1KiB --entities=100000 --rounds=1000", "--entities times --rounds"},
		{"rolling --nodes=1 --rounds=0", "--rounds must be"},
		{"scale-out --from=5", "--from must be"},
		{"scale-out --nodes=17", "--nodes must be 2 to 16"},
		{"scale-out --steady=1ms", "--steady must be"},
		{"scale-out --even=0s", "--even must be"},
		{"scale-out --times=0", "--times must be"},
		{"scale-out --fresh=1", "--fresh must be"},
		{"scale-out --within=0s", "--within must be"},
		{"scale-out --asks=20001", "--asks must be"},
		{"scale --hours=0", "--hours must be"},
		{"scale --rounds=-1", "--rounds must be"},
		{"chaos --moves --only=loss", "with --moves there are"},
	})
}

// The plan of a seed can be read without running anything.
func TestChaosPlan(t *testing.T) {
	code, out, errs := program(t, "chaos", "--plan=2", "--seed=7", "--only=leave")
	require.Equal(t, env.ExitOK, code, errs)
	require.Regexp(t, `^round 1: leave \w+\nround 2: leave \w+\n$`, out)
}

// TestStormsDrawTheirFirstSeed: seeds that nobody has run, when none is given; the one that was drawn is printed.
func TestStormsDrawTheirFirstSeed(t *testing.T) {
	var out strings.Builder
	c, d := stormCmd{seedsCmd: seedsCmd{Seeds: 20}}, stormCmd{seedsCmd: seedsCmd{Seeds: 20}}
	c.pick(&out)
	require.GreaterOrEqual(t, c.First, uint64(1_000_000_000))
	require.Equal(t, fmt.Sprintf("first seed %d, drawn\n", c.First), out.String())
	require.NoError(t, c.Validate())
	d.pick(&strings.Builder{})
	require.NotEqual(t, c.First, d.First)
	given := stormCmd{seedsCmd: seedsCmd{First: 7}}
	given.pick(nil)
	require.Equal(t, uint64(7), given.First)
}

func TestStormLineAndExitCode(t *testing.T) {
	var out bytes.Buffer
	e := &env.Env{Stdout: &out}
	few := storm.Result{Ran: storm.Ran{Seeds: 3, First: 1}}
	require.NoError(t, (&stormCmd{seedsCmd: seedsCmd{JSON: true}}).report(e, few))
	require.Equal(t, 1, strings.Count(out.String(), "\n"), "nothing but the last line")
	out.Reset()
	require.Equal(t, "1 to 3, each once", ranSeeds(&storm.Ran{Seeds: 3, First: 1, Once: true}))
	some := storm.Result{Ran: storm.Ran{Seeds: 3, First: 1, Stopped: true}}
	require.EqualError(t, (&stormCmd{seedsCmd: seedsCmd{Seeds: 500}}).report(e, some), "interrupted after 3 of 500 seeds")
	require.Contains(t, out.String(), "1 to 3, each twice")
	require.Contains(t, out.String(), `"stopped":true`)
	out.Reset()
	none := storm.Result{Ran: storm.Ran{First: 1, Stopped: true}}
	require.ErrorIs(t, (&stormCmd{seedsCmd: seedsCmd{Seeds: 500}}).report(e, none), errCutShort)
	require.Contains(t, out.String(), "none")
	broken := storm.Result{Ran: storm.Ran{Seeds: 3, First: 1}, Violations: 1, TraceHash: "00",
		Failing: storm.Failing{Failures: []storm.Failure{{Seed: 2, Replay: "replay it",
			Violations: []check.Violation{{Rule: "one-owner"}}}},
			FailingSeeds: 3, SeedsFailing: []uint64{2, 7}, Rules: map[string]int{"one-owner": 3}}}
	out.Reset()
	require.ErrorIs(t, (&stormCmd{}).report(e, broken), errViolations)
	require.Contains(t, out.String(), "replay it")
	require.Contains(t, out.String(), "one-owner")
	require.Contains(t, out.String(), "failing seeds: 3\n  rule one-owner: 3 seeds\n  2 7 and 1 more\n")
	require.Contains(t, out.String(), `"seeds_failing":[2,7]`)
	m := envtest.Last[map[string]any](t, out.String(), "storm")
	for _, name := range []string{"seeds", "steps", "cluster_hours", "violations", "trace_hash", "wall_seconds"} {
		require.Contains(t, m, name)
	}
}

// ACC-4: the command sets timers, simulated and real ones, and none is early.
func TestTimersLine(t *testing.T) {
	for _, how := range []string{"--simulated", "--no-stalls"} {
		code, out, errs := program(t, "timers", "--timers=1000", "--over=1s", how)
		require.Equal(t, env.ExitOK, code, errs)
		var r timersResult
		require.NoError(t, json.Unmarshal([]byte(strings.TrimPrefix(out, "timers ")), &r))
		require.Zero(t, r.Early)
		require.GreaterOrEqual(t, r.Timers, 1000)
		require.Equal(t, how == "--simulated", r.Simulated)
	}
	code, _, _ := program(t, "timers", "--timers=1")
	require.Equal(t, env.ExitUsage, code)
}

// TestScaleLine: the last line has the promised fields of what was measured and no others (a small cluster).
func TestScaleLine(t *testing.T) {
	m, _, _ := envtest.Line[map[string]any](t, program, "scale",
		"scale", "--nodes=5", "--parts=one,quiet,crash", "--crashes=2")
	for _, field := range strings.Fields("n bulk_join_s join_one_s crash_first_p99_s crash_all_p99_s state_bytes " +
		"status_bytes gossip_bytes_per_node_s wall_seconds rss_mb") {
		require.Contains(t, m, field)
	}
	require.NotContains(t, m, "join_twenty_s", "not measured, so absent")
}

// TestResolverProofLine: the last line has the promised fields, and a proof of three nodes succeeds (MEM-10).
func TestResolverProofLine(t *testing.T) {
	m, _, _ := envtest.Line[map[string]any](t, program, "resolver", "resolver-proof", "--nodes=3")
	for name, want := range map[string]float64{"nodes": 3, "states": 64, "strategies": 10, "double_survivors": 0,
		"all_down_unexpected": 0} {
		require.InDelta(t, want, m[name], 0, name)
	}
	require.Contains(t, m, "wall_seconds")
	code, _, _ := program(t, "resolver-proof", "--nodes=6")
	require.Equal(t, env.ExitUsage, code)
}

// TestModelLine: the last line has the promised fields; a broken rule is an error with its steps (SHD-7).
func TestModelLine(t *testing.T) {
	code, out, errs := program(t, "model", "--small", "--run=plain/", "--progress")
	require.Equal(t, env.ExitOK, code, errs)
	require.Contains(t, errs, "4 of 4 runs")
	m := envtest.Last[map[string]any](t, out, "model")
	for name, want := range map[string]float64{"runs": 4, "complete": 4, "violations": 0, "broken_rules_found": 0} {
		require.InDelta(t, want, m[name], 0, name)
	}
	for _, field := range strings.Fields("states transitions depth wall_seconds") {
		require.Contains(t, m, field)
	}
	code, out, _ = program(t, "model", "--break=worked-off")
	require.Equal(t, env.ExitFailed, code)
	require.Contains(t, out, "sends the stop call to its entities\n     LOST: ")
	code, out, _ = program(t, "model", "--list")
	require.Equal(t, env.ExitOK, code)
	require.Contains(t, out, "rule worked-off\n")
	require.Contains(t, out, "rule void-first\n")
	code, out, _ = program(t, "model", "--break=void-first")
	require.Equal(t, env.ExitFailed, code)
	require.Contains(t, out, "sender 0 commits that parcels have left its outbox\n     LOST: ")
	code, out, _ = program(t, "model", "--small", "--run=once/two")
	require.Equal(t, env.ExitOK, code)
	m = envtest.Last[map[string]any](t, out, "model")
	require.InDelta(t, 0, m["runs"], 0)
	require.Contains(t, out, `once {"runs":1,"complete":1,`)
	code, out, _ = program(t, "model", "--break=beside-the-state")
	require.Equal(t, env.ExitFailed, code)
	require.Contains(t, out, "a torn write, the last entry is gone\n")
	require.Contains(t, out, "     LOST: f3 serves without position 1, a batch of f1, of which f1 was told\nquorum {")
	code, out, _ = program(t, "model", "--break=gives-up")
	require.Equal(t, env.ExitFailed, code)
	require.Contains(t, out, "     TWO OWNERS: a member has taken its shards, and it handles\nsession {")
	code, out, _ = program(t, "model", "--break=quorum-of-words")
	require.Equal(t, env.ExitFailed, code)
	require.Contains(t, out, "n3 under 1.1 may both handle\ntenure {")
	for _, wrong := range []string{"--run=nothing", "--break=nothing", "--workers=0", "--states=0"} {
		code, _, _ = program(t, "model", wrong)
		require.Equal(t, env.ExitUsage, code, wrong)
	}
}

// Every flag refuses what is no value of it.
func TestBadValuesOfEveryFlag(t *testing.T) {
	lines, verbs := envtest.Refuses(t, func(more ...kong.Option) (*kong.Kong, error) {
		return parserOf(&commands{}, more...)
	})
	require.Greater(t, lines, 500)
	require.Greater(t, verbs, 14)
}

// A node process that a command starts knows its own command, and not the hundreds of flags of all others, which take a
// tenth of a second of a core to make sense of (CARD-3).
func TestChildrenKnowTheirOwnCommands(t *testing.T) {
	whole, err := parserOf(&commands{})
	require.NoError(t, err)
	alone, err := kong.New(&children{})
	require.NoError(t, err)
	require.Equal(t, reflect.TypeFor[children]().NumField(), envtest.Children(t, whole, alone))
}
