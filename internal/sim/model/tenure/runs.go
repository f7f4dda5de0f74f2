// The runs, those in which nothing may be found and those that show what each rule is for.

package tenure

import (
	"slices"

	"github.com/kith-io/kith/internal/sim/model/explore"
)

// Situations that runs are made of: three seats, held by n0, n1 and n2, unless they say otherwise.
var (
	// plain: the leader takes the owner, which has no seat and lives, for Down.
	plain = Config{Nodes: 4, Seats: "012", Owner: 3, Hosts: "1",
		Faults: Faults{Losable: "3", Victims: "3", Deciders: "0", Mistakes: 1}}
	// change: the leader takes two that live for Down, and gives a seat to another; the one before lives on.
	change = Config{Nodes: 4, Seats: "012", Owner: 1, Hosts: "3", Spares: "3", Writes: 2, Ends: true,
		Faults: Faults{Losable: "12", Victims: "12", Deciders: "0", Mistakes: 2}}
	// apart: the same where the owner and the holder before hear nothing of it, and a fifth gets the seat.
	apart = Config{Nodes: 5, Seats: "012", Owner: 3, Hosts: "0", Spares: "4", Writes: 2, Deaf: "23",
		Faults: Faults{Losable: "23", Victims: "23", Deciders: "0", Mistakes: 2}}
	// cutOff: one that hears nothing takes the owner for Down, and the leader takes that one and the owner for Down.
	cutOff = Config{Nodes: 4, Seats: "012", Owner: 1, Hosts: "3", Spares: "3", Writes: 2, Deaf: "2",
		Faults: Faults{Losable: "12", Victims: "12", Deciders: "02", Mistakes: 3}}
	// sides: two remove each other.
	sides = Config{Nodes: 4, Seats: "012", Owner: 2, Hosts: "3", Spares: "3", Writes: 2, Ends: true,
		Faults: Faults{Losable: "02", Victims: "02", Deciders: "02", Mistakes: 2}}
	// refound: two holders take the owner for Down and die, and the leader founds the electorate anew.
	refound = Config{Nodes: 4, Seats: "012", Owner: 3, Hosts: "0", Spares: "3", Refounds: 1, Ends: true,
		Faults: Faults{Losable: "123", Victims: "3", Deciders: "12", Witnesses: "0", Mortal: "12", Crashes: 2, Mistakes: 2}}
	// succession: the owner, which lives, is taken for Down, and another begins to coordinate beside the first.
	succession = Config{Nodes: 3, Seats: "012", Owner: 1, Hosts: "02", Seekers: "2", Reigns: 1,
		Faults: Faults{Losable: "1", Victims: "1", Deciders: "0", Mistakes: 1}}
	// joining: the owner dies, another begins to coordinate beside the first, and a fourth joins.
	joining = Config{Nodes: 4, Seats: "012", Owner: 1, Hosts: "23", Joiners: "3", Seekers: "2", Reigns: 1,
		Faults: Faults{Losable: "1", Witnesses: "02", Mortal: "1", Crashes: 1}}
	// newcomer: nobody owns the shard yet, a fourth joins, may be given it, and is taken for Down by a holder.
	newcomer = Config{Nodes: 4, Seats: "012", Owner: -1, Hosts: "13", Joiners: "3",
		Faults: Faults{Losable: "3", Victims: "3", Deciders: "2", Mistakes: 1}}
)

// with returns a situation that is a little different.
func (c Config) with(change func(*Config)) Config {
	change(&c)
	return c
}

// What differs, for with.
func clocks(of string) func(*Config) { return func(c *Config) { c.Drifters = of } }
func lasting(g uint8) func(*Config)  { return func(c *Config) { c.Grant = g } }
func from(first int) func(*Config)   { return func(c *Config) { c.First = first } }
func forgetting() func(*Config)      { return func(c *Config) { c.Prunes = 1 } }
func called(n string) func(*Config)  { return func(c *Config) { c.Name = "tenure/" + n } }
func and(all ...func(*Config)) func(*Config) {
	return func(c *Config) {
		for _, f := range all {
			f(c)
		}
	}
}

// seated has the owner hold a seat.
func seated(c *Config) { c.Owner, c.Hosts, c.Losable, c.Victims = 1, "3", "1", "1" }

// succeeded has n2 begin to coordinate.
func succeeded(c *Config) { c.Seekers, c.Reigns = "2", 1 }

// outside has a fifth node coordinate, which hears of everything, while the holders hear nothing.
func outside(c *Config) { c.Nodes, c.First, c.Deaf, c.Ends = 5, 4, "12", false }

// blind has no refounding wait for anybody.
func blind(c *Config) { c.Writes, c.Refounds = 0, 1 }

// rules are the names of the rules, and the smallest runs that are known to need them.
var rules = explore.Rules[Rule, Config]{
	explore.Need(looksEachBatch, "looks-each-batch", plain),
	explore.Need(fromTheAsking, "from-the-asking", plain.with(and(seated, lasting(2)))),
	explore.Need(quorumOfGrants, "quorum-of-grants", plain),
	explore.Need(promiseCovers, "promise-covers", plain.with(and(seated, clocks("1")))),
	explore.Need(promiseRunsOut, "promise-runs-out", plain),
	explore.Need(quorumOfWords, "quorum-of-words", plain),
	explore.Need(membersOnly, "members-only", plain),
	explore.Need(downFirst, "down-first", cutOff.with(func(c *Config) { c.First, c.Hosts = 2, "2" })),
	explore.Need(knownDown, "known-down", newcomer),
	explore.Need(everybodyReports, "everybody-reports", succession),
	explore.Need(noLowerTerms, "no-lower-terms", succession),
	explore.Need(wordsOfTheDown, "words-of-the-down", plain),
	explore.Need(wordsNameOthers, "words-name-others", plain.with(and(forgetting(), succeeded))),
	explore.Need(joinersReport, "joiners-report", joining),
	explore.Need(convergedJoins, "converged-joins", joining),
	explore.Need(numbersRemember, "numbers-remember", plain.with(forgetting())),
	explore.Need(sameList, "same-list", cutOff),
	explore.Need(wordsOfMembers, "words-of-members", refound.with(outside)),
	explore.Need(ordersOfMembers, "orders-of-members", refound.with(from(1))),
	explore.Need(seekerMarks, "seeker-marks", refound),
	explore.Need(ordersCarry, "orders-carry", refound.with(from(1))),
	explore.Need(emptiedFirst, "emptied-first", change.with(func(c *Config) { c.Writes = 1 })),
	explore.Need(seenByAll, "seen-by-all", change),
	explore.Need(quorumStays, "quorum-stays", change),
	explore.Need(newHolderWaits, "new-holder-waits", apart),
	explore.Need(endedBeforeRefounding, "ended-before-refounding", change.with(blind)),
}

// fences are the names of the second fences, and the runs that were looked at without them.
var fences = explore.Rules[Rule, Config]{
	explore.Need(newHolderGrantsLate, "new-holder-grants-late", apart),
	explore.Need(namedHoldersOnly, "named-holders-only", apart),
	explore.Need(listBeforeGrant, "list-before-grant", apart),
	explore.Need(lowerWriter, "lower-writer", sides),
}

// large are the runs that have more states than a minute is enough for.
var large = []Config{
	joining.with(and(called("joins-apart-large"), func(c *Config) {
		c.Nodes, c.Hosts, c.Losable, c.Victims, c.Deciders, c.Mistakes = 5, "24", "13", "3", "0", 1
		c.Seekers, c.Joiners, c.Deaf = "3", "4", "3"
	})),
}

// bounded has a run stop after so many states, those that are nearest to its begin.
func bounded(c *Config) { c.States = 1_000_000 }

// Large returns the runs of which Runs has the nearest states alone: they end at the bound of their caller.
func Large() []Config { return slices.Clone(large) }

// Runs returns the configurations in which the rules have to hold: all of them, or those that take seconds.
func Runs(all bool) []Config {
	runs := []Config{
		plain.with(called("plain")),
		plain.with(and(called("forgets"), forgetting())),
		plain.with(and(called("clocks"), clocks("3"))),
	}
	if !all {
		return runs
	}
	live := func(c *Config) { c.Live = true }
	return append(runs,
		change.with(called("change")),
		change.with(and(called("change-live"), live, func(c *Config) {
			c.Mistakes, c.Crashes, c.Mortal, c.Witnesses = 1, 1, "12", "0"
		})),
		change.with(and(called("change-clocks"), clocks("1"), func(c *Config) { c.Mistakes = 1 })),
		change.with(and(called("leaves"), func(c *Config) { c.Mistakes, c.Losable, c.Leavers = 1, "1", "2" })),
		apart.with(called("apart")),
		cutOff.with(called("cut-off")),
		cutOff.with(and(called("cut-off-seeks"), func(c *Config) { c.First, c.Hosts = 2, "2" })),
		sides.with(called("sides")),
		refound.with(called("refounds")),
		refound.with(and(called("refounds-live"), from(1), live)),
		refound.with(and(called("refounds-outside"), outside)),
		succession.with(and(called("succession"), live)),
		plain.with(and(called("succession-forgets"), forgetting(), succeeded)),
		joining.with(called("joins")),
		joining.with(and(called("joins-live"), live, func(c *Config) { c.Hosts = "3" })),
		newcomer.with(called("newcomer")),
		apart.with(and(called("joins-a-seat"), func(c *Config) {
			c.Nodes, c.Owner, c.Hosts, c.Spares, c.Joiners, c.Losable, c.Victims, c.Deaf = 4, 1, "3", "3", "3", "12", "12", "12"
		})),
		large[0].with(and(called("joins-apart"), bounded)),
		plain.with(and(called("five"), func(c *Config) {
			c.Nodes, c.Seats, c.Owner, c.Hosts, c.Losable, c.Victims = 5, "01234", 4, "3", "4", "4"
		})),
		apart.with(and(called("five-change"), func(c *Config) {
			c.Nodes, c.Seats, c.Owner, c.Hosts, c.Spares = 6, "01234", 4, "5", "5"
			c.Losable, c.Victims, c.Deaf = "34", "34", "34"
		})),
	)
}

// Needs returns for every rule the configuration that needs it, with that rule switched off.
func Needs() []Config { return rules.Needs(without) }

// Fences returns the runs that were made without each second fence, in which nothing may be found.
func Fences() []Config { return fences.Needs(without) }

func without(c Config, r Rule, name string) Config {
	c.Name, c.Broken = "tenure/without "+name, r
	return c
}

// Prove makes runs, in which nothing may be found, and needs, in each of which something must be, some at a time. It
// calls ended, which may be nil, for each that ends, on several goroutines.
func Prove(runs, needs []Config, states, workers int, ended func(explore.Found)) explore.Result {
	return explore.Prove(runs, needs, workers, func(c Config) explore.Found {
		f := Explore(c, states)
		if ended != nil {
			ended(f)
		}
		return f
	}, func(c Config) string { return c.Broken.String() })
}
