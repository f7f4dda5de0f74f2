// Tests of the command line, the last lines, and both commands with real processes. Nothing here judges a time.

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/bench"
	"github.com/kith-io/kith/internal/base/long"
	"github.com/kith-io/kith/internal/cli"
	"github.com/kith-io/kith/internal/cli/env"
	"github.com/kith-io/kith/internal/cli/env/envtest"
)

// TestMain lets the test binary be the program, as its own children need.
func TestMain(m *testing.M) {
	envtest.Main(m, map[string]func() int{"loadgen": func() int { main(); return 0 }})
}

// program runs the command in this process; its children are this test binary.
func program(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	return envtest.Run(t, execute, "loadgen", args...)
}

func TestHelp(t *testing.T) {
	code, out, _ := program(t, "--help")
	require.Equal(t, env.ExitOK, code)
	require.Contains(t, out, "Exit codes:")
	code, out, _ = program(t, "run", "--help")
	require.Equal(t, env.ExitOK, code)
	for _, flag := range []string{"--mode", "--exec", "--inline", "--size", "--entities", "--senders", "--inflight",
		"--rate", "--duration", "--json", "--profile", "--mode=\"tell\"", "--exec=\"worker\"", "--inflight=16",
		"--timeout=5s"} {
		require.Contains(t, out, flag)
	}
}

func TestWrongCommandLines(t *testing.T) {
	envtest.Wrong(t, program, [][2]string{
		{"", "expected one of"},
		{"run --mode=shout", "--mode"},
		{"run --exec=magic", "--exec"},
		{"run --size=15", "--size must be"},
		{"run --size=1048577", "--size must be"},
		{"run --entities=0", "--entities must be"},
		{"run --shards=0", "--shards must be"},
		{"run --senders=0", "--senders must be"},
		{"run --inflight=0", "--inflight must be"},
		{"run --mode=ask --senders=1024 --inflight=4096", "--senders times --inflight"},
		{"run --rate=-1", "--rate is negative"},
		{"run --duration=1ms", "--duration must be"},
		{"run --nodes=1", "--nodes must be"},
		{"run --timeout=0s", "--timeout must be"},
		{"run --poll-for=2ms", "--poll-for must be"},
		{"serve --poll-for=2ms", "PollFor is 2ms"},
		{"run --callback", "--callback needs --mode=ask"},
		{"run --mode=tell --inflight=16", "--inflight needs --mode=ask"}, // though it is the default
		{"run --timeout=5s", "--timeout needs --mode=ask"},
		{"run --callback --inflight=2 --timeout=1s", "--inflight needs --mode=ask\n--timeout needs"},
		{"run --listen=127.0.0.1:0", "need --target"},
		{"run --tls-cert=x", "need --target"},
		{"run --tls --target=127.0.0.1:1", "--tls makes"},
		{"run --inline --exec=blocking", "--inline contradicts --exec=blocking"},
		{"run --exec=worker --inline", "--inline contradicts --exec=worker"},
		{"idle --entities=0", "--entities must be"},
		{"idle --shards=0", "--shards must be"},
		{"idle --exec=magic", "--exec"},
		{"idle --limit=0s", "--limit must be"},
		{"pressure --entities=1", "--entities must be"},
		{"pressure --senders=0", "--senders must be"},
		{"pressure --tellers=65", "--tellers must be"},
		{"pressure --slow=0s", "--slow must be"},
		{"pressure --mailbox=1023", "--mailbox must be"},
		{"pressure --size=-1", "--size must be"},
		{"pressure --rounds=0 --duration=1ms", "--rounds must be 1 to 100\n--duration must be"},
		{"bench --rounds=0", "--rounds must be"},
		{"bench --only=speed", "they are: bulk, micro"},
		{"bench --rounds=0", "Run \"loadgen bench --help\""},
		{"run --target=here", "--target=here: peer: bad address"},
		{"serve --listen=here", "Listen \"here\""},
		{"serve --shards=0", "--shards must be"},
	})
}

// A process of a measurement knows its own command alone (CARD-3).
func TestChildrenKnowTheirOwnCommands(t *testing.T) {
	whole, err := kong.New(&commands{}, texts)
	require.NoError(t, err)
	alone, err := kong.New(&children{})
	require.NoError(t, err)
	require.Equal(t, 1, envtest.Children(t, whole, alone))
}

// What agrees is accepted, however often it is said, and so are flags with defaults that would have no effect.
func TestFlagsThatAgree(t *testing.T) {
	for _, args := range []string{"", "--inline", "--inline --exec=inline", "--mode=tell", "--exec=worker --inline=false",
		"--mode=ask", "--mode=ask --callback --inflight=2 --timeout=1s", "--timeout=1s --mode=ask --exec=blocking"} {
		t.Run(args, func(t *testing.T) {
			parser, err := kong.New(&commands{}, texts)
			require.NoError(t, err)
			_, err = parser.Parse(append([]string{"run"}, strings.Fields(args)...))
			require.NoError(t, err)
		})
	}
}

// A user who names a measure that there is not gets a list of those that there are.
func TestMeasureNames(t *testing.T) {
	r := &rounds{free: &crew{}, secret: &crew{}, pinned: map[string]*crew{"_p1": {}, "_p2": {}}}
	var names []string
	for _, m := range r.measures() {
		names = append(names, m.name)
	}
	require.Equal(t, append(names, "stalled", "hostile", "scraped"), measureNames)
}

func TestFlagsBecomeALoad(t *testing.T) {
	c := runCmd{Mode: "tell", Exec: "worker", Size: 64, Entities: 10, Senders: 2, Inflight: 3, Timeout: time.Second}
	require.Equal(t, bench.Tell, c.load(time.Second).Mode)
	require.False(t, c.load(time.Second).Stamp, "without a schedule there is no time at which a tell was due")
	c.Rate = 100
	require.True(t, c.load(time.Second).Stamp)
	c.Mode = "ask"
	require.Equal(t, bench.Ask, c.load(time.Second).Mode)
	require.NoError(t, c.load(time.Second).Validate())
	c.Callback = true
	require.Equal(t, bench.AskFunc, c.load(time.Second).Mode)
	require.Equal(t, "worker", c.exec())
	c.Inline = true
	require.Equal(t, "inline", c.exec())
}

// Every message that was sent reaches a handler in another process, and the numbers that people rely on are there.
func TestRun(t *testing.T) {
	for _, c := range []struct {
		args    string
		latency bool
	}{
		{"--exec=worker --nodes=3", false},
		{"--inline", false},
		{"--inline --tls", false},
		{"--exec=blocking --rate=2000", true},
		{"--mode=ask", true},
		{"--mode=ask --inline --callback --rate=2000", true},
	} {
		t.Run(c.args, func(t *testing.T) {
			t.Parallel()
			args := append([]string{"run", "--json", "--duration=200ms", "--entities=50", "--shards=10", "--senders=2"},
				strings.Fields(c.args)...)
			code, out, errs := program(t, args...)
			require.Equal(t, env.ExitOK, code, errs)
			require.Equal(t, 1, strings.Count(out, "\n"), "nothing but the last line")
			l := envtest.Last[loadLine](t, out, "load")
			require.Positive(t, l.Sent)
			require.Equal(t, l.Sent, l.Delivered+l.Refused)
			require.Zero(t, l.Lost+l.Failed)
			require.Equal(t, strings.Contains(c.args, "--tls"), l.TLS)
			require.Equal(t, c.latency, l.P50 > 0 && l.P99 >= l.P50 && l.Max > 0)
			require.Equal(t, strings.Contains(c.args, "rate="), l.Late50 > 0 && l.Late99 >= l.Late50)
		})
	}
}

// TestRunForPeopleWithProfiles pins CARD-5.
func TestRunForPeopleWithProfiles(t *testing.T) {
	dir := t.TempDir()
	code, out, errs := program(t, "run", "--duration=300ms", "--entities=50", "--profile="+dir, "--progress")
	require.Equal(t, env.ExitOK, code, errs)
	require.Contains(t, out, "CPU ns")
	m := envtest.Last[map[string]any](t, out, "load")
	require.NotContains(t, m, "p50_us", "what was not measured is absent, never zero")
	for _, side := range []string{"sender", "receiver"} {
		for _, kind := range []string{"cpu.pprof", "heap.pprof", "mutex.pprof", "block.pprof", "trace"} {
			info, err := os.Stat(filepath.Join(dir, side+"."+kind))
			require.NoError(t, err)
			require.Positive(t, info.Size())
		}
	}
	require.Contains(t, errs, "processes up")
}

// Ctrl-C ends the load early; what was measured until then is reported, with nothing lost, and the exit code is 0.
func TestRunEndsOnInterrupt(t *testing.T) {
	cmd := envtest.Process(t, "loadgen", "run", "--json", "--duration=60s", "--rate=1000", "--entities=50", "--progress")
	var out bytes.Buffer
	cmd.Stdout = &out
	pipe, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	watchdog := time.AfterFunc(50*time.Second, func() { _ = cmd.Process.Kill() })
	defer watchdog.Stop()
	for s := bufio.NewScanner(pipe); s.Scan(); {
		if strings.Contains(s.Text(), "/s delivered") {
			require.NoError(t, cmd.Process.Signal(syscall.SIGINT))
		}
	}
	require.NoError(t, cmd.Wait())
	l := envtest.Last[loadLine](t, out.String(), "load")
	require.Less(t, l.Seconds, 50.0)
	require.Positive(t, l.Sent)
	require.Equal(t, l.Sent, l.Delivered)
}

// One short round gives every figure that can be measured now, each with its baseline of the same run.
func TestLongBenchGivesAllFigures(t *testing.T) {
	long.Test(t)
	m, _, errs := envtest.Line[map[string]float64](t, program, "bench", "bench", "--quick", "--progress")
	want := strings.Fields(`bulk_gbps frame_bytes encode_ns decode_ns hash_ns route_ns route_allocs link_rate_1
		link_of_bulk_1 link_rate_64 link_of_bulk_64 tell_rate_inline tell_rate_worker tell_rate_blocking
		tell_of_bulk_inline tell_of_bulk_worker tell_allocs_sender tell_allocs_receiver ask_allocs ask256_rate
		ask256_cb_rate stalled_mb tls_link_rate_1 tls_of_plain tls_tell_rate_inline tls_tell_of_plain tls_tell_allocs_sender
		tls_tell_allocs_receiver hostile_rate_ratio hostile_hb_p99_ratio hostile_attacks_per_second hostile_cpu_share
		hostile_chains_rate_ratio hostile_chains_attacks_per_second hostile_victim_us hostile_chains_victim_us
		scraped_rate_inline_ratio scraped_rate_worker_ratio scraped_scrapes scraped_kilobytes`)
	for place := range cli.Placements() {
		suffix := "_" + place
		for _, name := range strings.Fields(`raw1_p50_us raw1_p99_us ask1_inline_p50_us ask1_inline_p99_us
			ask1_worker_p50_us ask1_poll_p50_us ask1_over_raw ask1_p99_over_raw ask1_poll_over_raw
			ask1_beside_large_p50_us ask1_beside_large_over_alone ask1_p99_beside_large_over_alone large_gbps`) {
			want = append(want, name+suffix)
		}
	}
	if _, ok := cli.Placements()["p2"]; ok {
		want = append(want, strings.Fields(`bulk_gbps_p2 tell_rate_inline_p2 tell_of_bulk_inline_p2 tell_rate_worker_p2
			tell_of_bulk_worker_p2 tell_allocs_sender_p2 tell_allocs_receiver_p2 ask256_rate_p2 ask256_cb_rate_p2`)...)
		require.InDelta(t, m["tell_rate_inline_p2"]*80/(m["bulk_gbps_p2"]*1e9), m["tell_of_bulk_inline_p2"], 0.001)
	}
	for _, name := range want {
		require.Contains(t, m, name)
	}
	require.InDelta(t, m["tell_rate_worker"]*80/(m["bulk_gbps"]*1e9), m["tell_of_bulk_worker"], 0.001)
	require.Contains(t, errs, "median")
}

func TestBenchOnly(t *testing.T) {
	m, _, _ := envtest.Line[map[string]float64](t, program, "bench", "bench", "--quick", "--only=micro")
	require.Contains(t, m, "encode_ns")
	require.NotContains(t, m, "tell_rate_inline")
}

func TestLoadLineNames(t *testing.T) {
	b, err := json.Marshal(loadLine{CPUReceiver: new(float64)}) // absent when the receivers are not ours
	require.NoError(t, err)
	for _, name := range []string{`"delivered"`, `"refused"`, `"lost"`, `"rate"`, `"allocs_sender"`, `"cpu_ns_receiver"`} {
		require.Contains(t, string(b), name)
	}
}

// A node that does not start ends the command with its error, not with a panic.
func TestCrewThatDoesNotStart(t *testing.T) {
	crew, err := startCrew(t.Context(), &env.Env{Stderr: os.Stderr, SelfEnv: envtest.Env("loadgen")},
		crewArgs{receivers: 1, shards: 1 << 30})
	require.ErrorContains(t, err, "Shards")
	require.Nil(t, crew)
}
