// The models beside that of hand-off: which of their runs are wanted, and what they found.

package main

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

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

// wish is which runs are to be made, and how.
type wish struct {
	only, broken    string // how their names begin; the rule that is switched off
	small, json     bool
	states, workers int

	ended func(explore.Found) // shows progress, of those that take long
}

// allRules returns the names of the rules of all models.
func allRules() []string {
	return slices.Concat(model.Rules(), once.Rules(), quorum.Rules(), session.Rules(), tenure.Rules(), instances.Rules())
}

// ofOthers reports whether the rule that is switched off is one of these models.
func (c wish) ofOthers() bool {
	return slices.Contains(allRules()[len(model.Rules()):], c.broken)
}

// others returns how many runs of these models have names that begin as wanted.
func (c wish) others() int {
	return len(c.onceModel().wanted(c)) + len(c.quorumModel().wanted(c)) + len(c.sessionModel().wanted(c)) +
		len(c.tenureModel().wanted(c)) + len(c.instancesModel().wanted(c))
}

// other is a model beside that of hand-off.
type other[C any] struct {
	runs, needs []C
	name        func(C) string
	ours        bool         // the rule that is switched off is one of this model
	breaks      func(C) bool // so it is in that run
	without     func(*C)     // switches it off
}

func (c wish) onceModel() other[once.Config] {
	rule, ours := once.RuleOf(c.broken)
	return other[once.Config]{once.Runs(!c.small), once.Needs(), func(r once.Config) string { return r.Name }, ours,
		func(r once.Config) bool { return r.Broken == rule }, func(r *once.Config) { r.Broken = rule }}
}

func (c wish) quorumModel() other[quorum.Config] {
	rule, ours := quorum.RuleOf(c.broken)
	return other[quorum.Config]{quorum.Runs(!c.small), quorum.Needs(),
		func(r quorum.Config) string { return r.Name }, ours,
		func(r quorum.Config) bool { return r.Broken == rule }, func(r *quorum.Config) { r.Broken = rule }}
}

func (c wish) sessionModel() other[session.Config] {
	rule, ours := session.RuleOf(c.broken)
	return other[session.Config]{session.Runs(), session.Needs(), func(r session.Config) string { return r.Name }, ours,
		func(r session.Config) bool { return r.Broken == rule }, func(r *session.Config) { r.Broken = rule }}
}

func (c wish) tenureModel() other[tenure.Config] {
	rule, ours := tenure.RuleOf(c.broken)
	runs := tenure.Runs(!c.small)
	if strings.HasSuffix(c.only, "-large") { // they are made when they are asked for
		runs = tenure.Large()
	}
	return other[tenure.Config]{runs, tenure.Needs(),
		func(r tenure.Config) string { return r.Name }, ours,
		func(r tenure.Config) bool { return r.Broken == rule }, func(r *tenure.Config) { r.Broken = rule }}
}

func (c wish) instancesModel() other[instances.Config] {
	rule, ours := instances.RuleOf(c.broken)
	return other[instances.Config]{instances.Runs(!c.small), instances.Needs(),
		func(r instances.Config) string { return r.Name }, ours,
		func(r instances.Config) bool { return r.Broken == rule }, func(r *instances.Config) { r.Broken = rule }}
}

// wanted returns the runs with names that begin as wanted.
func (o other[C]) wanted(c wish) []C {
	return slices.DeleteFunc(o.runs, func(r C) bool { return !strings.HasPrefix(o.name(r), c.only) })
}

// choose returns the runs to make, and those that have to find something.
func (o other[C]) choose(c wish) (runs, needs []C) {
	switch runs = o.wanted(c); {
	case o.ours && c.only == "":
		return slices.DeleteFunc(o.needs, func(r C) bool { return !o.breaks(r) }), nil
	case o.ours:
		for i := range runs {
			o.without(&runs[i])
		}
		return runs, nil
	case c.broken != "":
		return nil, nil
	case c.only != "":
		return runs, nil
	}
	return runs, o.needs
}

// prove makes the runs of a model that are wanted, and prints its line above that of hand-off.
func prove[C any](c wish, e *env.Env, name string, o other[C], all func(runs, needs []C) explore.Result) (violations,
	missed int) {
	runs, needs := o.choose(c)
	if len(runs) == 0 {
		return 0, 0
	}
	r := all(runs, needs)
	if !c.json {
		c.tell(e, r)
		for i := range r.Failed {
			r.Failed[i].Steps = nil // they stand above
		}
		_ = cli.Line(e.Stdout, name, r)
	}
	return r.Violations, len(r.Missed)
}

// once makes the runs of the model of messages between durable entities.
func (c wish) once(e *env.Env) (violations, missed int) {
	return prove(c, e, "once", c.onceModel(), func(runs, needs []once.Config) explore.Result {
		return once.Prove(runs, needs, c.states, c.workers)
	})
}

// quorum makes the runs of the model of fenced records on the disks of N members.
func (c wish) quorum(e *env.Env) (violations, missed int) {
	return prove(c, e, "quorum", c.quorumModel(), func(runs, needs []quorum.Config) explore.Result {
		return quorum.Prove(runs, needs, c.states, c.workers)
	})
}

// session makes the runs of the model of session leases.
func (c wish) session(e *env.Env) (violations, missed int) {
	return prove(c, e, "session", c.sessionModel(), func(runs, needs []session.Config) explore.Result {
		return session.Prove(runs, needs, c.states)
	})
}

// tenure makes the runs of the model of tenure.
func (c wish) tenure(e *env.Env) (violations, missed int) {
	return prove(c, e, "tenure", c.tenureModel(), func(runs, needs []tenure.Config) explore.Result {
		return tenure.Prove(runs, needs, c.states, c.workers, c.ended)
	})
}

// instances makes the runs of the model of a partition's hand-offs.
func (c wish) instances(e *env.Env) (violations, missed int) {
	return prove(c, e, "instances", c.instancesModel(), func(runs, needs []instances.Config) explore.Result {
		return instances.Prove(runs, needs, c.states, c.workers)
	})
}

// tell prints a line for each run, the steps that lead to each violation, and the rules that nothing needs.
func (c wish) tell(e *env.Env, r explore.Result) {
	t := tabwriter.NewWriter(e.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "run\tstates\tdepth\tfound\n")
	for _, f := range r.Found {
		fmt.Fprintf(t, "%s\t%d\t%d\t%s\n", f.Name, f.States, f.Depth, found(f.Violation, f.Complete))
	}
	_ = t.Flush()
	for _, f := range r.Failed {
		steps(e, f.Name, f.Violation, f.Steps)
	}
	for _, rule := range r.Missed {
		fmt.Fprintf(e.Stdout, "without %s nothing was found\n", rule)
	}
}

// found says what a run found.
func found(violation string, complete bool) string {
	if violation == "" && !complete {
		return "nothing; not all states looked at"
	}
	return violation
}

// steps prints what leads to a violation.
func steps(e *env.Env, name, violation string, steps []string) {
	fmt.Fprintf(e.Stdout, "%s\n", name)
	for n, s := range steps {
		fmt.Fprintf(e.Stdout, "%3d  %s\n", n+1, s)
	}
	fmt.Fprintf(e.Stdout, "     %s\n", violation)
}
