// lab storm-durable: storms of durable entities over a simulated store; their history is judged afterwards.

package main

import (
	"fmt"
	"text/tabwriter"

	"github.com/kith-io/kith/internal/cli"
	"github.com/kith-io/kith/internal/cli/env"
	"github.com/kith-io/kith/internal/lab/durables"
)

// stormDurableCmd is the flags of lab storm-durable.
type stormDurableCmd struct {
	seedsCmd
}

// Run runs the storm; a violation makes it fail.
func (c *stormDurableCmd) Run(e *env.Env) error {
	shows, stop, end := c.begins(e)
	defer end()
	r := durables.Run(durables.Config{Seeds: c.Seeds, First: c.First, Workers: c.Workers, TraceDir: c.TraceDir, Stop: stop,
		Progress: shows})
	if !c.JSON {
		t := tabwriter.NewWriter(e.Stdout, 0, 0, 2, ' ', 0)
		fmt.Fprintf(t, "seeds\t%s, %.1f cluster-hours\n", ranSeeds(&r.Ran), r.Hours)
		fmt.Fprintf(t, "faults\t%d of nodes and network, %d of the way to the store\n", r.Faults, r.StoreFaults)
		fmt.Fprintf(t, "store\t%d calls, %d lost, %d without an answer, %d commits that came again; %d fenced\n",
			r.StoreCalls, r.StoreLost, r.StoreMute, r.StoreAgain, r.Fenced)
		fmt.Fprintf(t, "asked\t%d, told as done %d, refused %d, of unknown outcome %d\n", r.Asked, r.Acked, r.Rejected,
			r.Open)
		fmt.Fprintf(t, "sent\t%d, handled %d, refunded %d, told as perhaps handled %d\n", r.Sent, r.Delivered, r.Refunded,
			r.Undelivered)
		fmt.Fprintf(t, "reminders\t%d, came %d times, %d taken away\n", r.Reminders, r.Fired, r.Cancelled)
		fmt.Fprintf(t, "violations\t%d\n", r.Violations)
		fmt.Fprintf(t, "came right\twithin %.1f s, reminders within %.1f s\n", r.SettleMax, r.FireMax)
		if r.Options != "" {
			fmt.Fprintf(t, "options\t%s\n", r.Options)
		}
		_ = t.Flush()
		tellFailures(e, r.Failures)
		tellFailing(e, &r.Failing)
	}
	if err := cli.Line(e.Stdout, "storm_durable", r); err != nil {
		return err
	}
	return c.verdict(&r.Ran, r.Violations)
}
