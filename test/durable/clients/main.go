// Command clients measures what clients of a service over HTTP see while something happens to its processes:
// docs/http-clients.md. The processes are real ones on loopback, with a gateway each, entities in memory and durable
// ones over a real store.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/alecthomas/kong"

	"github.com/kith-io/kith/internal/cli"
	"github.com/kith-io/kith/internal/cli/env"
)

// commands is the command line. The field names are the names of the flags.
type commands struct {
	Run runCmd `cmd:"" default:"withargs" help:"Measure: this is what is done where no command is named."`

	children `embed:""`

	env.Bounds
}

// children are the processes that the run starts.
type children struct {
	Child childCmd `cmd:"" name:"child" hidden:"" help:"Be a process of the service."`
}

// The engines and the settings.
const (
	sqliteEngine = "sqlite"
	byDefault    = "default"
	withProof    = "proof"
)

// runCmd is the flags of the run.
type runCmd struct {
	Engine   string        `enum:"sqlite,postgres" default:"postgres" help:"The store: postgres, whose server is the run's own, or sqlite."`
	Nodes    int           `default:"5" help:"Processes, 3 to 9."`
	Clients  int           `default:"20" help:"Clients, 2 to 200: half ask entities in memory, half durable ones."`
	Settings []string      `default:"default,proof" help:"default, and proof: with ProcessDeathIsProof."`
	Events   []string      `help:"Only these: rolling, drain, kill-owner, kill-coordinator, stop-3s, stop-10s, cut, join, store."`
	Slow     time.Duration `default:"1s" help:"A request that takes longer is slow; an event is over when none fails or is slow for 5 s."`
	Progress bool          `help:"Show progress although stderr is not a terminal."`
}

// Validate is called by the parser.
func (c *runCmd) Validate() error {
	var errs cli.Faults
	errs.Must(c.Nodes >= 3 && c.Nodes <= 9, "--nodes must be 3 to 9")
	errs.Must(c.Slow > 0 && c.Slow <= time.Minute, "--slow must be more than 0 and at most 1m")
	errs.Must(c.Clients >= 2 && c.Clients <= 200, "--clients must be 2 to 200")
	for _, s := range c.Settings {
		errs.Must(s == byDefault || s == withProof, "--settings: %q is none of default, proof", s)
	}
	for _, e := range c.Events {
		errs.Must(slices.Contains(eventNames(), e), "--events: %q is none of %s", e, strings.Join(eventNames(), ", "))
		errs.Must(e != storeEvent || c.Engine != sqliteEngine, "--events: SQLite has no server that restarts")
	}
	return errs.Err()
}

// Result is the last line.
type Result struct {
	Engine  string `json:"engine"`
	Nodes   int    `json:"nodes"`
	Clients int    `json:"clients"`
	Rows    []row  `json:"rows"`
	Lost    int64  `json:"lost"` // additions to durable entities that were answered and are not stored, or stored twice
}

// Run measures and prints the last line.
func (c *runCmd) Run(e *env.Env) error {
	ctx, stop := cli.Interruptible()
	defer stop()
	if len(c.Events) == 0 {
		c.Events = eventNames()
		if c.Engine == sqliteEngine {
			c.Events = slices.DeleteFunc(c.Events, func(e string) bool { return e == storeEvent })
		}
	}
	r := &Result{Engine: c.Engine, Nodes: c.Nodes, Clients: c.Clients}
	progress := cli.NewProgress(e.Stderr, c.Progress)
	for _, setting := range c.Settings {
		for _, event := range c.Events {
			if event == cutEvent && setting == withProof { // with proxies in between a refusal is no proof
				continue
			}
			progress.Printf("%s: %s", setting, event)
			if err := c.measure(ctx, e, r, setting, event); err != nil {
				return errors.Join(fmt.Errorf("%s, %s: %w", setting, event, err), env.Report(e, "clients", r, nil))
			}
		}
	}
	var err error
	if r.Lost != 0 {
		err = fmt.Errorf("%d additions to durable entities are lost, or stored twice", r.Lost)
	}
	return env.Report(e, "clients", r, err)
}

// measure has an event come over a cluster of its own.
func (c *runCmd) measure(ctx context.Context, e *env.Env, r *Result, setting, event string) (err error) {
	f, err := newCluster(ctx, e, c, setting == withProof, event == cutEvent)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	asking := newClients(f, c.Clients, c.Slow)
	defer asking.stop()
	rows, err := f.measure(ctx, asking, event)
	if err != nil {
		return err
	}
	for _, x := range rows {
		x.Setting = setting
		r.Rows = append(r.Rows, x)
	}
	asking.stop()
	lost, err := asking.lost(ctx)
	r.Lost += lost
	return err
}

// Table implements what env.Report prints before the last line.
func (r *Result) Table(w io.Writer) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "setting\tevent\tentities\trequests\t2xx %\t503 %\t504 %\tother %\tno answer %\tslow %\t"+
		"longest s\tat others s")
	for _, x := range r.Rows {
		share := func(n int) float64 { return 100 * float64(n) / float64(max(x.Requests, 1)) }
		fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\n", x.Setting, x.Event,
			x.Entities, x.Requests, share(x.OK), share(x.Unavailable), share(x.Unknown), share(x.Other), share(x.NoAnswer),
			share(x.Slow), x.Longest, x.LongestOthers)
	}
	_ = t.Flush()
}

const about = "clients measures what HTTP clients of a service see while its processes are restarted, killed, stopped " +
	"and cut off.\n\nExit codes:\n\n  - 0: done\n  - 1: an error, or an answered addition is lost\n" +
	"  - 2: the command line is wrong; nothing was started"

func main() { os.Exit(execute(os.Args[1:], env.Of("clients"))) }

// execute parses args, runs the command and returns the exit code.
func execute(args []string, e *env.Env) int {
	parser := func(more ...kong.Option) (*kong.Kong, error) {
		return kong.New(&commands{}, append(more, kong.Name("clients"), kong.Description(about))...)
	}
	return env.Execute(args, e, &children{}, parser, func() []any { return nil })
}
