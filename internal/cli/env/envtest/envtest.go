// Package envtest is what tests of a program of commands share: the test binary is the program, as its children need,
// command lines that are run and read, every flag tried.
package envtest

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/cli"
	"github.com/kith-io/kith/internal/cli/env"
)

// variable makes the test binary be a program.
const variable = "KITH_TEST_PROGRAM"

// Env returns the environment in which the test binary is a program that Main knows.
func Env(program string) []string { return []string{variable + "=" + program} }

// Main runs the tests, or in the environment of a program that program.
func Main(m *testing.M, programs map[string]func() (code int)) {
	if run := programs[os.Getenv(variable)]; run != nil {
		os.Exit(run())
	}
	os.Exit(m.Run())
}

// Self returns the path of the test binary.
func Self(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	return self
}

// Process returns a program as a process that has not been started. It is killed at the end of the test.
func Process(t *testing.T, program string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(Self(t), args...)
	cmd.Env = append(os.Environ(), Env(program)...)
	t.Cleanup(func() {
		if cmd.Process != nil {
			_ = cmd.Process.Kill()
		}
	})
	return cmd
}

// Run runs a command line in this process and returns exit code and output. Children are the test binary.
func Run(t *testing.T, execute func([]string, *env.Env) int, program string, args ...string) (code int, stdout,
	stderr string) {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	require.NoError(t, err)
	defer f.Close()
	var out bytes.Buffer
	code = execute(args, &env.Env{Program: program, Stdin: strings.NewReader(""), Stdout: &out, Stderr: f,
		SelfEnv: Env(program)})
	text, err := os.ReadFile(f.Name())
	require.NoError(t, err)
	return code, out.String(), string(text)
}

// Runner runs a command line as Run does.
type Runner func(t *testing.T, args ...string) (code int, stdout, stderr string)

// Wrong demands that command lines are refused as wrong ones. Each has what must be said of it.
func Wrong(t *testing.T, run Runner, lines [][2]string) {
	t.Helper()
	for _, c := range lines {
		t.Run(c[0], func(t *testing.T) {
			code, out, errs := run(t, strings.Fields(c[0])...)
			require.Equal(t, env.ExitUsage, code)
			require.Contains(t, errs, c[1])
			require.Empty(t, out, "stdout is for results")
		})
	}
}

// Line demands that a command ends well, and returns its last line, which begins with word, and what it printed.
func Line[T any](t *testing.T, run Runner, word string, args ...string) (line T, stdout, stderr string) {
	t.Helper()
	code, stdout, stderr := run(t, args...)
	require.Equal(t, env.ExitOK, code, stderr)
	return Last[T](t, stdout, word), stdout, stderr
}

// Last returns the last line of output, which begins with word.
func Last[T any](t *testing.T, stdout, word string) (line T) {
	t.Helper()
	require.NoError(t, cli.ParseLine([]byte(stdout), word, &line))
	return line
}

// Children demands of a program that its hidden commands are those of the processes that others start, and that the
// parser alone knows them, each by the same type. It returns how many there are.
func Children(t *testing.T, whole, alone *kong.Kong) (hidden int) {
	t.Helper()
	for _, leaf := range whole.Model.Leaves(false) {
		require.Equal(t, leaf.Hidden, env.IsChild([]string{leaf.Name}), leaf.Name)
		if leaf.Hidden {
			hidden++
			ctx, err := alone.Parse([]string{leaf.Name})
			require.NoError(t, err)
			require.Equal(t, leaf.Target.Type(), ctx.Selected().Target.Type())
		}
	}
	return hidden
}
