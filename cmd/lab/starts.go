// lab starts: simulated nodes that know nobody, over histories of discovery that a seed draws.

package main

import (
	"fmt"

	"github.com/kith-io/kith/internal/cli"
	"github.com/kith-io/kith/internal/cli/env"
	"github.com/kith-io/kith/internal/sim/starts"
)

// startsCmd is the flags of lab starts.
type startsCmd struct {
	Starts  int    `default:"100000" help:"How many starts of 1 to 9 nodes, one for each seed."`
	First   uint64 `default:"1" help:"The first seed."`
	Workers int    `default:"0" help:"${workers_help}"`
}

// Validate is called by the parser.
func (c *startsCmd) Validate() error {
	var errs cli.Faults
	errs.Must(c.Starts >= 1 && c.Starts <= 100_000_000, "--starts must be 1 to 100000000")
	errs.Must(c.Workers >= 0, "--workers is negative")
	errs.Must(c.Workers <= env.MaxWorkers, "--workers must be at most %d", env.MaxWorkers)
	return errs.Err()
}

// startsLine is the last line.
type startsLine struct {
	First uint64 `json:"first"`
	starts.Result
}

// Run simulates the starts; a violation makes it fail.
func (c *startsCmd) Run(e *env.Env) error {
	r := starts.Run(c.First, c.Starts, c.Workers, func(f starts.Found) {
		fmt.Fprintf(e.Stdout, "seed %d: %s\n", f.Seed, f.What)
	})
	if err := cli.Line(e.Stdout, "starts", startsLine{c.First, r}); err != nil {
		return err
	}
	if r.Violations > 0 {
		return fmt.Errorf("%w: %d in %d starts", errViolations, r.Violations, r.Starts)
	}
	return nil
}
