// Command data runs stores of package quorum on real node processes with disks, under faults that a seed draws, and
// holds what callers were answered against what they read later: docs/values.md. It is a module of its own, so that no
// other program links an engine or a judge.
package main

import (
	"os"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/kith-io/kith/internal/cli"
	"github.com/kith-io/kith/internal/cli/env"
)

// commands is the command line. The field names are the names of the flags.
type commands struct {
	Run     runCmd     `cmd:"" help:"Run it: this is what is done where no command is named."`
	Compare compareCmd `cmd:"" help:"Measure writes and reads beside three servers of etcd, in turn."`

	children `embed:""`

	env.Bounds
}

// children are the processes that the run starts.
type children struct {
	Child childCmd `cmd:"" name:"node-child" hidden:"" help:"Be a node process: answer calls on stdin."`
}

// childCmd is one node process.
type childCmd struct{}

// Run answers calls until the parent is gone.
func (*childCmd) Run(e *env.Env) error { return serveChild(e.Stdin, e.Stdout, e.Stderr) }

// runCmd is the flags of the run.
type runCmd struct {
	Minutes  float64  `default:"3" help:"No fault begins later; the last one is waited for. Up to 60."`
	Seed     uint64   `default:"0" help:"Draws the faults; 0: another one each time, which the last line tells."`
	Rate     float64  `default:"100" help:"Reads and writes a second of each of the three stores, 1 to 5000."`
	Only     []string `help:"Only these faults: kill, power, stop, cut, empty, full, torn, bit, leave, none."`
	Break    string   `enum:",stale,forget" default:"" help:"Plant a mistake, to see that a law finds it: stale (some reads return what was there before), forget (some writes are told as done and never made)."`
	Out      string   `default:"out" help:"Folder for data-<seed>: the timeline and, after a failure, all logs and disks."`
	Keep     bool     `help:"Keep logs and disks in any case."`
	Progress bool     `help:"Show progress although stderr is not a terminal."`
}

// Validate is called by the parser.
func (c *runCmd) Validate() error {
	cfg := c.config()
	return cfg.validate()
}

func (c *runCmd) config() config {
	return config{For: time.Duration(c.Minutes * float64(time.Minute)), Seed: c.Seed, Rate: c.Rate, Only: c.Only,
		Break: c.Break, Out: c.Out, Keep: c.Keep}
}

// Run prints the last line.
func (c *runCmd) Run(e *env.Env) error {
	ctx, stop := cli.Interruptible()
	defer stop()
	cfg := c.config()
	if cfg.Seed == 0 {
		cfg.Seed = uint64(time.Now().UnixNano())%1_000_000 + 1
	}
	cfg.Child, cfg.Progress = e.Self("node-child", false), cli.NewProgress(e.Stderr, c.Progress)
	r, err := run(ctx, cfg)
	return env.Report(e, "data", r, err)
}

const about = "data runs stores of package quorum on five real processes under faults, and checks what is read.\n\n" +
	"Exit codes:\n\n  - 0: done\n  - 1: an error, or a law is broken\n  - 2: the command line is wrong; nothing was started"

func main() { os.Exit(execute(os.Args[1:], env.Of("data"))) }

// named returns args with the command that is meant where none is named.
func named(args []string) []string {
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		return args
	}
	return append([]string{"run"}, args...)
}

// execute parses args, runs the command and returns the exit code.
func execute(args []string, e *env.Env) int {
	parser := func(more ...kong.Option) (*kong.Kong, error) {
		return kong.New(&commands{}, append(more, kong.Name("data"), kong.Description(about))...)
	}
	return env.Execute(named(args), e, &children{}, parser, func() []any { return nil })
}
