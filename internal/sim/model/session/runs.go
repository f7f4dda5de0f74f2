// The runs, those in which nothing may be found and those that show what each rule is for.

package session

import "github.com/kith-io/kith/internal/sim/model/explore"

// Runs returns the configurations in which the rules have to hold.
func Runs() []Config {
	return []Config{
		{Name: "session/plain"},
		{Name: "session/dies", Dies: true},
		{Name: "session/slow", Slow: drift},
		{Name: "session/stops", Stops: 2},
		{Name: "session/all", Slow: drift, Stops: 1, Dies: true},
		{Name: "session/sleeps", Sleeps: 1, Sets: 1},
		{Name: "session/sleeps and dies", Sleeps: 2, Slow: drift, Dies: true},
	}
}

// Needs returns for every rule the configuration that needs it, with that rule switched off.
func Needs() []Config {
	return rules.Needs(func(c Config, r Rule, name string) Config {
		c.Name, c.Broken = "session/without "+name, r
		return c
	})
}

// Prove makes runs, in which nothing may be found, and needs, in each of which something must be.
func Prove(runs, needs []Config, states int) explore.Result {
	return explore.Prove(runs, needs, 1, func(c Config) explore.Found { return Explore(c, states) },
		func(c Config) string { return c.Broken.String() })
}
