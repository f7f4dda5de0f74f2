// Tests of the command line, the report, and a short run of ours beside raw TCP with real processes. Nothing here
// judges a time. They need no network once the modules of this folder are in the module cache.

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/bench"
	"github.com/kith-io/kith/bench/peers/rig"
	"github.com/kith-io/kith/internal/cli"
)

// built is where the programs of all tests are: linking them takes longer than running them.
var built string

func TestMain(m *testing.M) {
	if dir := os.Getenv(fakeMembers); dir != "" {
		os.Exit(fakeMember(dir))
	}
	var err error
	if built, err = os.MkdirTemp("", "kith-peers"); err != nil {
		panic(err)
	}
	code := m.Run()
	_ = os.RemoveAll(built)
	os.Exit(code)
}

// program runs the command in this process.
func program(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	require.NoError(t, err)
	defer f.Close()
	var out bytes.Buffer
	code = execute(args, &out, f)
	text, err := os.ReadFile(f.Name())
	require.NoError(t, err)
	return code, out.String(), string(text)
}

func TestWrongCommandLines(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"--rounds=0", "--rounds must be"},
		{"--duration=1ms", "--duration must be"},
		{"--only=nobody", `no system "nobody"`},
		{"--works=magic", `no work "magic"`},
		{"--outages --cases=flood", `no case "flood"`},
		{"--cases=owner", "--cases belongs to"},
		{"--outages --only=pekko", "without --only"},
		{"--dir=/nowhere/at/all", "--dir"},
		{"--volume=11", "--volume"},
	} {
		t.Run(c.args, func(t *testing.T) {
			code, out, errs := program(t, strings.Fields(c.args)...)
			require.Equal(t, exitUsage, code)
			require.Contains(t, errs, c.want)
			require.Empty(t, out)
		})
	}
	code, out, _ := program(t, "--help")
	require.Equal(t, exitOK, code)
	require.Contains(t, out, "Exit codes:")
}

// lastRows parses the last line.
func lastRows(t *testing.T, out string) map[rowWork]map[string]any {
	t.Helper()
	var got struct {
		Rounds int
		Rows   []map[string]any
	}
	require.NoError(t, cli.ParseLine([]byte(out), "peers", &got))
	rows := map[rowWork]map[string]any{}
	for _, r := range got.Rows {
		key := rowWork{r["peer"].(string), r["work"].(string)}
		require.NotContains(t, rows, key)
		rows[key] = r
	}
	return rows
}

// Ours and raw TCP are measured even when nothing else is, and every row of theirs is there.
func TestRunOfOursBesideRaw(t *testing.T) {
	code, out, errs := program(t, "--rounds=1", "--duration=300ms", "--only=codec", "--out="+built)
	require.Equal(t, exitOK, code, errs)
	rows := lastRows(t, out)
	places := cli.Placements()
	places[""] = [2][]int{} // where the kernel puts them
	for _, s := range systems[:2] {
		for _, row := range s.rows {
			for _, name := range row.works {
				w := workNamed(name)
				if _, ok := places[w.place]; !ok {
					continue
				}
				got := rows[rowWork{row.peer, name}]
				require.NotNil(t, got, "%s %s\n%s", row.peer, name, errs)
				require.Contains(t, got, leading(name), "%s %s", row.peer, name)
				require.NotContains(t, got, "lost")
			}
		}
	}
	for _, name := range []string{encode, decode} {
		for _, peer := range []string{"kith", "vtprotobuf", "protobuf-go"} {
			require.Positive(t, rows[rowWork{peer, name}]["ns"], "%s %s", peer, name)
		}
	}
	require.Contains(t, rows[rowWork{"kith-worker", "tell_64"}], "of_bulk")
	require.NotContains(t, rows, rowWork{"nats", "tell_64"})
	require.Contains(t, errs, "round 1 of 1")
}

// A peer that cannot be built or started is named and has no rows; all others have theirs.
func TestMissingPeersAreNamed(t *testing.T) {
	saved := systems
	t.Cleanup(func() { systems = saved })
	bad := func(name string, build func(context.Context, *run) (starter, error)) system {
		return system{name: name, build: build, rows: []rowOf{{peer: name, works: tells}}}
	}
	systems = append(append([]system{}, saved[:2]...),
		bad("unbuilt", func(context.Context, *run) (starter, error) { return starter{}, errors.New("no compiler") }),
		bad("silent", func(context.Context, *run) (starter, error) { return starter{path: "/bin/false"}, nil }))
	code, out, errs := program(t, "--rounds=1", "--duration=50ms", "--works=tell_64", "--quiet", "--out="+built)
	require.Equal(t, exitOK, code, errs)
	require.Contains(t, errs, "unbuilt has no rows: cannot be built: no compiler")
	require.Contains(t, errs, "silent has no row tell_64")
	rows := lastRows(t, out)
	require.Contains(t, rows, rowWork{"kith-inline", "tell_64"})
	require.Contains(t, rows, rowWork{"raw", "bulk"}, "the baseline of of_bulk comes with tells")
	require.NotContains(t, rows, rowWork{"kith-inline", "ask_256"})
	require.NotContains(t, errs, "round 1")
}

// peerRuns is how often a peer is given the chance to deliver: now and then one loses an ask of its own, which is
// named.
const peerRuns = 3

// Every Go peer delivers; Erlang does too, or is named because it is not installed.
func TestPeersDeliver(t *testing.T) {
	works := []string{"tell_64", "ask_256"}
	rowsOf := func(only string) (map[rowWork]map[string]any, string) {
		code, out, errs := program(t, "--rounds=1", "--duration=300ms", "--works="+strings.Join(works, ","), "--quiet",
			"--only="+only, "--out="+built)
		require.Equal(t, exitOK, code, errs)
		return lastRows(t, out), errs
	}
	rows, errs := rowsOf("nats,grpc,hollywood,protoactor,erlang")
	for _, peer := range []string{"nats", "grpc-stream", "hollywood", "protoactor"} {
		for _, name := range works {
			got, said := rows[rowWork{peer, name}], errs
			for again := 1; got == nil && again < peerRuns; again++ {
				require.Contains(t, said, peer+": "+name+" is missing: ", "what is missing is named")
				var more map[rowWork]map[string]any
				more, said = rowsOf(strings.TrimSuffix(peer, "-stream"))
				got = more[rowWork{peer, name}]
			}
			require.NotNil(t, got, "%s %s\n%s", peer, name, said)
			require.NotContains(t, got, "lost")
			require.NotEmpty(t, got["version"], peer)
		}
	}
	if _, ok := rows[rowWork{"erlang", "tell_64"}]; !ok {
		require.Contains(t, errs, "erlang has no rows: cannot be built: erl is not installed")
	}
}

func TestOursMustBeThere(t *testing.T) {
	code, out, errs := program(t, "--rounds=1", "--dir="+t.TempDir(), "--out="+t.TempDir(), "--quiet")
	require.Equal(t, exitFailed, code)
	require.Contains(t, errs, "build raw")
	require.Empty(t, out)
}

// An interrupt ends a run and every process that it started.
func TestInterruptedRunLeavesNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	r := &run{flags: flags{Rounds: 100, Duration: time.Minute, Works: []string{"tell_64"}, Only: []string{codecs}, Dir: ".",
		Out: built}, progress: &cli.Progress{}, notes: &bytes.Buffer{}, pairs: map[string]*pair{}}
	require.NoError(t, r.prepare())
	require.NoError(t, r.build(ctx))
	cells, err := r.start(ctx)
	require.NoError(t, err)
	require.NotEmpty(t, cells)
	time.AfterFunc(50*time.Millisecond, cancel)
	_, err = r.round(ctx, 0, cells)
	require.ErrorIs(t, err, context.Canceled)
	r.end()
	for _, p := range r.pairs {
		for _, c := range []*cli.Child{p.receiver, p.sender} {
			select {
			case <-c.Done():
			default:
				t.Fatalf("%s still runs", c.Name())
			}
		}
	}
}

func at(rate, p50, nanos float64) measured {
	return measured{rate: rate, nanos: nanos, allocs: -1, result: rig.Result{P50: p50, P99: 2 * p50}}
}

// Ratios say how many times better ours is, whichever way the figure goes, and are taken round by round.
func TestRatios(t *testing.T) {
	key := func(peer, work string) rowWork { return rowWork{peer, work} }
	rounds := []round{
		{key("raw", "bulk"): at(8e9, 0, 0), key("raw", "tell_64"): at(20e6, 0, 0), key("kith-inline", "tell_64"): at(10e6, 0, 0),
			key("kith-worker", "tell_64"): at(8e6, 0, 0), key("nats", "tell_64"): at(2e6, 0, 0),
			key("raw", "ask_1_p1"): at(1, 10, 0), key("kith-inline", "ask_1_p1"): at(1, 12, 0), key("nats", "ask_1_p1"): at(1, 30, 0),
			key("kith-inline", "call_256"): at(3e6, 5, 0), key("kith-inline", "ask_256"): at(1e6, 5, 0),
			key("nats", "ask_256"): at(2e5, 5, 0), key("kith", "encode"): at(0, 0, 5), key("vtprotobuf", "encode"): at(0, 0, 20)},
		{key("kith-inline", "tell_64"): at(6e6, 0, 0), key("nats", "tell_64"): at(2e6, 0, 0)},
		{key("kith-inline", "tell_64"): at(40e6, 0, 0), key("nats", "tell_64"): at(10e6, 0, 0)},
	}
	rep := newReport(rounds, map[string]string{"nats": "v1"}, 3*time.Second)
	require.Equal(t, 3, rep.Rounds)
	got := map[rowWork]row{}
	for _, r := range rep.Rows {
		got[rowWork{r.peer, r.work}] = r
	}
	nats := got[key("nats", "tell_64")]
	require.Equal(t, "v1", nats.version)
	require.Equal(t, bench.Figures{"rate": 2e6, "min": 2e6, "max": 10e6, "ratio": 4, "ratio_worker": 4, "of_raw": 0.1,
		"of_bulk": 0.02}, nats.figures)
	require.InDelta(t, 2.5, got[key("nats", "ask_1_p1")].figures["ratio"], 1e-9)
	require.InDelta(t, 3, got[key("nats", "ask_1_p1")].figures["of_raw"], 1e-9)
	require.InDelta(t, 3, got[key("nats", "ask_1_p1")].figures["p99_of_raw"], 1e-9)
	require.InDelta(t, 30, got[key("nats", "ask_1_p1")].figures["min"], 1e-9)
	require.InDelta(t, 5, got[key("nats", "ask_256")].figures["ratio"], 1e-9)
	require.InDelta(t, 15, got[key("nats", "ask_256")].figures["ratio_call"], 1e-9)
	require.InDelta(t, 4, got[key("vtprotobuf", "encode")].figures["ratio"], 1e-9)
	require.NotContains(t, got[key("vtprotobuf", "encode")].figures, "rate", "what was not measured is absent")

	var order []string // works in their order, the better first in each
	for _, r := range rep.Rows {
		order = append(order, r.work+" "+r.peer)
	}
	require.Equal(t, []string{"bulk raw", "tell_64 raw", "tell_64 kith-inline", "tell_64 kith-worker", "tell_64 nats",
		"ask_1_p1 raw", "ask_1_p1 kith-inline", "ask_1_p1 nats", "ask_256 kith-inline", "ask_256 nats",
		"call_256 kith-inline", "encode kith", "encode vtprotobuf"}, order)

	b, err := json.Marshal(nats)
	require.NoError(t, err)
	require.JSONEq(t, `{"peer":"nats","version":"v1","work":"tell_64","rate":2000000,"min":2000000,"max":10000000,"ratio":4,
		"ratio_worker":4,"of_raw":0.1,"of_bulk":0.02}`, string(b))
}

// Every row has a place in the table and every system a name of its own.
func TestSystemsAreWhole(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range systems {
		require.False(t, seen[s.name], s.name)
		seen[s.name] = true
		for _, row := range s.rows {
			for _, name := range row.works {
				require.Contains(t, workNames(), name)
				require.NoError(t, cell{builtSystem{system: s}, row, workNamed(name)}.valid())
			}
		}
	}
	require.Equal(t, raw, systems[0].name)
	require.Equal(t, ours, systems[1].name)
}

// valid asks the rig itself.
func (c cell) valid() error {
	l := c.load()
	l.Nanos = 1
	return l.Validate()
}

// The generated code is that of the .proto beside it.
func TestGeneratedCodeMatchesItsSource(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("pb", "peers.proto"))
	require.NoError(t, err)
	generated, err := os.ReadFile(filepath.Join("pb", "peers.pb.go"))
	require.NoError(t, err)
	for _, field := range []string{"slot", "id", "payload", "type", "shard", "term", "epoch"} {
		require.Contains(t, string(text), " "+field+" = ")
		require.Contains(t, string(generated), "name="+field+",")
	}
}

// The module of the library has none of what this one needs.
func TestCoreModuleStaysClean(t *testing.T) {
	cmd := exec.Command(goCommand(), "list", "-m", "all")
	cmd.Dir = filepath.Join("..", "..")
	cmd.Env = append(os.Environ(), "GOWORK=off")
	out, err := cmd.Output()
	require.NoError(t, err)
	for _, stranger := range []string{"nats-io", "google.golang.org/grpc", "hollywood", "protoactor", "vtprotobuf"} {
		require.NotContains(t, string(out), stranger)
	}
}
