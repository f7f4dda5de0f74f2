// Tests with real processes: a local cluster for a few seconds, Ctrl-C, and one node with its signals.

package command

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/base/long"
	"github.com/kith-io/kith/internal/base/port"
	"github.com/kith-io/kith/internal/cli"
	"github.com/kith-io/kith/internal/cli/env"
	"github.com/kith-io/kith/internal/cli/env/envtest"
)

// spawn starts the program as a process of its own; its stderr comes line by line.
func spawn(t *testing.T, args ...string) (cmd *exec.Cmd, stdout *bytes.Buffer, stderr *bufio.Scanner) {
	t.Helper()
	cmd = envtest.Process(t, Name, args...)
	stdout = &bytes.Buffer{}
	cmd.Stdout = stdout
	pipe, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	done := make(chan struct{})
	go func() {
		within(4*time.Minute, done)
		_ = cmd.Process.Kill()
	}()
	t.Cleanup(func() { close(done) })
	return cmd, stdout, bufio.NewScanner(pipe)
}

// tick is how often this file looks at what nobody announces.
const tick = 10 * time.Millisecond

// within returns when done is closed, or d has passed by a clock that stands still while this process does: where all
// processes are paused for a while, none of them has used up its time.
func within(d time.Duration, done <-chan struct{}) {
	t := time.NewTicker(tick) // does not make up for ticks that were missed
	defer t.Stop()
	for range d / tick {
		select {
		case <-t.C:
		case <-done:
			return
		}
	}
}

// until reads until every one of these texts has come, in any order, and returns all that it has read. Lines that two
// goroutines log have no order: a test that waits for both names both in one call.
func until(t *testing.T, s *bufio.Scanner, wants ...string) string {
	t.Helper()
	var all strings.Builder
	for s.Scan() {
		all.WriteString(s.Text() + "\n")
		wants = slices.DeleteFunc(slices.Clone(wants), func(want string) bool { return strings.Contains(s.Text(), want) })
		if len(wants) == 0 {
			return all.String()
		}
	}
	t.Fatalf("no line with %q in:\n%s", wants, all.String())
	return ""
}

// rest reads to the end.
func rest(s *bufio.Scanner) string {
	var all strings.Builder
	for s.Scan() {
		all.WriteString(s.Text() + "\n")
	}
	return all.String()
}

// requireClean demands of a summary that every message came, once and in order, and every ask was answered.
func requireClean(t *testing.T, stdout []byte, nodes int) summary {
	t.Helper()
	var s summary
	require.NoError(t, cli.ParseLine(stdout, "summary", &s))
	require.Equal(t, nodes, s.Nodes)
	require.Equal(t, nodes-s.Left, s.Up)
	require.Positive(t, s.Sent)
	require.Equal(t, s.Sent, s.Delivered)
	require.Zero(t, s.Lost+s.Reordered+s.Duplicated+s.AskErrors)
	require.Positive(t, s.AskP50)
	require.GreaterOrEqual(t, s.AskP99, s.AskP50)
	require.Len(t, s.ShardsPerNode, nodes)
	return s
}

// The first thing that a newcomer runs: three processes, 1,000 entities; the third joins while others send, and gets
// its share, then the oldest leaves. Nothing is lost or reordered, every ask is answered (CARD-5, SHD-6, SHD-7).
func TestDevRunsAClusterOfRealProcesses(t *testing.T) {
	cmd, stdout, stderr := spawn(t, "dev", "--duration=3s", "--progress", "--rate=5000")
	log := rest(stderr)
	require.NoError(t, cmd.Wait(), log)
	s := requireClean(t, stdout.Bytes(), 3)
	require.Equal(t, []int{1, 1, 0}, []int{s.Joined, s.Left, s.ShardsPerNode[0]})
	require.Equal(t, int(s.Shards), s.ShardsPerNode[1]+s.ShardsPerNode[2])
	require.Greater(t, s.Moves, uint64(33), "its share, and more than nothing of what the oldest had")
	require.Contains(t, log, "n3  joined")
	require.Contains(t, log, "n1  left after")
	require.Contains(t, log, "shards n1:")
}

// A cluster in which nobody joins or leaves while others send; one of a single node is such anyway.
func TestDevWithoutChanges(t *testing.T) {
	for _, args := range [][]string{{"--nodes=1"}, {"--nodes=2", "--steady"}} {
		cmd, stdout, stderr := spawn(t, append([]string{"dev", "--duration=300ms", "--rate=5000"}, args...)...)
		log := rest(stderr)
		require.NoError(t, cmd.Wait(), log)
		s := requireClean(t, stdout.Bytes(), len(args))
		require.Zero(t, s.Joined+s.Left)
	}
}

// Ctrl-C while a node joins: it is taken along, and everything is counted.
func TestDevIsInterruptedWhileANodeJoins(t *testing.T) {
	cmd, stdout, stderr := spawn(t, "dev", "--nodes=2", "--duration=1s", "--progress", "--rate=1000")
	until(t, stderr, "n2  process")
	require.NoError(t, cmd.Process.Signal(syscall.SIGINT))
	log := rest(stderr)
	require.NoError(t, cmd.Wait(), log)
	s := envtest.Last[summary](t, stdout.String(), "summary")
	require.Equal(t, s.Sent, s.Delivered)
	require.Zero(t, s.Lost+s.Reordered+s.Duplicated+s.AskErrors)
	require.Len(t, s.ShardsPerNode, 2)
}

// Without a duration Ctrl-C ends it: senders stop, all is counted, the nodes leave, and the exit code is 0.
func TestDevEndsOnInterrupt(t *testing.T) {
	cmd, stdout, stderr := spawn(t, "dev", "--nodes=2", "--progress", "--entities=100", "--shards=10", "--rate=2000",
		"--old="+envtest.Self(t)) // which stands for another build
	until(t, stderr, "members up 2/2")
	require.NoError(t, cmd.Process.Signal(syscall.SIGINT))
	log := rest(stderr)
	require.NoError(t, cmd.Wait(), log)
	requireClean(t, stdout.Bytes(), 2)
	require.Contains(t, log, "n1  left after")
}

// A node process that dies makes dev fail, and none of the others outlives it.
func TestDevFailsWithItsChild(t *testing.T) {
	cmd, stdout, stderr := spawn(t, "dev", "--nodes=2", "--steady", "--progress", "--shards=10", "--rate=100")
	var pids []int
	log := until(t, stderr, "members up 2/2")
	for _, line := range strings.Split(log, "\n") {
		if f := strings.Fields(line); len(f) > 2 && f[1] == "process" {
			pids = append(pids, atoi(t, f[2]))
		}
	}
	require.Len(t, pids, 2)
	require.NoError(t, syscall.Kill(pids[1], syscall.SIGKILL))
	log = rest(stderr)
	require.Error(t, cmd.Wait())
	require.Equal(t, env.ExitFailed, cmd.ProcessState.ExitCode())
	require.Contains(t, log, "n2")
	require.Empty(t, stdout.String())
	requireEnded(t, pids[0])
}

// A parent that dies without a word takes its node processes with it.
func TestChildrenDieWithTheirParent(t *testing.T) {
	cmd, _, stderr := spawn(t, "dev", "--nodes=1", "--progress", "--senders=0")
	until(t, stderr, "dashboard http://127.0.0.1:")
	log := until(t, stderr, "process")
	pid := atoi(t, strings.Fields(log)[2])
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait()
	requireEnded(t, pid)
}

// requireEnded waits until a process has ended that is not this one's child.
func requireEnded(t *testing.T, pid int) {
	t.Helper()
	for until := 30 * time.Second; !hasEnded(pid); until -= tick { // as within does: a pause uses up nothing
		require.Positive(t, until, "process %d lives", pid)
		within(tick, nil)
	}
}

// hasEnded reports whether a process has ended. Its parent is gone, so it is for init to take note of that, which may
// do so late, or in a container never: what is left until then is no process any more.
func hasEnded(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return true
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)) // not there on other systems than Linux
	if err != nil {
		return false
	}
	state := bytes.TrimSpace(stat[bytes.LastIndexByte(stat, ')')+1:])
	return bytes.HasPrefix(state, []byte("Z")) || bytes.HasPrefix(state, []byte("X"))
}

// One node: starts, becomes a cluster of one, leaves on SIGTERM with exit code 0 and typed log lines.
func TestRunLeavesOnSignal(t *testing.T) {
	cmd, stdout, stderr := spawn(t, "run", "--listen=127.0.0.1:0", "--log-format=json", "--demo")
	until(t, stderr, `"event":"node-started"`)
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	log := rest(stderr)
	require.NoError(t, cmd.Wait(), log)
	require.Contains(t, log, `"event":"node-left"`)
	require.Empty(t, stdout.String())
}

// A node that nobody admits in time says so and exits with a code of its own.
func TestRunThatIsNotAdmitted(t *testing.T) {
	cmd, _, stderr := spawn(t, "run", "--listen=127.0.0.1:0", "--seeds=127.0.0.1:1", "--join-timeout=300ms")
	log := rest(stderr)
	require.Error(t, cmd.Wait())
	require.Equal(t, env.ExitNotAdmitted, cmd.ProcessState.ExitCode())
	require.Contains(t, log, "not admitted")
}

// A seed that cannot be reached is reported at once, and that the node goes on trying; once the seed is there it joins.
func TestRunWithAnUnreachableSeed(t *testing.T) {
	seed := port.Keep(t)
	cmd, _, stderr := spawn(t, "run", "--listen=127.0.0.1:0", "--log-format=json", "--seeds="+seed)
	log := until(t, stderr, "peer cannot be reached, trying on")
	last := log[strings.LastIndex(strings.TrimSpace(log), "\n")+1:]
	for _, want := range []string{`"level":"WARN"`, `"peer":"` + seed + `"`, `"lane":"control"`, `"failures":1`,
		"refused"} {
		require.Contains(t, last, want)
	}
	first, _, firstErr := spawn(t, "run", "--listen="+seed, "--seeds="+seed)
	until(t, stderr, "peer reached at last")
	until(t, stderr, `"event":"member-up"`)
	for _, c := range []struct {
		cmd *exec.Cmd
		log *bufio.Scanner
	}{{cmd, stderr}, {first, firstErr}} {
		require.NoError(t, c.cmd.Process.Signal(syscall.SIGTERM))
		log := rest(c.log)
		require.NoError(t, c.cmd.Wait(), log)
	}
}

// A node says so if its port is taken, and exits with 1.
func TestRunOnATakenPort(t *testing.T) {
	first, _, stderr := spawn(t, "run", "--listen=127.0.0.1:0", "--log-format=json")
	line := until(t, stderr, `"event":"node-started"`)
	at := strings.Index(line, "127.0.0.1:")
	require.Positive(t, at)
	addr := line[at:]
	addr = addr[:strings.IndexAny(addr, `#"`)]
	second, _, errs := spawn(t, "run", "--listen="+addr)
	log := rest(errs)
	require.Error(t, second.Wait())
	require.Equal(t, env.ExitUsage, second.ProcessState.ExitCode())
	require.Contains(t, log, addr)
	require.NoError(t, first.Process.Signal(syscall.SIGINT))
	rest(stderr)
	require.NoError(t, first.Wait())
}

func atoi(t *testing.T, s string) int {
	t.Helper()
	n, err := strconv.Atoi(s)
	require.NoError(t, err)
	return n
}

// A killed node: the others go on, its shards come to live on them, and the last line says so. One that somebody else
// kills counts as well (SHD-9).
func TestLongDevKill(t *testing.T) {
	long.Test(t)
	cmd, stdout, stderr := spawn(t, "dev", "--kill", "--duration=3s", "--progress", "--rate=1000", "--dashboard=")
	log := until(t, stderr, "n3  joined")
	for _, line := range strings.Split(log, "\n") {
		if f := strings.Fields(line); len(f) > 2 && f[0] == "n3" && f[1] == "process" {
			require.NoError(t, syscall.Kill(atoi(t, f[2]), syscall.SIGKILL))
		}
	}
	log += rest(stderr)
	require.NoError(t, cmd.Wait(), log)
	require.NotContains(t, log, "dashboard")
	s := envtest.Last[killSummary](t, stdout.String(), "summary")
	require.Equal(t, []int{3, 2, 1, 1}, []int{s.Nodes, s.Up, s.Joined, s.Killed})
	require.Equal(t, []int{int(s.Shards), 0}, []int{s.ShardsPerNode[0] + s.ShardsPerNode[1], s.ShardsPerNode[2]})
	require.Positive(t, s.HomeSeconds)
}
