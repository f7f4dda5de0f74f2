// lab accounts: storms of heavy traffic in which every accepted message has to be accounted for.

package main

import (
	"fmt"
	"maps"
	"slices"
	"text/tabwriter"

	"github.com/kith-io/kith/internal/cli"
	"github.com/kith-io/kith/internal/cli/env"
	"github.com/kith-io/kith/internal/sim/storm"
)

// accountsCmd is the flags of lab accounts.
type accountsCmd struct {
	stormCmd
}

// accountsLine is the last line.
type accountsLine struct {
	storm.Ran
	storm.Account
	Violations   int     `json:"violations"`
	Faults       int     `json:"faults"`
	ClusterHours float64 `json:"cluster_hours"` // virtual time of the first run of each seed
	TraceHash    string  `json:"trace_hash"`    // over the traces of all seeds, in seed order
	WallSeconds  float64 `json:"wall_seconds"`
	storm.Failing
}

// Run runs the storms; a difference or any other violation makes it fail.
func (c *accountsCmd) Run(e *env.Env) error {
	r := c.storms(e, true)
	if !c.JSON {
		t := tabwriter.NewWriter(e.Stdout, 0, 0, 2, ' ', 0)
		fmt.Fprintf(t, "seeds\t%s, %.1f cluster-hours\n", ranSeeds(&r.Ran), r.ClusterHours)
		fmt.Fprintf(t, "accepted\t%d\n", r.Accepted)
		fmt.Fprintf(t, "handled\t%d\n", r.Handled)
		fmt.Fprintf(t, "reported\t%d\n", r.Reported)
		for _, cause := range slices.Sorted(maps.Keys(r.Lost)) {
			fmt.Fprintf(t, "lost: %s\t%d\n", cause, r.Lost[cause])
		}
		for _, cause := range slices.Sorted(maps.Keys(r.Lacking)) {
			fmt.Fprintf(t, "difference: %s\t%d\n", cause, r.Lacking[cause])
		}
		_ = t.Flush()
		tellFailures(e, r.Failures)
		tellFailing(e, &r.Failing)
	}
	if err := cli.Line(e.Stdout, "accounts", accountsLine{r.Ran, r.Account, r.Violations, r.Faults,
		r.ClusterHours, r.TraceHash, r.WallSeconds, r.Failing}); err != nil {
		return err
	}
	return c.verdict(&r.Ran, r.Violations)
}
