// The runs, those in which nothing may be found and those that show what each rule is for.

package session

import "time"

// Runs returns the configurations in which the rules have to hold.
func Runs() []Config {
	return []Config{
		{Name: "session/plain"},
		{Name: "session/dies", Dies: true},
		{Name: "session/slow", Slow: drift},
		{Name: "session/stops", Stops: 2},
		{Name: "session/all", Slow: drift, Stops: 1, Dies: true},
	}
}

// Needs returns for every rule the configuration that needs it, with that rule switched off.
func Needs() []Config {
	all := make([]Config, len(rules))
	for i, r := range rules {
		all[i] = r.in
		all[i].Name, all[i].Broken = "session/without "+r.name, r.rule
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

// Prove makes runs, in which nothing may be found, and needs, in each of which something must be.
func Prove(runs, needs []Config, states int) Result {
	begin := time.Now()
	r := Result{Runs: len(runs), BrokenRules: len(needs)}
	for _, c := range runs {
		f := Explore(c, states)
		r.Found, r.States, r.Depth = append(r.Found, f), r.States+f.States, max(r.Depth, f.Depth)
		if f.Complete {
			r.Complete++
		}
		if f.Violation != "" {
			r.Violations++
			r.Failed = append(r.Failed, f)
		}
	}
	for _, c := range needs {
		f := Explore(c, states)
		if r.Found = append(r.Found, f); f.Violation != "" {
			r.BrokenRulesFound++
		} else {
			r.Missed = append(r.Missed, c.Broken.String())
		}
	}
	r.WallSeconds = time.Since(begin).Seconds()
	return r
}
