// The runs, those in which nothing may be found and those that show what each rule is for.

package quorum

import "github.com/kith-io/kith/internal/sim/model/explore"

// Runs returns the configurations in which the protocol has to hold: all of them, or those that take seconds.
func Runs(all bool) []Config {
	runs := []Config{
		{Name: "quorum/live", Shards: one(2, "", ""), Losses: 1, Live: true},
		{Name: "quorum/read", Shards: one(2, "", ""), Reads: true, Crashes: 1},
		{Name: "quorum/shrinks", Shards: one(2, "", "1/"), Live: true},
	}
	if !all {
		return runs
	}
	return append(runs,
		Config{Name: "quorum/live-two", Shards: one(2, "2/2", ""), Losses: 1, Live: true, Reads: true},
		Config{Name: "quorum/three-owners", Shards: one(3, "", ""), Losses: 1, Live: true},
		Config{Name: "quorum/four-owners", Shards: one(4, "", "")},
		Config{Name: "quorum/five", Set: "12345", Shards: one(2, "", ""), Losses: 2, Live: true},
		Config{Name: "quorum/five-three", Set: "12345", Shards: one(3, "1/0/0", "")},
		Config{Name: "quorum/copies", Shards: one(3, "", ""), Copies: true},
		Config{Name: "quorum/copies-change", Shards: one(2, "", "124/"), Copies: true},
		Config{Name: "quorum/grows", Shards: one(2, "", "1234/"), Live: true, Losses: 1},
		Config{Name: "quorum/changes", Shards: one(2, "", "124/"), Live: true, Losses: 1},
		Config{Name: "quorum/releases", Shards: one(2, "", "124/"), Live: true, Losses: 1, Release: true},
		Config{Name: "quorum/twice", Near: true, Shards: one(2, "", "124,145/"), Live: true, Losses: 1},
		Config{Name: "quorum/compete", Near: true, Shards: one(2, "", "124/135"), Live: true},
		Config{Name: "quorum/thrice", Near: true, Shards: one(2, "1/1", "124,145,456/")},
		Config{Name: "quorum/five-change", Near: true, Set: "12345", Shards: one(2, "", "12346/")},
		Config{Name: "quorum/three-compete", Near: true, Shards: one(3, "0/0/1", "124/145/")},
		Config{Name: "quorum/cares", Near: true, Shards: one(3, "1/0/1", "/124/"), Losses: 1, Live: true},
		Config{Name: "quorum/cares-unused", Near: true, Shards: one(2, "0/1", "124/"), Losses: 1, Live: true},
		Config{Name: "quorum/leaves", Shards: one(2, "", "124/"), Losses: 1, Live: true, Leaves: true},
		Config{Name: "quorum/leaves-twice", Near: true, Shards: one(2, "1/1", "124,145/"), Live: true, Leaves: true},
		Config{Name: "quorum/leaves-shards", Near: true, Losses: 1, Live: true, Leaves: true,
			Shards: []Shard{{Owners: 1, Batches: "1", Wishes: "124"}, {Owners: 1, Batches: "1", Wishes: "124"}}},
		Config{Name: "quorum/two-shards", Near: true, Losses: 1, Live: true, Release: true,
			Shards: []Shard{{Owners: 1, Batches: "1", Wishes: "124"}, {Owners: 1, Batches: "1", Wishes: "124"}}},
	)
}

// Needs returns for every rule the configuration that needs it, with that rule switched off.
func Needs() []Config {
	return rules.Needs(func(c Config, r Rule, name string) Config {
		c.Name, c.Broken = "quorum/without "+name, r
		return c
	})
}

// Prove makes runs, in which nothing may be found, and needs, in each of which something must be, some at a time.
func Prove(runs, needs []Config, states, workers int) explore.Result {
	return explore.Prove(runs, needs, workers, func(c Config) explore.Found { return Explore(c, states) },
		func(c Config) string { return c.Broken.String() })
}
