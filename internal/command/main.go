// Package command is the node binary: it runs one kith node, or a local cluster of real processes, asks a running node,
// or runs the simulator's storm. cmd/kith and cmd/node are the program.
package command

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/alecthomas/kong"
	completion "github.com/jotaen/kong-completion"

	"github.com/kith-io/kith/internal/cli"
	"github.com/kith-io/kith/internal/operate"
	"github.com/kith-io/kith/internal/settings"
)

// commands is the command line. The field names are the names of the flags.
type commands struct {
	operate.Verbs

	Run      runCmd      `cmd:"" help:"${run_help}"`
	Config   configCmd   `cmd:"" help:"${configcmd_help}"`
	Dev      devCmd      `cmd:"" help:"Run a local cluster of real processes with demo entities, and count every message."`
	Accounts accountsCmd `cmd:"" help:"Run storms of heavy traffic, and account for every accepted message."`
	Storm    stormCmd    `cmd:"" help:"Run random simulated clusters under random faults, and check every step."`
	Scale    scaleCmd    `cmd:"" help:"Measure a large simulated membership: joins, crashes, sizes, bytes, suspicions."`
	Timers   timersCmd   `cmd:"" help:"Set very many timers on nodes that stand still; count the early, measure the late."`
	Proof    proofCmd    `cmd:"" name:"resolver-proof" help:"Prove that no state of the links lets two sides live."`
	Model    modelCmd    `cmd:"" help:"Try every order of events in a small cluster whose shards move."`
	Kill     killCmd     `cmd:"" name:"kill-test" help:"Kill one of several node processes; measure when others say so."`
	Chaos    chaosCmd    `cmd:"" help:"Run real node processes under faults that a seed draws, and check what they do."`
	Failover failoverCmd `cmd:"" help:"Kill owners and coordinators among real processes; say where each second goes."`
	Rolling  rollingCmd  `cmd:"" help:"Restart the processes of a cluster in turn, under load; nothing may be lost."`
	Replay   replayCmd   `cmd:"" help:"Replay a flight record; print what its node saw and decided."`
	Cert     certCmd     `cmd:"" help:"Make a certificate authority and certificates of nodes, revoke or show them."`

	Version    versionCmd            `cmd:"" help:"Print version, commit, and the wire versions that it speaks."`
	Completion completion.Completion `cmd:"" help:"Print how bash, zsh or fish complete commands and flags."`
	bootCommands

	Partition   partitionCmd   `cmd:"" name:"partition-test" help:"${partition_help}"`
	ScaleShards scaleShardsCmd `cmd:"" help:"Measure types of very many shards on real node processes."`
	ScaleOut    scaleOutCmd    `cmd:"" help:"Have nodes join a cluster under load; measure when shards are even."`

	Children children `embed:""`
}

// Bounds of what a flag may be that has none of its own: nothing that is computed with them overflows.
const (
	maxDuration = 365 * 24 * time.Hour
	maxWhole    = 1<<31 - 1
	maxReal     = 1e12
)

// Validate is called by the parser: it refuses numbers and durations that no flag has a use for.
func (c *commands) Validate(ctx *kong.Context) error {
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

// children are the processes that commands start.
type children struct {
	Child        childCmd            `cmd:"" hidden:"" help:"Be a node process of dev: answer calls on stdin."`
	ChaosChild   chaosChildCmd       `cmd:"" hidden:"" help:"Be a node process of chaos: answer calls on stdin."`
	RollingChild rollingChildCmd     `cmd:"" hidden:"" help:"Be a node process of rolling: answer calls on stdin."`
	ShardsChild  scaleShardsChildCmd `cmd:"" hidden:"" help:"Be a node process of scale-shards: answer calls on stdin."`
}

// Name is the name of the program.
const Name = "kith"

// Main runs the program with the arguments and streams of its process, under the name that it was built by. It returns
// the exit code.
func Main(program string) int {
	e := &env{program: program, stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr}
	if cli.IsTerminal(os.Stdout) {
		e.clear = func() { _, _ = os.Stdout.WriteString("\x1b[H\x1b[2J") }
	}
	return execute(os.Args[1:], e)
}

// parserFor returns a parser of the command line that knows what args need: one of a node process that another command
// has started knows nothing but those. Making sense of all flags of all commands takes a tenth of a second of a core,
// which would be missed by what such a command measures.
func parserFor(args []string, program string, more ...kong.Option) (*kong.Kong, error) {
	if len(args) == 1 && strings.HasSuffix(args[0], "child") {
		return kong.New(&children{}, append(more, kong.Name(program))...)
	}
	return parserOf(&commands{}, program, more...)
}

// parserOf returns the parser of the whole command line.
func parserOf(c *commands, program string, more ...kong.Option) (*kong.Kong, error) {
	more = append(more, kong.Name(program), kong.Description(about()), texts, settings.Envs("run", "config"))
	return kong.New(c, more...)
}

// execute parses args, runs the command and returns the exit code.
func execute(args []string, e *env) int {
	exited := false
	e.stdout = cli.Clean(e.stdout)
	stderr := cli.Clean(e.stderr)
	parser, err := parserFor(args, e.program, kong.Writers(e.stdout, stderr), kong.Exit(func(int) { exited = true }))
	if err != nil { // the tags above are wrong
		fmt.Fprintln(stderr, e.program+":", err)
		return exitFailed
	}
	completion.Register(parser, completion.WithExitFunc(func(int) { exited = true }))
	if exited { // a shell has asked how to go on
		return exitOK
	}
	ctx, err := parser.Parse(args)
	if exited { // --help was printed
		return exitOK
	}
	if err != nil {
		fmt.Fprintf(stderr, "%s: %s\n%s\n", e.program, cli.Fault(err), cli.Hint(e.program, err))
		return exitUsage
	}
	e.again = func() (any, error) {
		anew, err := parserOf(&commands{}, e.program)
		if err != nil {
			return nil, err
		}
		ctx, err := anew.Parse(args)
		if err != nil {
			return nil, err
		}
		return ctx.Selected().Target.Addr().Interface(), nil
	}
	switch err := ctx.Run(e, &operate.Console{Out: e.stdout, Clear: e.clear}); {
	case err == nil:
		e.flush()
		return exitOK
	default:
		e.last(err)
		if x := (*exitError)(nil); errors.As(err, &x) {
			return x.code
		}
		return exitFailed
	}
}
