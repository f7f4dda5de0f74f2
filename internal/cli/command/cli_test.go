// Tests of the command line: flags, faults, exit codes, and the last line's names.

package command

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/admin"
	"github.com/kith-io/kith/internal/cli"
	"github.com/kith-io/kith/internal/cli/env"
	"github.com/kith-io/kith/internal/cli/env/envtest"
	"github.com/kith-io/kith/wire"
)

// TestMain lets the test binary be the node program, as its own children need.
func TestMain(m *testing.M) {
	envtest.Main(m, map[string]func() int{Name: func() int { return Main(Name) }})
}

// program runs the command in this process and returns exit code and output; children are this test binary.
func program(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	return envtest.Run(t, execute, Name, args...)
}

func TestHelpDocumentsExitCodes(t *testing.T) {
	code, out, _ := program(t, "--help")
	require.Equal(t, env.ExitOK, code)
	for _, want := range []string{"Exit codes:", "run", "dev", "drain"} {
		require.Contains(t, out, want)
	}
	require.NotContains(t, out, "answer calls", "the child is no business of a user's")
	code, out, _ = program(t, "dev", "--help")
	require.Equal(t, env.ExitOK, code)
	for _, flag := range []string{"--nodes", "--duration", "--entities", "--shards", "--senders", "--rate", "--progress"} {
		require.Contains(t, out, flag)
	}
}

// The exit codes stand in --help and in docs/admin.md as the program has them.
func TestExitCodes(t *testing.T) {
	_, out, _ := program(t, "--help")
	said := strings.Join(strings.Fields(out), " ")
	var rows bytes.Buffer
	rows.WriteString("| code | what it says |\n|---|---|\n")
	for i, x := range exitCodes {
		if x.code != env.ExitInterrupted { // which is what shells say
			require.Equal(t, i, x.code, "in order, without a gap")
		}
		require.Contains(t, said, fmt.Sprintf("%d: %s", x.code, x.what))
		fmt.Fprintf(&rows, "| %d | %s |\n", x.code, x.what)
	}
	const page = "../../../docs/admin.md"
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	want := between(t, string(text), "exit-codes", rows.String())
	if *update {
		require.NoError(t, os.WriteFile(page, []byte(want), 0o600))
		return
	}
	require.Equal(t, want, string(text), "go test ./internal/cli/command -run TestExitCodes -update")
}

// A shell that completes a command line is given commands, flags and what a flag or an argument may be.
func TestCompletion(t *testing.T) {
	t.Setenv("COMP_POINT", "none")
	for line, want := range map[string][]string{
		"kith":                                 nil,
		"kith -":                               {"--help", "-h"},
		"kith st":                              {"status"},
		"kith run --res":                       {"--resolver", "--resolver-role"},
		"kith run --log-format ":               {"json", "text"},
		"kith run --log-format=j":              {"json"},
		"kith run --log-format json":           {"json"},
		"kith run --log-format - --resolver-r": {"--resolver-role"},
		"kith completion ":                     {"bash", "fish", "zsh"},
		"kith completion -c b":                 {"bash"}, // behind a flag without a value
		"kith completion bash ":                nil,
		"kith cert ca --h":                     {"--help"},
		"kith cert i":                          {"issue"},
		"kith rebalancing ":                    {"pause", "resume", "show"},
		"kith chi":                             nil, // the child is no business of a user's
		"kith no-such-command --adm":           nil,
	} {
		t.Setenv("COMP_LINE", line)
		code, out, errs := program(t)
		require.Equal(t, env.ExitOK, code, errs)
		require.ElementsMatch(t, want, strings.Fields(out), line)
	}
	t.Setenv("COMP_LINE", "kith st --no-such")
	t.Setenv("COMP_POINT", "7") // behind st
	_, out, _ := program(t)
	require.Equal(t, "status\n", out)
	require.NoError(t, os.Unsetenv("COMP_LINE"))
	for shell, want := range map[string]string{"bash": "complete -o default", "zsh": "bashcompinit",
		"fish": "complete -f -c"} {
		code, out, errs := program(t, "completion", shell)
		require.Equal(t, env.ExitOK, code, errs)
		require.Contains(t, out, want)
		require.Contains(t, out, " kith")
		require.NotContains(t, out, "NAME")
		require.NotContains(t, out, "PATH")
		_, old, _ := program(t, "completion", "--code", shell)
		require.Equal(t, out, old, "as it was once asked for (OPS-1)")
		t.Setenv("SHELL", "/usr/bin/"+shell)
		code, out, errs = program(t, "completion")
		require.Equal(t, env.ExitOK, code, errs)
		require.Contains(t, out, "kith completion "+shell)
		require.NotContains(t, out, "COMMAND")
	}
	t.Setenv("SHELL", "/bin/tcsh")
	code, _, errs := program(t, "completion")
	require.Equal(t, env.ExitFailed, code)
	require.Contains(t, errs, `your login shell is "tcsh"`)
}

// The version tells what speaks with what.
func TestVersion(t *testing.T) {
	code, out, errs := program(t, "version")
	require.Equal(t, env.ExitOK, code, errs)
	require.Contains(t, out, fmt.Sprintf("%d, and down to %d", wire.Version, wire.OldestVersion))
	code, out, errs = program(t, "version", "--json")
	require.Equal(t, env.ExitOK, code, errs)
	var b cli.Build
	require.NoError(t, json.Unmarshal([]byte(out), &b))
	require.EqualValues(t, wire.Version, b.Wire)
	require.NotEmpty(t, b.Version)
	require.NotEmpty(t, b.Go)
}

// Built as cmd/node the program is the same, and calls itself so.
func TestNameOfTheProgram(t *testing.T) {
	for _, name := range []string{Name, "node"} {
		var out bytes.Buffer
		require.Equal(t, env.ExitOK, execute([]string{"--help"}, &env.Env{Program: name, Stdout: &out, Stderr: os.Stderr}))
		require.Contains(t, out.String(), "Usage: "+name+" <command>")
	}
}

func TestWrongCommandLines(t *testing.T) {
	envtest.Wrong(t, program, [][2]string{
		{"", "expected one of"},
		{"fly", "unexpected argument"},
		{"dev --nodes=0", "--nodes must be 1 to 64"},
		{"dev --nodes=65", "--nodes must be 1 to 64"},
		{"dev --duration=-1s", "--duration is negative"},
		{"dev --duration=soon", "--duration"},
		{"dev --entities=0", "--entities must be"},
		{"dev --shards=0", "--shards must be"},
		{"dev --shards=1048577", "--shards must be"},
		{"dev --senders=-1", "--senders must be"},
		{"dev --rate=-1", "--rate is negative"},
		{"dev --wings=2", "unknown flag"},
		{"run --expected=3", "without --discovery there is no use for --expected"},
		{"run --discovery=smoke-signals", "--discovery"},
		{"run --discovery=static --discovery-targets=a@b", "bad target"},
		{"run --discovery=file", "the file has no name"},
		{"run --discovery=dns", "the host is empty"},
		{"run --discovery=srv --discovery-name=a", "needs --discovery-service"},
		{"run --discovery=kubernetes", "label selector"},
		{"run --discovery=static --discovery-targets=a --seeds=b:1", "Seeds beside Discovery"},
		{"run --discovery=static --discovery-targets=a --expected=3 --required=4", "Required is 4"},
		{"run --discovery=static --discovery-targets=a --contact=10.0.0.1:1", "not loopback"},
		{"run --discovery=static --discovery-targets=a --bootstrap-timeout=-1s", "--bootstrap-timeout is negative"},
		{"run --log-format=xml", "--log-format"},
		{"run --log-level=loud", "--log-level"},
		{"run --join-timeout=-1s", "--join-timeout is negative"},
		{"run --leave-timeout=0s", "--leave-timeout must be"},
		{"run --rebalance-interval=1us", "RebalanceInterval is 1µs, must be at least 10ms, or negative for never"},
		{"run --max-moves=-1", "MaxMoves is -1, must be 1 to 16384"},
		{"run --demo --demo-shards=0", "--demo-shards must be"},
		{"run --demo --demo-shards=2000000", "--demo-shards must be"},
		{"run --demo-shards=0", "--demo-shards must be"},
		{"run --seeds=here", "Run \"kith run --help\""},
		{"cert issue", "Run \"kith cert issue --help\""},
	})
}

// full is a device without room.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

// Output that cannot be written is exit code 1 and one line that says so, of each command, in whatever form it prints.
func TestOutputThatCannotBeWritten(t *testing.T) {
	n, _ := asked(t)
	s, err := admin.Start(n, admin.Config{Listen: "127.0.0.1:0"})
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close(context.Background()) })
	t.Setenv("KITH_ADMIN", s.Addr().String())
	for _, args := range []string{"--help", "version", "version --json", "config", "config --json", "completion bash",
		"status", "status --json", "members", "members --json", "shards", "shards counter", "explain", "explain --json",
		"where counter a", "events", "events --json", "cert ca --dir=" + t.TempDir()} {
		errs, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
		require.NoError(t, err)
		code := execute(strings.Fields(args), &env.Env{Program: Name, Stdout: full{}, Stderr: errs})
		require.NoError(t, errs.Close())
		said, err := os.ReadFile(errs.Name())
		require.NoError(t, err)
		require.Equal(t, env.ExitFailed, code, "%s: %s", args, said)
		require.Equal(t, 1, strings.Count(string(said), "no space left on device"), "%s: %s", args, said)
	}
}

// All faults come at once.
func TestFaultsAreJoined(t *testing.T) {
	_, _, errs := program(t, "dev", "--nodes=0", "--senders=-1", "--rate=-2")
	for _, want := range []string{"--nodes", "--senders", "--rate"} {
		require.Contains(t, errs, want)
	}
}

func TestDefaults(t *testing.T) {
	require.NoError(t, (&devCmd{Nodes: 3, Entities: 1000, Shards: 100, Senders: 4}).Validate())
	require.NoError(t, (&runCmd{Name: "kith", Listen: "127.0.0.1:0", LeaveTimeout: time.Second, DemoShards: 1,
		findFlags: findFlags{Contact: "127.0.0.1:0", Margin: time.Second}}).Validate())
}

// The names that scripts rely on (design, commands and last lines).
func TestSummaryFields(t *testing.T) {
	b, err := json.Marshal(summary{ShardsPerNode: []int{34, 33, 33}, AskP50: 1, AskP99: 2})
	require.NoError(t, err)
	var m map[string]any
	require.NoError(t, json.Unmarshal(b, &m))
	for _, name := range []string{"nodes", "up", "shards", "shards_per_node", "sent", "delivered", "lost", "reordered",
		"duplicated", "moves", "ask_errors", "ask_p50_us", "ask_p99_us"} {
		require.Contains(t, m, name)
	}
	b, err = json.Marshal(summary{})
	require.NoError(t, err)
	require.NotContains(t, string(b), "ask_p50_us", "what was not measured is absent, never zero")
}

// A lost, reordered or duplicated message makes dev fail.
func TestVerdict(t *testing.T) {
	require.NoError(t, (&dev{sum: summary{Sent: 5, Delivered: 5}}).verdict())
	for _, d := range []*dev{{sum: summary{Lost: 1}}, {sum: summary{Reordered: 1}}, {sum: summary{Duplicated: 1}},
		{foreign: 1}} {
		require.ErrorIs(t, d.verdict(), errNotDelivered)
	}
}

func TestPollForReachesTheConfiguration(t *testing.T) {
	c := runCmd{PollFor: time.Microsecond}
	require.Equal(t, time.Microsecond, c.config(nil).PollFor)
	code, _, errs := program(t, "run", "--poll-for=2ms")
	require.Equal(t, env.ExitUsage, code)
	require.Contains(t, errs, "PollFor is 2ms")
}

// The help of the program is short, however many commands there are: the subcommands of cert have a help of their own
// (CARD-5).
func TestHelpIsShort(t *testing.T) {
	code, out, _ := program(t, "--help")
	require.Equal(t, env.ExitOK, code)
	commands := regexp.MustCompile(`(?m)^  [a-z]`).FindAllString(out, -1)
	require.Greater(t, len(commands), 15)
	require.LessOrEqual(t, len(commands), 27)
	require.Contains(t, out, "\n  cert <command>\n")
	code, out, _ = program(t, "cert", "--help")
	require.Equal(t, env.ExitOK, code)
	require.Contains(t, out, "cert revoke ")
}
