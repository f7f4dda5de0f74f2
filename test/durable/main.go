// Command durable runs durable entities on real node processes, over a real store, under faults that a seed draws, and
// holds the answers to callers against what is stored: docs/durable.md. It is a module of its own, so that no other
// program links an engine.
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
	Run runCmd `cmd:"" help:"Run it: this is what is done where no command is named."`

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
	Engine      string        `enum:"sqlite,postgres,etcd,quorum" default:"sqlite" help:"The store: sqlite, postgres or etcd, whose server is the run's own, or quorum, the disks of the nodes."`
	Minutes     float64       `default:"3" help:"No fault begins later; the last one is waited for. Up to 60."`
	Seed        uint64        `default:"0" help:"Draws the faults; 0: another one each time, which the last line tells."`
	Nodes       int           `default:"5" help:"Node processes, 3 to 9."`
	Accounts    int           `default:"1000" help:"Accounts, 10 to 100000."`
	Rate        float64       `default:"100" help:"Transfers a second."`
	Only        []string      `help:"Only these faults: kill, stop, rolling, lock, full, server (postgres, etcd), empty, cut, leave (quorum), none."`
	StableAfter time.Duration `default:"2s" help:"kith.Config.Resolver.StableAfter of the nodes."`
	Idle        time.Duration `default:"2s" help:"Until an account without messages is put away, to be read again; 0: never."`
	Break       string        `enum:",early,unbound,forget,again,marks,outbox,alarms,stale,readers" default:"" help:"${break_help}"`
	Out         string        `default:"out" help:"Folder for durable-<seed>: the timeline and, after a failure, all logs and the store."`
	Keep        bool          `help:"Keep logs and store in any case."`
	Progress    bool          `help:"Show progress although stderr is not a terminal."`
}

const breakHelp = "Plant a mistake, to see that a law finds it: early (a commit is told as done before it is), " +
	"unbound (a refused commit is written all the same), forget (a commit is told as done and never made), again " +
	"(callers repeat what may have been done), marks (what an entity has seen is not written), outbox (what it has " +
	"sent is not written), alarms (nor what it is to be reminded of), stale (a register reads what was there before), " +
	"readers (what they are sent is dropped, or handled late)."

// Validate is called by the parser.
func (c *runCmd) Validate() error {
	cfg := c.config()
	return cfg.validate()
}

func (c *runCmd) config() config {
	return config{Engine: c.Engine, For: time.Duration(c.Minutes * float64(time.Minute)), Seed: c.Seed, Nodes: c.Nodes,
		Accounts: c.Accounts, Rate: c.Rate, Only: c.Only, StableAfter: c.StableAfter, Break: c.Break, Out: c.Out,
		Idle: c.Idle, Keep: c.Keep}
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
	return env.Report(e, "durable", r, err)
}

const about = "durable runs durable entities on real processes under faults, and checks what is stored.\n\n" +
	"Exit codes:\n\n  - 0: done\n  - 1: an error, or a law is broken\n  - 2: the command line is wrong; nothing was started"

func main() { os.Exit(execute(os.Args[1:], env.Of("durable"))) }

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
		return kong.New(&commands{}, append(more, kong.Name("durable"), kong.Description(about),
			kong.Vars{"break_help": breakHelp})...)
	}
	return env.Execute(named(args), e, &children{}, parser, func() []any { return nil })
}
