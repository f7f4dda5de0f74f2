// The embedding program as the quick start shows it, run as real processes.

package main

import (
	"bufio"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/internal/base/port"
)

// TestMain runs the program itself when the test started it as a child.
func TestMain(m *testing.M) {
	if d := os.Getenv("EMBED_CHILD"); d != "" {
		patience, _ = time.ParseDuration(d)
		main()
		return
	}
	os.Exit(m.Run())
}

type child struct {
	cmd *exec.Cmd
	out *bufio.Scanner
}

// run starts the program, which waits for a cluster as long as patience says; a hung one is killed and fails the test.
func run(t *testing.T, patience time.Duration, seeds ...string) *child {
	exe, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(exe, seeds...)
	cmd.Env = append(os.Environ(), "EMBED_CHILD="+patience.String())
	pipe, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	killer := time.AfterFunc(50*time.Second, func() { _ = cmd.Process.Kill() })
	t.Cleanup(func() { killer.Stop(); _ = cmd.Process.Kill() })
	return &child{cmd, bufio.NewScanner(pipe)}
}

// await reads on to the line that contains text, and returns it.
func (c *child) await(t *testing.T, text string) string {
	var seen []string
	for c.out.Scan() {
		if strings.Contains(c.out.Text(), text) {
			return c.out.Text()
		}
		seen = append(seen, c.out.Text())
	}
	require.Failf(t, "the program ended before it said "+text, "%s", strings.Join(seen, "\n"))
	return ""
}

// up waits until the program is in its cluster, and returns what its book says and its address.
func (c *child) up(t *testing.T) (bid, addr string) {
	line := c.await(t, "bid ")
	_, said, _ := strings.Cut(line, "bid ")
	bid, addr, found := strings.Cut(said, ", I am ")
	require.True(t, found, line)
	return bid, addr
}

// ends waits for the end of the process, which nobody but the program itself may bring about, and returns its exit
// code and what it said until then: the node's own last line may come before or behind the program's.
func (c *child) ends(t *testing.T) (code int, last string) {
	for c.out.Scan() {
		last += c.out.Text() + "\n"
	}
	var exit *exec.ExitError
	if err := c.cmd.Wait(); err != nil {
		require.ErrorAs(t, err, &exit)
	}
	code = c.cmd.ProcessState.ExitCode()
	require.NotEqual(t, -1, code, "a signal ended it, after %q", last)
	return code, last
}

// Two processes share one entity: what the first sent and asked counts for the second; both leave gracefully, one on
// Ctrl-C, one as a supervisor ends it.
func TestTwoProcessesShareABook(t *testing.T) {
	first := run(t, 40*time.Second)
	bid, addr := first.up(t)
	require.Equal(t, "7", bid)
	second := run(t, 40*time.Second, addr)
	bid, _ = second.up(t)
	require.Equal(t, "14", bid)
	for sig, c := range map[os.Signal]*child{os.Interrupt: second, syscall.SIGTERM: first} {
		require.NoError(t, c.cmd.Process.Signal(sig))
		code, last := c.ends(t)
		require.Zero(t, code, "%v: %s", sig, last)
	}
}

// A seed at which nobody listens: the program ends, and says which seed did not answer (JOIN-2).
func TestDeadSeedEndsTheProgram(t *testing.T) {
	seed := port.Keep(t)
	code, last := run(t, 2*time.Second, seed).ends(t)
	require.Equal(t, kith.ExitNotAdmitted, code)
	require.Contains(t, last, seed)
	require.Contains(t, last, "not admitted within 2s")
}

// SIGTERM while it waits for a seed ends it too.
func TestSignalEndsTheWaitForASeed(t *testing.T) {
	seed := port.Keep(t)
	c := run(t, 40*time.Second, seed)
	c.await(t, "peer cannot be reached")
	require.NoError(t, c.cmd.Process.Signal(syscall.SIGTERM))
	code, last := c.ends(t)
	require.Equal(t, kith.ExitOK, code, last)
	require.NotContains(t, last, "not admitted")
}

// A node that was downed has ended: its process says why and ends, so that a supervisor can start the next one.
func TestDownedNodeEndsTheProgram(t *testing.T) {
	c := run(t, 40*time.Second)
	_, addr := c.up(t)
	other, err := kith.Start(t.Context(), kith.Config{Name: "market", Seeds: []string{addr}})
	require.NoError(t, err)
	defer other.Close()
	require.NoError(t, other.Ready(t.Context()))
	require.NoError(t, other.Down(t.Context(), addr))
	code, last := c.ends(t)
	require.Equal(t, kith.ExitEnded, code)
	require.Contains(t, last, "kith: this node was marked down")
}
