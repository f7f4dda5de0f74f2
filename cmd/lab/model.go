// lab model: every order of events in a small cluster with shards that move, between durable entities that send to one
// another, on the disks of a quorum, with session leases, with tenure and with instances of a partition, and what each
// rule of these is there for.

package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/kith-io/kith/internal/cli"
	"github.com/kith-io/kith/internal/cli/env"
	"github.com/kith-io/kith/internal/sim/model"
	"github.com/kith-io/kith/internal/sim/model/explore"
	"github.com/kith-io/kith/internal/sim/model/instances"
	"github.com/kith-io/kith/internal/sim/model/once"
	"github.com/kith-io/kith/internal/sim/model/quorum"
	"github.com/kith-io/kith/internal/sim/model/session"
	"github.com/kith-io/kith/internal/sim/model/tenure"
)

// modelCmd is the flags of lab model.
type modelCmd struct {
	Only    string `name:"run" placeholder:"NAME" help:"Only runs whose names begin so; see --list."`
	Break   string `placeholder:"RULE" help:"${break_help}"`
	Small   bool   `help:"The runs of make test, which take seconds."`
	List    bool   `help:"Print the names of all runs and rules, and do nothing."`
	States  int    `default:"4000000" help:"${states_help}"`
	Workers int    `default:"2" help:"Runs at a time, 1 to 64."`
	JSON    bool   `name:"json" help:"Print nothing but the last line."`

	Progress bool `help:"Show progress although stderr is not a terminal."`
}

// Validate is called by the parser.
func (c *modelCmd) Validate() error {
	var errs cli.Faults
	errs.Must(c.Workers >= 1 && c.Workers <= 64, "--workers must be 1 to 64")
	errs.Must(c.States >= 1 && c.States <= 100_000_000, "--states must be 1 to 100000000")
	_, ok := model.RuleOf(c.Break)
	errs.Must(ok || c.wish().ofOthers() || c.Break == "", "--break: %q is none of %s", c.Break,
		strings.Join(allRules(), ", "))
	errs.Must(c.Only == "" || c.Break != "" || len(c.runs())+c.wish().others() > 0,
		"--run: no name begins with %q; see --list", c.Only)
	return errs.Err()
}

var errModel = errors.New("the model does not hold")

// modelEvery is how often progress of a run is shown.
const modelEvery = 2 * time.Second

// runs returns the runs with names that begin as wanted.
func (c *modelCmd) runs() []model.Config {
	return slices.DeleteFunc(model.Runs(!c.Small), func(r model.Config) bool { return !strings.HasPrefix(r.Name, c.Only) })
}

// wish is what the models beside that of hand-off are asked for.
func (c *modelCmd) wish() wish {
	return wish{only: c.Only, broken: c.Break, small: c.Small, json: c.JSON, states: c.States, workers: c.Workers}
}

// Run makes the runs; a violation, or a broken rule that nobody notices, makes it fail.
func (c *modelCmd) Run(e *env.Env) error {
	if c.List {
		c.list(e)
		return nil
	}
	w, progress := c.wish(), cli.NewProgress(e.Stderr, c.Progress)
	w.ended = func(f explore.Found) { progress.Printf("%s: %d states, %.1f s", f.Name, f.States, f.Seconds) }
	violations, missed := w.once(e)
	for _, others := range []func(*env.Env) (violations, missed int){w.quorum, w.session, w.tenure, w.instances} {
		more, unneeded := others(e)
		violations, missed = violations+more, missed+unneeded
	}
	o := model.Options{Runs: c.runs(), Needs: model.Needs(), States: c.States, Workers: c.Workers}
	switch {
	case c.wish().ofOthers():
		o.Runs, o.Needs = nil, nil
	case c.Break != "":
		o.Runs, o.Needs = c.broken(), nil
	case c.Only != "":
		o.Needs = nil
	}
	o.Progress = c.shows(e)
	r := model.Prove(o)
	if !c.JSON {
		c.report(e, o, r)
	}
	for i := range r.Failed {
		if !c.JSON {
			r.Failed[i].Steps = nil // they stand above
		}
	}
	if err := cli.Line(e.Stdout, "model", r); err != nil {
		return err
	}
	violations, missed = violations+r.Violations, missed+len(r.Missed)
	if violations+missed > 0 {
		return fmt.Errorf("%w: %d violations, %d rules that nothing needs", errModel, violations, missed)
	}
	return nil
}

// broken returns the run that shows what a rule is for, or those that are wanted, with the rule switched off.
func (c *modelCmd) broken() []model.Config {
	rule, _ := model.RuleOf(c.Break)
	if c.Only == "" {
		return slices.DeleteFunc(model.Needs(), func(r model.Config) bool { return r.Broken != rule })
	}
	runs := c.runs()
	for i := range runs {
		runs[i].Broken = rule
	}
	return runs
}

// shows returns what shows progress: each run that ends, and the states of one that goes on.
func (c *modelCmd) shows(e *env.Env) func(model.Progress) {
	progress := cli.NewProgress(e.Stderr, c.Progress)
	shown := time.Now()
	return func(p model.Progress) {
		switch {
		case p.Over:
			progress.Printf("%d of %d runs  %s: %d states, %.1f s", p.Done, p.Of, p.Name, p.States, p.Found.Seconds)
		case time.Since(shown) >= modelEvery:
			progress.Printf("%d of %d runs  %s: %d states so far", p.Done, p.Of, p.Name, p.States)
		default:
			return
		}
		shown = time.Now()
	}
}

// list prints the names of runs and rules.
func (c *modelCmd) list(e *env.Env) {
	for _, r := range model.Runs(true) {
		fmt.Fprintln(e.Stdout, "run ", r.Name)
	}
	for _, r := range once.Runs(true) {
		fmt.Fprintln(e.Stdout, "run ", r.Name)
	}
	for _, r := range quorum.Runs(true) {
		fmt.Fprintln(e.Stdout, "run ", r.Name)
	}
	for _, r := range session.Runs() {
		fmt.Fprintln(e.Stdout, "run ", r.Name)
	}
	for _, r := range slices.Concat(tenure.Runs(true), tenure.Large()) {
		fmt.Fprintln(e.Stdout, "run ", r.Name)
	}
	for _, r := range instances.Runs(true) {
		fmt.Fprintln(e.Stdout, "run ", r.Name)
	}
	for _, r := range allRules() {
		fmt.Fprintln(e.Stdout, "rule", r)
	}
}

// report prints a line for each run, and the steps that lead to each violation.
func (c *modelCmd) report(e *env.Env, o model.Options, r model.Result) {
	t := tabwriter.NewWriter(e.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "run\tstates\tsteps\tdepth\tfound\n")
	for _, f := range r.Found {
		fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%s\n", f.Name, f.States, f.Transitions, f.Depth, found(f.Violation, f.Complete))
	}
	_ = t.Flush()
	for _, f := range r.Failed {
		steps(e, f.Name, f.Violation, f.Steps)
	}
	for _, rule := range r.Missed {
		fmt.Fprintf(e.Stdout, "without %s nothing was found in %d runs\n", rule, len(o.Needs))
	}
}
