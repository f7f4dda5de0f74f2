// The runs, those in which nothing may be found and those that show what each rule is for.

package once

import (
	"sync"
	"time"
)

// Runs returns the configurations in which the protocol has to hold: all of them, or those that take seconds.
func Runs(all bool) []Config {
	runs := []Config{
		{Name: "once/one", Parcels: [2]uint8{3}},
		{Name: "once/moves", Parcels: [2]uint8{2}, Moves: 2},
		{Name: "once/stops", Parcels: [2]uint8{2}, Stops: 2, Moves: 1},
		{Name: "once/rejects", Parcels: [2]uint8{2}, Rejects: 2, Moves: 1, Stops: 1},
		{Name: "once/time", Parcels: [2]uint8{2}, Time: true},
		{Name: "once/deletes", Parcels: [2]uint8{2}, Deletes: 1, Cleans: 1, Moves: 1},
		{Name: "once/two", Parcels: [2]uint8{1, 1}, Moves: 1, Stops: 1},
	}
	if !all {
		return runs
	}
	return append(runs,
		Config{Name: "once/one-all", Parcels: [2]uint8{1}, Moves: 1, Stops: 1, Rejects: 1, Deletes: 1, Cleans: 1, Time: true},
		Config{Name: "once/two-more", Parcels: [2]uint8{2, 1}, Moves: 1, Stops: 1},
		Config{Name: "once/three", Parcels: [2]uint8{3}, Moves: 1, Stops: 1},
		Config{Name: "once/moves-time", Parcels: [2]uint8{2}, Moves: 1, Stops: 1, Time: true},
		Config{Name: "once/rejects-time", Parcels: [2]uint8{2}, Rejects: 1, Stops: 1, Time: true},
		Config{Name: "once/deletes-time", Parcels: [2]uint8{2}, Deletes: 1, Cleans: 1, Time: true},
		Config{Name: "once/two-all", Parcels: [2]uint8{1, 1}, Moves: 1, Stops: 1, Rejects: 1, Time: true})
}

// Needs returns for every rule the configuration that needs it, with that rule switched off.
func Needs() []Config {
	all := make([]Config, len(rules))
	for i, r := range rules {
		all[i] = r.in
		all[i].Name, all[i].Broken = "once/without "+r.name, r.rule
	}
	return all
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

// Prove makes runs, in which nothing may be found, and needs, in each of which something must be, some at a time.
func Prove(runs, needs []Config, states, workers int) Result {
	begin := time.Now()
	all := append(append([]Config(nil), runs...), needs...)
	found := make([]Found, len(all))
	work := make(chan int, len(all))
	for i := range all {
		work <- i
	}
	close(work)
	var group sync.WaitGroup
	for range max(workers, 1) {
		group.Go(func() {
			for i := range work {
				found[i] = Explore(all[i], states)
			}
		})
	}
	group.Wait()
	r := Result{Runs: len(runs), BrokenRules: len(needs), Found: found}
	for i, f := range found {
		switch {
		case i >= len(runs) && f.Violation != "":
			r.BrokenRulesFound++
		case i >= len(runs):
			r.Missed = append(r.Missed, needs[i-len(runs)].Broken.String())
		case f.Violation != "":
			r.Violations++
			r.Failed = append(r.Failed, f)
		}
		if i < len(runs) {
			r.States += f.States
			r.Depth = max(r.Depth, f.Depth)
			if f.Complete {
				r.Complete++
			}
		}
	}
	r.WallSeconds = time.Since(begin).Seconds()
	return r
}
