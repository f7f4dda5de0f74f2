// What a run of a model found, and what all runs came to.

// Package explore is what the models beside that of hand-off share: the names of rules that can be switched off, the
// runs of a proof, and which states have a way out. Each model makes its own steps and judges its own states.
package explore

import (
	"sync"
	"time"
)

// Found is what a run found.
type Found struct {
	Name      string   `json:"name"`
	States    int      `json:"states"`
	Depth     int      `json:"depth"`
	Complete  bool     `json:"complete"` // all states were looked at
	Violation string   `json:"violation,omitempty"`
	Steps     []string `json:"steps,omitempty"` // that lead to it
	Seconds   float64  `json:"seconds"`
}

// Result is what all runs came to.
type Result struct {
	Runs             int      `json:"runs"`
	Complete         int      `json:"complete"`
	States           int      `json:"states"`
	Depth            int      `json:"depth"`
	Violations       int      `json:"violations"`
	BrokenRules      int      `json:"broken_rules"`
	BrokenRulesFound int      `json:"broken_rules_found"`
	WallSeconds      float64  `json:"wall_seconds"`
	Missed           []string `json:"missed,omitempty"` // rules without which nothing was found
	Failed           []Found  `json:"failed,omitempty"`
	Found            []Found  `json:"-"` // by every run, in order
}

// Prove makes runs, in which nothing may be found, and needs, in each of which something must be, workers at a time.
// broken returns the name of the rule that is switched off in a run.
func Prove[C any](runs, needs []C, workers int, run func(C) Found, broken func(C) string) Result {
	begin := time.Now()
	all := append(append([]C(nil), runs...), needs...)
	r := Result{Runs: len(runs), BrokenRules: len(needs), Found: make([]Found, len(all))}
	work := make(chan int, len(all))
	for i := range all {
		work <- i
	}
	close(work)
	var group sync.WaitGroup
	for range max(workers, 1) {
		group.Go(func() {
			for i := range work {
				r.Found[i] = run(all[i])
			}
		})
	}
	group.Wait()
	for i, f := range r.Found {
		switch {
		case i < len(runs):
			r.held(f)
		case f.Violation != "":
			r.BrokenRulesFound++
		default:
			r.Missed = append(r.Missed, broken(all[i]))
		}
	}
	r.WallSeconds = time.Since(begin).Seconds()
	return r
}

// held counts a run in which nothing may be found.
func (r *Result) held(f Found) {
	r.States, r.Depth = r.States+f.States, max(r.Depth, f.Depth)
	if f.Complete {
		r.Complete++
	}
	if f.Violation != "" {
		r.Violations++
		r.Failed = append(r.Failed, f)
	}
}
