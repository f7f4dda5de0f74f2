// The embedding program as the README shows it, run as real processes.

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
	if os.Getenv("EMBED_CHILD") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

type child struct {
	cmd *exec.Cmd
	out *bufio.Scanner
}

func run(t *testing.T, seeds ...string) *child {
	exe, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(exe, seeds...)
	cmd.Env = append(os.Environ(), "EMBED_CHILD=1")
	pipe, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	killer := time.AfterFunc(30*time.Second, func() { _ = cmd.Process.Kill() })
	t.Cleanup(func() { killer.Stop(); _ = cmd.Process.Kill() })
	return &child{cmd, bufio.NewScanner(pipe)}
}

func (c *child) line(t *testing.T) string {
	require.True(t, c.out.Scan(), "the program ended: %v", c.out.Err())
	return c.out.Text()
}

// Two processes share one entity: what the first told and asked counts for the second; both leave gracefully.
func TestTwoProcessesShareABook(t *testing.T) {
	first := run(t)
	said := first.line(t)
	require.Regexp(t, `bid 7, I am 127\.0\.0\.1:\d+$`, said)
	second := run(t, said[strings.LastIndex(said, " ")+1:])
	require.Regexp(t, `bid 14, I am 127\.0\.0\.1:\d+$`, second.line(t))
	for _, c := range []*child{second, first} {
		require.NoError(t, c.cmd.Process.Signal(os.Interrupt))
		require.NoError(t, c.cmd.Wait())
	}
}

// The README shows this program, to the letter, from its package clause on.
func TestReadmeShowsThisProgram(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(readme), "<!-- embed:begin")
	require.True(t, found)
	block, _, found := strings.Cut(rest, "<!-- embed:end -->")
	require.True(t, found)
	_, code, found := strings.Cut(block, "```go\n")
	require.True(t, found)
	code, _, _ = strings.Cut(code, "```")
	source, err := os.ReadFile("main.go")
	require.NoError(t, err)
	_, program, _ := strings.Cut(string(source), "\npackage main\n")
	require.Equal(t, "package main\n"+program, code)
}

// The test of an entity that the README shows is the one that runs.
func TestReadmeShowsTheSimulatedTest(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(readme), "<!-- simtest:begin")
	require.True(t, found)
	_, code, found := strings.Cut(rest, "```go\n")
	require.True(t, found)
	code, _, _ = strings.Cut(code, "```")
	source, err := os.ReadFile("../../sim/book_test.go")
	require.NoError(t, err)
	require.Contains(t, string(source), code)
}
