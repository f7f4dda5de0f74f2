// Package env is what a program of commands has of the world: its streams, how it starts itself again, its exit codes,
// and how it reads a command line and ends. The node binary and the laboratory are such programs.
package env

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/internal/base/logs"
	"github.com/kith-io/kith/internal/cli"
)

// The exit codes: those of every program with a node. Exit.Code has one of them where the program does not end with
// ExitOK or what kith.ExitCode says of its error.
const (
	ExitOK          = kith.ExitOK
	ExitFailed      = kith.ExitFailed
	ExitUsage       = kith.ExitUsage
	ExitEnded       = kith.ExitEnded
	ExitNotAdmitted = kith.ExitNotAdmitted
	ExitRefused     = kith.ExitRefused
	ExitNoCluster   = kith.ExitNoCluster
	ExitStatesLost  = kith.ExitStatesLost
	ExitInterrupted = kith.ExitInterrupted
)

// Env is what a command has of the world.
type Env struct {
	Program string // the name that it was built by
	Stdin   io.Reader
	Stdout  io.Writer
	Stderr  *os.File
	Again   func() (command any, err error) // reads the command line anew, and what it leads to; Execute sets it
	Out     *logs.Queue                     // in front of Stderr, where nobody may wait for it; else nil
	Clear   func()                          // clears the screen; nil where Stdout is none
	SelfEnv []string                        // NAME=value for child processes; tests need it
}

// Of returns what a command of this process has.
func Of(program string) *Env {
	e := &Env{Program: program, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr}
	if cli.IsTerminal(os.Stdout) {
		e.Clear = func() { _, _ = os.Stdout.WriteString("\x1b[H\x1b[2J") }
	}
	return e
}

// Flush waits, a second at most, until Stderr has what is queued in front of it.
func (e *Env) Flush() {
	if e.Out != nil {
		e.Out.Flush(logs.FlushTime)
	}
}

// Last prints why the program ends.
func (e *Env) Last(err error) {
	stderr := cli.Clean(e.Stderr)
	if e.Out != nil {
		stderr = e.Out.Writer(stderr)
	}
	said := e.Program + ":"
	if errors.Is(err, context.Canceled) { // by a signal: nothing else cancels
		said += " interrupted:"
	}
	fmt.Fprintln(stderr, said, Plain(err.Error()))
	e.Flush()
}

// Plain returns the text of an error without the prefix by which the library's errors are known: the program says its
// own name, once.
func Plain(text string) string {
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		lines[i] = strings.ReplaceAll(strings.TrimPrefix(l, library), ": "+library, ": ")
	}
	return strings.Join(lines, "\n")
}

const library = "kith: " // what errors of the library begin with

// Self says how a command of this program is started as a process that answers calls. Its log is shown, or only the end
// of it where the process fails.
func (e *Env) Self(command string, shown bool) cli.Options {
	o := cli.Options{Args: []string{command}, Env: e.SelfEnv}
	if shown {
		o.Stderr = cli.Clean(e.Stderr)
	}
	return o
}

// Report prints the result of a command that measures: a table, if it has one, and the last line. err says what must
// not be, and is returned. Without a result there is nothing to print.
func Report[T any](e *Env, word string, result *T, err error) error {
	if result == nil {
		return err
	}
	if t, is := any(result).(interface{ Table(io.Writer) }); is {
		t.Table(e.Stdout)
	}
	return errors.Join(err, cli.Line(e.Stdout, word, result))
}

// Exit is an error with an exit code of its own.
type Exit struct {
	Code int
	Err  error
}

// Error returns what Err says.
func (e *Exit) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *Exit) Unwrap() error { return e.Err }
