// The runs, those in which nothing may be found and those that show what each rule is for.

package once

import "github.com/kith-io/kith/internal/sim/model/explore"

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
	return rules.Needs(func(c Config, r Rule, name string) Config {
		c.Name, c.Broken = "once/without "+name, r
		return c
	})
}

// Prove makes runs, in which nothing may be found, and needs, in each of which something must be, some at a time.
func Prove(runs, needs []Config, states, workers int) explore.Result {
	return explore.Prove(runs, needs, workers, func(c Config) explore.Found { return Explore(c, states) },
		func(c Config) string { return c.Broken.String() })
}
