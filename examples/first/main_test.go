// The first program, which the README shows, runs as two processes.

package main

import (
	"bufio"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestMain runs the program itself when the test started it as a child.
func TestMain(m *testing.M) {
	if os.Getenv("FIRST_CHILD") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// start runs the program as a process of its own, and returns it with the first line that it prints.
func start(t *testing.T, seeds ...string) (*exec.Cmd, string) {
	exe, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(exe, seeds...)
	cmd.Env = append(os.Environ(), "FIRST_CHILD=1")
	cmd.Stderr = os.Stderr
	pipe, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	killer := time.AfterFunc(50*time.Second, func() { _ = cmd.Process.Kill() })
	t.Cleanup(func() { killer.Stop(); _ = cmd.Process.Kill() })
	line, err := bufio.NewReader(pipe).ReadString('\n')
	require.NoError(t, err)
	return cmd, strings.TrimSpace(line)
}

// The second process asks the counter of the first, and both leave on Ctrl-C.
func TestTwoProcessesShareACounter(t *testing.T) {
	first, line := start(t)
	said, addr, found := strings.Cut(line, ", I am ")
	require.True(t, found, line)
	require.Equal(t, "visitor number 1", said)
	second, line := start(t, addr)
	require.Contains(t, line, "visitor number 2, I am ")
	for _, process := range []*exec.Cmd{second, first} {
		require.NoError(t, process.Process.Signal(os.Interrupt))
		require.NoError(t, process.Wait())
	}
}
