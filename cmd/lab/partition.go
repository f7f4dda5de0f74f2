// lab partition-test: a cut between real processes under traffic, what each side does and when, and what the verbs say
// on both of them.

package main

import (
	"errors"
	"path/filepath"
	"time"

	"github.com/kith-io/kith/internal/cli"
	"github.com/kith-io/kith/internal/cli/env"
	"github.com/kith-io/kith/internal/lab/chaos"
)

// partitionCmd is the flags of lab partition-test.
type partitionCmd struct {
	Cases       []string      `help:"${partcases_help}"`
	Rounds      int           `default:"3" help:"How often each case is measured, each time in a new cluster, 1 to 100."`
	Nodes       int           `default:"5" help:"Node processes, 3 to 16; fewer than half of them are cut off."`
	Net         string        `enum:"auto,netns,proxy" default:"auto" help:"${net_help}"`
	StableAfter time.Duration `default:"0s" help:"${partstable_help}"`
	Entities    int           `default:"10" help:"Entities of each mode, 1 to 1000."`
	Heal        bool          `default:"true" negatable:"" help:"Heal the cut, and wait until all nodes are back."`
	Out         string        `default:"out" help:"${partout_help}"`
	Progress    bool          `help:"Show progress although stderr is not a terminal."`
}

// Validate is called by the parser.
func (c *partitionCmd) Validate() error {
	var errs cli.Faults
	errs.Must(c.Nodes >= 3 && c.Nodes <= 16, "--nodes must be 3 to 16")
	errs.Must(c.Rounds >= 1 && c.Rounds <= 100, "--rounds must be 1 to 100")
	errs.Must(c.Entities >= 1 && c.Entities <= 1000, "--entities must be 1 to 1000")
	errs.Must(c.StableAfter == 0 || c.StableAfter >= time.Second && c.StableAfter <= time.Minute,
		"--stable-after must be 0, or 1s to 1m") // asking takes a moment
	if _, err := chaos.ParsePartitionCases(c.Cases); err != nil {
		errs = append(errs, err)
	}
	return errs.Err()
}

// Run measures and prints the last line.
func (c *partitionCmd) Run(e *env.Env) error {
	ctx, stop := cli.Interruptible()
	defer stop()
	program, err := kithProgram()
	if err != nil {
		return err
	}
	cases, err := chaos.ParsePartitionCases(c.Cases)
	if err != nil {
		return err
	}
	r, err := chaos.Partition(ctx, chaos.PartitionConfig{Nodes: c.Nodes, Rounds: c.Rounds, Cases: cases, Net: c.Net,
		StableAfter: c.StableAfter, NoHeal: !c.Heal, Dir: filepath.Join(c.Out, "partition"),
		Load:     chaos.Load{Entities: c.Entities, Shards: chaosShards, Tells: failoverLoad, Asks: failoverLoad},
		Child:    e.Self("chaos-child"),
		Verbs:    cli.Options{Path: program, Env: kithEnv},
		Progress: cli.NewProgress(e.Stderr, c.Progress)})
	if r == nil {
		return err
	}
	r.Table(e.Stdout)
	return errors.Join(err, cli.Line(e.Stdout, "partition", r))
}
