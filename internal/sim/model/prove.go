// All runs, one after the other or side by side, and what they came to.

package model

import (
	"sync"
	"time"
)

// Options say what to run.
type Options struct {
	Runs    []Config // in which nothing may be found
	Needs   []Config // each of which must find something
	States  int      // of one run, at most
	Workers int      // runs at a time
	// Progress gets a run that goes on, and each that has ended, in one goroutine at a time; nil: not called.
	Progress func(p Progress)
}

// Progress is how far the runs are.
type Progress struct {
	Done, Of int
	Name     string
	States   int  // of that run
	Over     bool // that run has ended
	Found    Found
}

// Result is what all runs came to. Its JSON is the last line of `make model`.
type Result struct {
	Runs             int      `json:"runs"`
	Complete         int      `json:"complete"` // runs that looked at every state
	States           int      `json:"states"`
	Transitions      int      `json:"transitions"`
	Depth            int      `json:"depth"` // of the deepest
	Violations       int      `json:"violations"`
	BrokenRules      int      `json:"broken_rules"`
	BrokenRulesFound int      `json:"broken_rules_found"`
	WallSeconds      float64  `json:"wall_seconds"`
	Missed           []string `json:"missed,omitempty"` // rules without which nothing was found
	Failed           []Found  `json:"failed,omitempty"`
	Found            []Found  `json:"-"` // by every run, in the order of Options
}

// Prove makes all runs.
func Prove(o Options) Result {
	begin := time.Now()
	all := append(append([]Config(nil), o.Runs...), o.Needs...)
	found := make([]Found, len(all))
	work, events := make(chan int, len(all)), make(chan Progress)
	for i := range all {
		work <- i
	}
	close(work)
	var workers sync.WaitGroup
	for range max(o.Workers, 1) {
		workers.Go(func() {
			for i := range work {
				name := all[i].Name
				found[i] = Explore(all[i], o.States, func(states, _ int) { events <- Progress{Name: name, States: states} })
				events <- Progress{Name: name, States: found[i].States, Over: true, Found: found[i]}
			}
		})
	}
	go func() {
		workers.Wait()
		close(events)
	}()
	done := 0
	for p := range events {
		if p.Over {
			done++
		}
		if p.Done, p.Of = done, len(all); o.Progress != nil {
			o.Progress(p)
		}
	}
	r := sum(o, found)
	r.WallSeconds = time.Since(begin).Seconds()
	return r
}

// sum adds up what was found.
func sum(o Options, found []Found) Result {
	r := Result{Runs: len(o.Runs), BrokenRules: len(o.Needs), Found: found}
	for i, f := range found {
		switch {
		case i >= len(o.Runs) && f.Violation != "":
			r.BrokenRulesFound++
		case i >= len(o.Runs):
			r.Missed = append(r.Missed, o.Needs[i-len(o.Runs)].Broken.String())
		case f.Violation != "":
			r.Violations++
			r.Failed = append(r.Failed, f)
		}
		if i < len(o.Runs) {
			r.States += f.States
			r.Transitions += f.Transitions
			r.Depth = max(r.Depth, f.Depth)
			if f.Complete {
				r.Complete++
			}
		}
	}
	return r
}
