// lab stalls: real processes that stand still for moments, under load, and which of them end for it.

package main

import (
	"time"

	"github.com/kith-io/kith/internal/cli"
	"github.com/kith-io/kith/internal/cli/env"
	"github.com/kith-io/kith/internal/lab/chaos"
)

// stallsCmd is the flags of lab stalls.
type stallsCmd struct {
	Minutes float64       `default:"2" help:"How long, 0.1 to 1000."`
	Longest time.Duration `default:"2s" help:"A stall takes half of it to all of it, 10ms to 1m."`
	Every   time.Duration `default:"6s" help:"From the begin of one stall to that of the next."`
	Seed    uint64        `default:"1" help:"Of who stands still, and for how long."`
	trialFlags
}

// Validate is called by the parser.
func (c *stallsCmd) Validate() error {
	var errs cli.Faults
	errs.Must(c.Minutes >= 0.1 && c.Minutes <= 1000, "--minutes must be 0.1 to 1000")
	errs.Must(c.Longest >= 10*time.Millisecond && c.Longest <= time.Minute, "--longest must be 10ms to 1m")
	errs.Must(c.Every > c.Longest, "--every must be more than --longest")
	return c.faults(errs.Err())
}

// Run measures and prints the last line.
func (c *stallsCmd) Run(e *env.Env) error {
	ctx, stop := cli.Interruptible()
	defer stop()
	r, err := chaos.Stalls(ctx, chaos.StallsConfig{Trial: c.trial(e, "stalls"), Longest: c.Longest, Every: c.Every,
		For: time.Duration(c.Minutes * float64(time.Minute)), Seed: c.Seed})
	return env.Report(e, "stalls", r, err)
}
