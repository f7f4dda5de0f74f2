// What a command has of the world, and the exit codes.

package command

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/kith-io/kith/internal/cli"
	"github.com/kith-io/kith/internal/logs"
)

// The exit codes.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitEnded       = 3
	exitNotAdmitted = 4
	exitRefused     = 5
	exitNoCluster   = 6
	exitStatesLost  = 7
	exitInterrupted = 130 // what shells say of a program that SIGINT has ended
)

// maxWorkers bounds the workers of a command that simulates: each is a goroutine with a cluster of its own.
const maxWorkers = 4096

// exitCodes says what each of them means: --help and docs/admin.md have it from here.
var exitCodes = []struct {
	code int
	what string
}{
	{exitOK, "done; a node left gracefully"},
	{exitFailed, "an error; the node that was asked refuses, or does not answer; status: not ready; a violation"},
	{exitUsage, "the command line or the configuration is wrong; nothing was started"},
	{exitEnded, "run: the cluster ended this node (downed, removed, isolated); start it again"},
	{exitNotAdmitted, "run: not admitted within --join-timeout; start it again"},
	{exitRefused, "run: the cluster refused this node for good; look at its configuration first"},
	{exitNoCluster, "run: no cluster was found within --bootstrap-timeout; start it again"},
	{exitStatesLost, "run: the node left as it was told to, and states of entities are lost; its log names them"},
	{exitInterrupted, "run: SIGINT came while it left, and ended it at once"},
}

// about is what --help says of the program.
func about() string {
	var b strings.Builder
	b.WriteString("kith: gossip membership, failure detection and sharded entities.\n\nExit codes:\n")
	for _, x := range exitCodes {
		fmt.Fprintf(&b, "\n  - %d: %s", x.code, x.what)
	}
	return b.String()
}

// versionCmd is the flags of kith version.
type versionCmd struct {
	JSON bool `name:"json" help:"Print as one JSON object."`
}

// Run prints what this program was built from.
func (c *versionCmd) Run(e *env) error {
	b := cli.BuildOf()
	if c.JSON {
		return json.NewEncoder(e.stdout).Encode(b)
	}
	commit := cmp.Or(b.Commit, "unknown")
	if b.Modified {
		commit += ", with changes"
	}
	cli.Table(e.stdout, []string{"kith", b.Version}, []string{"commit", commit}, []string{"built by", b.Go},
		[]string{"wire version", fmt.Sprintf("%d, and down to %d with older nodes", b.Wire, b.OldestWire)})
	return nil
}

// env is what a command has of the world.
type env struct {
	program  string // the name that it was built by
	stdin    io.Reader
	stdout   io.Writer
	stderr   *os.File
	again    func() (command any, err error) // reads the command line anew, and what it leads to
	out      *logs.Queue                     // in front of stderr, where nobody may wait for it; else nil
	clear    func()                          // clears the screen; nil where stdout is none
	selfArgs []string                        // what to put before the arguments of a child process; tests need it
	selfEnv  []string
}

// flush waits, a second at most, for what stderr is still to be told.
func (e *env) flush() {
	if e.out != nil {
		e.out.Flush(logs.FlushTime)
	}
}

// last says why the program ends.
func (e *env) last(err error) {
	stderr := cli.Clean(e.stderr)
	if e.out != nil {
		stderr = e.out.Writer(stderr)
	}
	fmt.Fprintln(stderr, e.program+":", err)
	e.flush()
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
