// lab bootstrap-test: real node processes that know nobody, and a DNS server that does not always tell the truth.

package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/kith-io/kith/internal/cli"
	"github.com/kith-io/kith/internal/cli/env"
	"github.com/kith-io/kith/internal/lab/bootruns"
)

// bootstrapTestCmd is the flags of lab bootstrap-test.
type bootstrapTestCmd struct {
	Cases  []string      `help:"${bootcases_help}"`
	Margin time.Duration `default:"5s" help:"How long look-ups must show the same before a cluster is formed."`
	Logs   bool          `help:"Print the log of all nodes."`
}

// Validate is called by the parser.
func (c *bootstrapTestCmd) Validate() error {
	for _, name := range c.Cases {
		if !slices.Contains(bootruns.Cases, name) {
			return fmt.Errorf("--cases: no case %q", name)
		}
	}
	if c.Margin < 10*time.Millisecond || c.Margin > 10*time.Second {
		return errors.New("--margin must be 10ms to 10s")
	}
	return nil
}

var errBootstrap = errors.New("not one cluster")

// Run runs the cases; one that does not end with one cluster makes it fail.
func (c *bootstrapTestCmd) Run(e *env.Env) error {
	ctx, stop := cli.Interruptible()
	defer stop()
	program, err := kithProgram()
	if err != nil {
		return err
	}
	o := bootruns.Options{Path: program, Env: kithEnv, Cases: c.Cases, Margin: c.Margin, Log: e.Stderr}
	if c.Logs {
		o.Logs = io.Writer(e.Stderr)
	}
	r, err := bootruns.Run(ctx, o)
	if err != nil {
		return err
	}
	if err := cli.Line(e.Stdout, "bootstrap", r); err != nil {
		return err
	}
	if r.Wrong > 0 {
		return fmt.Errorf("%w in %d of %d runs", errBootstrap, r.Wrong, r.Runs)
	}
	return nil
}
