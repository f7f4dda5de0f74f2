// lab partition-test: a cut between real processes under traffic, what each side does and when, and what the verbs say
// on both of them.

package main

import (
	"github.com/kith-io/kith/internal/cli"
	"github.com/kith-io/kith/internal/cli/env"
	"github.com/kith-io/kith/internal/lab/chaos"
)

// partitionCmd is the flags of lab partition-test.
type partitionCmd struct {
	Cases []string `help:"${partcases_help}"`
	Net   string   `enum:"auto,netns,proxy" default:"auto" help:"${net_help}"`
	Heal  bool     `default:"true" negatable:"" help:"Heal the cut, and wait until all nodes are back."`
	trialFlags
}

// Validate is called by the parser.
func (c *partitionCmd) Validate() error {
	_, err := chaos.ParsePartitionCases(c.Cases)
	return c.faults(err)
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
	r, err := chaos.Partition(ctx, chaos.PartitionConfig{Cases: cases, Net: c.Net, NoHeal: !c.Heal,
		Trial: c.trial(e, "partition"), Verbs: cli.Options{Path: program, Env: kithEnv}})
	return env.Report(e, "partition", r, err)
}
