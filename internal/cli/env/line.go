// The command line: flags within bounds, one command that runs.

package env

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/alecthomas/kong"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/internal/cli"
)

// Bounds of what a flag may be that has none of its own: nothing that is computed with them overflows.
const (
	maxDuration = 365 * 24 * time.Hour
	maxWhole    = 1<<31 - 1
	maxReal     = 1e12
)

// MaxWorkers bounds the workers of a command that simulates: each is a goroutine with a cluster of its own.
const MaxWorkers = 4096

// Bounds is embedded in the struct of a program's commands.
type Bounds struct{}

// Validate is called by the parser: it refuses numbers and durations that no flag has a use for.
func (Bounds) Validate(ctx *kong.Context) error {
	var errs []error
	for _, f := range ctx.Flags() {
		switch v := f.Target.Interface().(type) {
		case time.Duration:
			if v > maxDuration || v < -maxDuration {
				errs = append(errs, fmt.Errorf("--%s is %v, at most %v is possible", f.Name, v, maxDuration))
			}
		case int:
			if v > maxWhole || v < -maxWhole {
				errs = append(errs, fmt.Errorf("--%s is %d, at most %d is possible", f.Name, v, maxWhole))
			}
		case float64:
			if !(v <= maxReal && v >= -maxReal) { // nor what is no number
				errs = append(errs, fmt.Errorf("--%s is %v, at most %v is possible", f.Name, v, maxReal))
			}
		}
	}
	return errors.Join(errs...)
}

// IsChild reports whether args are those of a node process that another command has started. Its parser needs to know
// nothing but these commands: making sense of all flags of all commands takes a tenth of a second of a core, which
// would be missed by what such a command measures.
func IsChild(args []string) bool { return len(args) == 1 && strings.HasSuffix(args[0], "child") }

// Help is the command that says what --help says. It is never run: Execute reads it as that flag.
type Help struct {
	Command []string `arg:"" optional:"" help:"A command; none: all of them."`
}

// Run is for the parser, which wants one of every command.
func (*Help) Run() error { return nil }

// helped returns args in which "help COMMAND" is "COMMAND --help".
func helped(args []string) []string {
	if len(args) == 0 || args[0] != "help" {
		return args
	}
	return append(slices.Clone(args[1:]), "--help")
}

// Execute reads args, runs the command that they name and returns the exit code. parser makes the parser, by these
// options, of a new struct of commands; a command is given e and the values that bind makes once Stdout is clean.
// children is a struct of the commands that IsChild knows. A command that could not print all that it had to say has
// failed, whatever it returns itself.
func Execute(args []string, e *Env, children any, parser func(...kong.Option) (*kong.Kong, error),
	bind func() []any) int {
	if IsChild(args) { // it has no output: its parent knows of a call without an answer
		return execute(args, e, children, parser, bind)
	}
	out := &output{to: e.Stdout}
	e.Stdout = out
	code := execute(args, e, children, parser, bind)
	switch fault := out.fault.Load(); {
	case fault == nil || code != ExitOK && code != ExitUsage:
		return code
	case code == ExitOK:
		e.Last(fmt.Errorf("not all of the output is written: %w", *fault))
	}
	return ExitFailed
}

// output passes on what is printed, and remembers the first error of that.
type output struct {
	to    io.Writer
	fault atomic.Pointer[error]
}

// Write is called by any goroutine.
func (o *output) Write(p []byte) (int, error) {
	n, err := o.to.Write(p)
	if err != nil {
		o.fault.CompareAndSwap(nil, &err)
	}
	return n, err
}

func execute(args []string, e *Env, children any, parser func(...kong.Option) (*kong.Kong, error),
	bind func() []any) int {
	if IsChild(args) {
		parser = func(more ...kong.Option) (*kong.Kong, error) {
			return kong.New(children, append(more, kong.Name(e.Program))...)
		}
	}
	exited := false
	e.Stdout = cli.Clean(e.Stdout)
	stderr := cli.Clean(e.Stderr)
	line, err := parser(kong.Writers(e.Stdout, stderr), kong.Exit(func(int) { exited = true }))
	if err != nil { // the tags of the commands are wrong
		fmt.Fprintln(stderr, e.Program+":", err)
		return ExitFailed
	}
	if asked, err := answerShell(e.Stdout, line.Model.Node); err != nil {
		return ExitFailed
	} else if asked {
		return ExitOK
	}
	args = helped(args)
	ctx, err := line.Parse(args)
	if exited { // --help was printed
		return ExitOK
	}
	if err != nil {
		fmt.Fprintf(stderr, "%s: %s\n%s\n", e.Program, Plain(cli.Fault(err)), cli.Hint(e.Program, err))
		return ExitUsage
	}
	e.Again = func() (any, error) {
		anew, err := parser()
		if err != nil {
			return nil, err
		}
		ctx, err := anew.Parse(args)
		if err != nil {
			return nil, err
		}
		return ctx.Selected().Target.Addr().Interface(), nil
	}
	if err := ctx.Run(append(bind(), e)...); err != nil {
		e.Last(err)
		if x := (*Exit)(nil); errors.As(err, &x) {
			return x.Code
		}
		if errors.Is(err, kith.ErrBadConfig) {
			return ExitUsage
		}
		return ExitFailed
	}
	e.Flush()
	return ExitOK
}
