// lab resolver-proof: every state of the directed links of five nodes, decided under every strategy.

package main

import (
	"errors"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/kith-io/kith/internal/cli"
	"github.com/kith-io/kith/internal/cli/env"
	"github.com/kith-io/kith/internal/sim/proof"
)

// proofCmd is the flags of lab resolver-proof.
type proofCmd struct {
	Nodes int  `default:"5" help:"How many nodes, 2 to 5: all 2^(n(n-1)) states of their directed links are tried."`
	JSON  bool `name:"json" help:"Print nothing but the last line."`
}

// Validate is called by the parser.
func (c *proofCmd) Validate() error {
	if c.Nodes < 2 || c.Nodes > proof.MaxNodes {
		return fmt.Errorf("--nodes must be 2 to %d", proof.MaxNodes)
	}
	return nil
}

var errProof = errors.New("the proof failed")

// Run runs the proof; a double survivor, or no survivor where there must be one, makes it fail.
func (c *proofCmd) Run(e *env.Env) error {
	begin := time.Now()
	r := proof.Run(c.Nodes, proof.Cases(c.Nodes))
	r.WallSeconds = time.Since(begin).Seconds()
	if !c.JSON {
		t := tabwriter.NewWriter(e.Stdout, 0, 0, 2, ' ', 0)
		fmt.Fprintf(t, "strategy and settings\tobliged\tsurvived\tall down\tdouble\tunexpected\n")
		for _, row := range r.Rows {
			fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%d\t%d\n", row.Settings, row.Obliged, row.Survived, row.AllDown,
				row.DoubleSurvivors, row.AllDownUnexpected)
		}
		_ = t.Flush()
		for _, f := range r.Failures {
			fmt.Fprintln(e.Stdout, f)
		}
	}
	if err := cli.Line(e.Stdout, "resolver", r); err != nil {
		return err
	}
	if n := r.DoubleSurvivors + r.AllDownUnexpected; n > 0 {
		return fmt.Errorf("%w in %d states", errProof, n)
	}
	return nil
}
