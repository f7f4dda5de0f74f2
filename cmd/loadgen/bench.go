// loadgen bench: everything that is measured, in interleaved rounds beside raw TCP of the same seconds.

package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/kith-io/kith/bench"
	"github.com/kith-io/kith/internal/cli"
	"github.com/kith-io/kith/internal/cli/env"
	"github.com/kith-io/kith/internal/cli/fleet"
)

// benchCmd is the flags of loadgen bench.
type benchCmd struct {
	Rounds   int    `default:"5" help:"Rounds of all measures in turn; figures are medians over them; 1 to 100."`
	Quick    bool   `help:"One round, a tenth of the time: a look, not a figure."`
	Only     string `help:"${only_help}"`
	Progress bool   `help:"Show progress although stderr is not a terminal."`
}

// Validate is called by the parser.
func (c *benchCmd) Validate() error {
	var errs cli.Faults
	errs.Must(c.Rounds >= 1 && c.Rounds <= 100, "--rounds must be 1 to 100")
	if c.Only != "" && !slices.ContainsFunc(measureNames, func(n string) bool { return strings.Contains(n, c.Only) }) {
		errs = append(errs, fmt.Errorf("--only=%s: no measure has that in its name; they are: %s", c.Only,
			strings.Join(measureNames, ", ")))
	}
	return errs.Err()
}

// measureNames are the names of all measures, which TestMeasureNames holds against those that are run.
var measureNames = []string{"bulk", "micro", "route", "link 1", "link 1 tls", "link 64", "tell inline",
	"tell inline tls", "tell worker", "tell blocking", "ask256", "ask256 by callback", "bulk_p2", "tell inline_p2",
	"tell worker_p2", "ask256_p2", "ask256 by callback_p2", "ask1_p1", "large_p1", "ask1_p2", "large_p2", "stalled",
	"hostile", "scraped"}

// Run forms the crews, measures in rounds and prints the medians.
func (c *benchCmd) Run(e *env.Env) error {
	ctx, stop := cli.Interruptible()
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends this process, and with it its children
	r := &rounds{progress: cli.NewProgress(e.Stderr, c.Progress), unit: time.Second, only: c.Only}
	n := c.Rounds
	if c.Quick {
		n, r.unit = 1, 100*time.Millisecond
	}
	defer r.kill()
	if err := r.form(ctx, e); err != nil {
		return err
	}
	begin := time.Now()
	for i := range n {
		f, err := r.round(ctx, fmt.Sprintf("round %d of %d", i+1, n))
		if err != nil && ctx.Err() != nil && i > 0 {
			r.progress.Printf("interrupted after %d rounds", i)
			n = i // the figures of whole rounds stand
			break
		}
		if err != nil {
			return err
		}
		r.done = append(r.done, f)
	}
	if err := r.leave(context.Background()); err != nil {
		return err
	}
	r.progress.Printf("all nodes left")
	if err := r.after(ctx, e); err != nil {
		return err
	}
	r.table(e)
	out := bench.Medians(r.done)
	out["rounds"], out["wall_seconds"] = float64(n), time.Since(begin).Seconds()
	return cli.Line(e.Stdout, "bench", out)
}

// after runs, one by one, the measures that have processes of their own.
func (r *rounds) after(ctx context.Context, e *env.Env) error {
	for _, m := range []struct {
		name string
		run  func(context.Context, *env.Env, bench.Figures) error
	}{{"stalled", r.stalled}, {"hostile", r.hostile}, {"scraped", r.scraped}} {
		if !r.wanted(m.name) || ctx.Err() != nil {
			continue
		}
		f := bench.Figures{}
		if err := m.run(ctx, e, f); err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
		r.done = append(r.done, f)
	}
	return nil
}

// rounds is a running bench.
type rounds struct {
	progress *cli.Progress
	unit     time.Duration // of one measure
	only     string
	done     []bench.Figures

	free   *crew // not pinned
	secret *crew // not pinned, over TLS
	certs  fleet.Certs
	pinned map[string]*crew // by the suffix of their figures: _p1 both on one core, _p2 one core each
	polls  map[string]*crew // the same with event loops that poll
}

// benchPoll is how long the event loops of the polling crews look for more before they sleep.
const benchPoll = 50 * time.Microsecond

// form starts the crews: one that runs where the kernel puts it, and one for each placement.
func (r *rounds) form(ctx context.Context, e *env.Env) error {
	var err error
	if r.free, err = startCrew(ctx, e, crewArgs{receivers: 1, shards: benchShards}); err != nil {
		return err
	}
	if r.wanted("tls") {
		if r.certs, err = newCerts(); err != nil {
			return err
		}
		args := crewArgs{name: "tls-", receivers: 1, shards: benchShards, tls: r.certs.Of(certName)}
		if r.secret, err = startCrew(ctx, e, args); err != nil {
			return err
		}
	}
	r.pinned, r.polls = map[string]*crew{}, map[string]*crew{}
	for place, cpus := range cli.Placements() {
		suffix := "_" + place
		asks := r.wanted("ask1"+suffix) || r.wanted("large"+suffix)
		if !asks && (suffix != apart || !slices.ContainsFunc(namesApart, r.wanted)) {
			continue
		}
		args := crewArgs{name: place + "-", receivers: 1, shards: benchShards, cpus: cpus}
		if r.pinned[suffix], err = startCrew(ctx, e, args); err != nil {
			return err
		}
		if !asks {
			continue
		}
		args.name, args.poll = "poll-"+args.name, benchPoll
		if r.polls[suffix], err = startCrew(ctx, e, args); err != nil {
			return err
		}
	}
	for _, c := range r.crews() {
		if err := c.know(ctx); err != nil {
			return err
		}
	}
	r.progress.Printf("%d pairs of processes up", len(r.crews()))
	return nil
}

// wanted reports whether a measure is to be run; bulk always is, as the baseline of others.
func (r *rounds) wanted(name string) bool {
	return r.only == "" || name == "bulk" || strings.Contains(name, r.only)
}

// suffixes are the placements in the order in which they are measured.
var suffixes = []string{"_p1", "_p2"}

func (r *rounds) crews() []*crew {
	var all []*crew
	for _, c := range []*crew{r.free, r.secret} {
		if c != nil {
			all = append(all, c)
		}
	}
	for _, s := range suffixes {
		for _, c := range []*crew{r.pinned[s], r.polls[s]} {
			if c != nil {
				all = append(all, c)
			}
		}
	}
	return all
}

func (r *rounds) kill() {
	for _, c := range r.crews() {
		c.kill()
	}
	r.certs.Remove()
}

func (r *rounds) leave(ctx context.Context) error {
	return fleet.Each(r.crews(), func(_ int, c *crew) error { return c.leave(ctx) })
}

// table shows the medians and their spread on stderr.
func (r *rounds) table(e *env.Env) {
	if !r.progress.On() {
		return
	}
	t := tabwriter.NewWriter(e.Stderr, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "figure\tmedian\tleast\tgreatest\t\n")
	spreads := bench.Spreads(r.done)
	for _, name := range bench.Medians(r.done).Names() {
		s := spreads[name]
		fmt.Fprintf(t, "%s\t%.4g\t%.4g\t%.4g\t\n", name, s.Median, s.Min, s.Max)
	}
	_ = t.Flush()
}
