// What a command has of the world, and the exit codes.

package command

import (
	"io"
	"os"

	"github.com/kith-io/kith/internal/cli"
)

// The exit codes.
const (
	exitOK          = 0 // did what was asked; a node left gracefully
	exitFailed      = 1 // an error, a lost or reordered message, a violation
	exitUsage       = 2 // the command line is wrong; nothing was started
	exitEnded       = 3 // run: the cluster ended this node (downed, removed, isolated, twin)
	exitNotAdmitted = 4 // run: not admitted in time
	exitRefused     = 5 // run: the cluster refused this node for good
)

// env is what a command has of the world.
type env struct {
	program  string // the name that it was built by
	stdin    io.Reader
	stdout   io.Writer
	stderr   *os.File
	selfArgs []string // what to put before the arguments of a child process; tests need it
	selfEnv  []string
}

// exitError carries an exit code of its own.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

// startChild starts this program again as a node process, or another build of it.
func (e *env) startChild(name, build string, stderr io.Writer) (*cli.Child, error) {
	return cli.Start(cli.Options{Name: name, Path: build, Args: append(e.selfArgs, "child"), Env: e.selfEnv,
		Stderr: stderr})
}
