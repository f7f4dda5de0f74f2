// lab failover: what the loss of an owner costs its entities, in real processes, and where each second goes.

package main

import (
	"path/filepath"
	"time"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/internal/cli"
	"github.com/kith-io/kith/internal/cli/env"
	"github.com/kith-io/kith/internal/lab/chaos"
)

// trialFlags are those of the commands that measure cases, each time in a cluster of its own.
type trialFlags struct {
	Rounds      int           `default:"3" help:"How often each case is measured, each time in a cluster of its own, 1 to 100."`
	Nodes       int           `default:"5" help:"Node processes, 3 to 16."`
	Entities    int           `default:"10" help:"Entities of each mode, 1 to 1000."`
	StableAfter time.Duration `default:"0s" help:"${partstable_help}"`
	Patience    kith.Patience `default:"normal" help:"Preset of the nodes: normal, calm or noisy."`
	Out         string        `default:"out" help:"${trialout_help}"`
	Progress    bool          `help:"Show progress although stderr is not a terminal."`
}

// faults returns what is wrong with them; cases is what was said of the cases.
func (c *trialFlags) faults(cases error) error {
	var errs cli.Faults
	errs.Must(c.Nodes >= 3 && c.Nodes <= 16, "--nodes must be 3 to 16")
	errs.Must(c.Rounds >= 1 && c.Rounds <= 100, "--rounds must be 1 to 100")
	errs.Must(c.Entities >= 1 && c.Entities <= 1000, "--entities must be 1 to 1000")
	errs.Must(c.StableAfter == 0 || c.StableAfter >= time.Second && c.StableAfter <= time.Minute,
		"--stable-after must be 0, or 1s to 1m") // asking takes a moment
	return append(errs, cases).Err()
}

// trialLoad is tells and asks a second of each process.
const trialLoad = 60

// trial returns how cases are measured, with a folder of that name.
func (c *trialFlags) trial(e *env.Env, folder string) chaos.Trial {
	return chaos.Trial{Nodes: c.Nodes, Rounds: c.Rounds, StableAfter: c.StableAfter,
		Patience: c.Patience, Dir: filepath.Join(c.Out, folder),
		Load:  chaos.Load{Entities: c.Entities, Shards: chaosShards, Tells: trialLoad, Asks: trialLoad},
		Child: e.Self("chaos-child", false), Progress: cli.NewProgress(e.Stderr, c.Progress)}
}

// failoverCmd is the flags of lab failover.
type failoverCmd struct {
	Cases []string `help:"${cases_help}"`
	trialFlags
}

// Validate is called by the parser.
func (c *failoverCmd) Validate() error {
	_, err := chaos.ParseCases(c.Cases)
	return c.faults(err)
}

// Run measures and prints the last line.
func (c *failoverCmd) Run(e *env.Env) error {
	ctx, stop := cli.Interruptible()
	defer stop()
	cases, err := chaos.ParseCases(c.Cases)
	if err != nil {
		return err
	}
	r, err := chaos.Failover(ctx, chaos.FailoverConfig{Cases: cases, Trial: c.trial(e, "failover")})
	return env.Report(e, "failover", r, err)
}
