// The runs, those in which nothing may be found and those that show what each rule is for.

package instances

import (
	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/internal/sim/model/explore"
)

// Situations that runs are made of: slot 0 is moved to node 2, which sends one message.
var (
	stateless = Config{Way: cluster.Stateless, Senders: "2", Moves: 1, Takers: "2", Live: true}
	forwards  = stateless.with(func(c *Config) { c.Way = cluster.Handoff{Old: cluster.OldForwards} })
	drops     = stateless.with(func(c *Config) { c.Way = cluster.Handoff{Old: cluster.OldDrops} })
	lateDrops = stateless.with(func(c *Config) { c.Way = cluster.Handoff{Late: cluster.LateDrops} })
	lossy     = stateless.with(func(c *Config) { c.Way = cluster.Lossy })
	ordered   = stateless.with(func(c *Config) { c.Way, c.Senders = cluster.Ordered, "22" })
)

// with returns a situation that is a little different.
func (c Config) with(changes ...func(*Config)) Config {
	for _, change := range changes {
		change(&c)
	}
	return c
}

// What differs, for with.
func forthAndBack(c *Config) { c.Moves, c.Takers = 2, "" }
func lagging(c *Config)      { c.Lags = "012" }
func calling(c *Config)      { c.Slow, c.Senders = true, "22" }
func crashing(c *Config)     { c.Mortal, c.Crashes = "012", 2 }
func leavingNode(c *Config)  { c.Moves, c.Leavers = 0, "0" }
func nobodyTakes(c *Config) {
	c.Slow, c.Senders, c.Mortal, c.Crashes = true, "1", "2", 1
}
func leader(c *Config)     { c.Fickle = true }
func twoLeaders(c *Config) { c.Mistakes, c.Victims, c.Deciders = 1, "0", "1" }
func twoSides(c *Config) {
	c.Mistakes, c.Victims, c.Deciders, c.Mortal, c.Crashes = 2, "01", "01", "2", 1
}
func single(c *Config)    { c.One = true }
func ending(c *Config)    { c.Ends = true }
func asksTwice(c *Config) { c.Timeouts = 1 }
func draining(c *Config)  { c.Moves, c.Drainers = 0, "0" }
func takerDrains(c *Config) {
	c.Drainers, c.Undrains = "2", 1
}
func otherLeads(c *Config)   { c.One, c.Fickle, c.Drainers = true, true, "2" }
func besideDrains(c *Config) { c.Moves, c.One, c.Drainers = 0, true, "1" }
func bothDrain(c *Config)    { c.One, c.Takers, c.Drainers = true, "2", "02" }
func takerLeaves(c *Config)  { c.Leavers, c.Senders = "2", "1" }
func twoDrain(c *Config)     { c.One, c.Takers, c.Drainers = true, "1", "12" }

// rules are the names of the rules, and the smallest runs that are known to need them.
var rules = explore.Rules[Rule, Config]{
	explore.Need(converged, "converged", drops.with(leader, crashing, single)),
	explore.Need(writerInFence, "writer-in-fence", stateless.with(single, twoSides)),
	explore.Need(completeJoins, "complete-joins", stateless),
	explore.Need(endsFirst, "ends-first", drops),
	explore.Need(callEndsFirst, "call-ends-first", forwards.with(calling)),
	explore.Need(takesEarly, "takes-early", stateless),
	explore.Need(notBeforeTheChange, "not-before-the-change", forwards.with(forthAndBack, calling)),
	explore.Need(madeByRequest, "made-by-request", drops.with(twoDrain)),
	explore.Need(believesLater, "believes-later", stateless),
	explore.Need(laterStampGoesOn, "later-stamp-goes-on", stateless),
	explore.Need(waitsForTable, "waits-for-the-table", stateless.with(otherLeads)),
	explore.Need(sendsOnLate, "sends-on-late", stateless),
	explore.Need(initIsCurrent, "init-is-current", drops.with(forthAndBack, asksTwice)),
	explore.Need(requestsNameOne, "requests-name-one", drops.with(takerLeaves)),
	explore.Need(ranksApart, "ranks-apart", stateless.with(forthAndBack, lagging, crashing, single)),
	explore.Need(anewAfterwards, "anew-afterwards", stateless.with(crashing)),
	explore.Need(laterIsSpared, "later-is-spared", drops.with(otherLeads)),
	explore.Need(leaverMakesNone, "leaver-makes-none", stateless.with(leavingNode, nobodyTakes)),
	explore.Need(knowsDrainers, "knows-drainers", stateless.with(takerDrains)),
	explore.Need(drainersAgree, "drainers-agree", stateless.with(twoDrain)),
	explore.Need(handlesWithoutAWay, "handles-without-a-way", forwards.with(takerDrains)),
	explore.Need(shardsLast, "shards-last", stateless.with(draining)),
	explore.Need(turnsBack, "turns-back", drops.with(twoDrain)),
	explore.Need(goesOn, "goes-on", forwards.with(otherLeads, calling)),
	explore.Need(parks, "parks", ordered),
	explore.Need(markers, "markers", ordered),
	explore.Need(stateMoves, "state-moves", ordered),
	explore.Need(takeoverWaits, "takeover-waits", ordered.with(twoLeaders)),
}

// fences are the names of the second fences, and the runs that were looked at without them.
var fences = explore.Rules[Rule, Config]{
	explore.Need(writerBreaksTies, "writer-breaks-ties", stateless.with(lagging, twoLeaders)),
	explore.Need(looksFirst, "looks-first", stateless.with(forthAndBack, lagging)),
	explore.Need(completeStays, "complete-stays", stateless.with(forthAndBack, lagging)),
	explore.Need(namedStays, "named-stays", stateless.with(leavingNode)),
	explore.Need(settles, "settles", drops.with(leavingNode)),
	explore.Need(readyFirst, "ready-first", forwards.with(lagging)),
	explore.Need(oldGoesOn, "old-goes-on", stateless.with(forthAndBack, lagging)),
	explore.Need(endNamesOne, "end-names-one", stateless.with(forthAndBack, lagging)),
	explore.Need(endsBehindItsCall, "ends-behind-its-call", stateless.with(leavingNode, nobodyTakes)),
}

// Runs returns the configurations in which the rules have to hold: all of them, or those that take seconds.
func Runs(all bool) (runs []Config) {
	add := func(name string, c Config, changes ...func(*Config)) {
		c = c.with(changes...)
		c.Name = "instances/" + name
		runs = append(runs, c)
	}
	for _, w := range []struct {
		name string
		way  Config
	}{{"stateless", stateless}, {"forwards", forwards}, {"drops", drops}, {"late-drops", lateDrops}, {"lossy", lossy}} {
		add(w.name, w.way)
		if !all {
			add(w.name+"-crashes", w.way, crashing)
			continue
		}
		add(w.name+"-moves", w.way, forthAndBack, lagging)
		add(w.name+"-calls", w.way, forthAndBack, calling)
		add(w.name+"-crashes", w.way, forthAndBack, crashing)
		add(w.name+"-crashes-late", w.way, lagging, crashing)
		add(w.name+"-leader", w.way, forthAndBack, leader)
		add(w.name+"-leader-crashes", w.way, leader, crashing)
		add(w.name+"-two-leaders", w.way, lagging, twoLeaders)
		add(w.name+"-one", w.way, forthAndBack, crashing, single)
		add(w.name+"-leaves", w.way, leavingNode)
		add(w.name+"-leaves-in-a-call", w.way, leavingNode, nobodyTakes)
		add(w.name+"-drains", w.way, draining)
		add(w.name+"-drains-late", w.way, lagging, draining)
		add(w.name+"-two-drain", w.way, twoDrain)
		add(w.name+"-both-drain", w.way, bothDrain)
		add(w.name+"-taker-leaves", w.way, takerLeaves)
		add(w.name+"-taker-drains", w.way, takerDrains)
		add(w.name+"-other-leads", w.way, otherLeads)
		add(w.name+"-leaves-beside-drains", w.way, leavingNode, besideDrains)
		add(w.name+"-crashes-beside-drains", w.way, crashing, besideDrains)
		add(w.name+"-ends", w.way, ending)
		add(w.name+"-asks-twice", w.way, forthAndBack, asksTwice)
	}
	if all {
		add("stateless-two-sides", stateless, single, twoSides)
		add("forwards-other-leads-calls", forwards, otherLeads, calling)
	}
	add("ordered", ordered)
	if all {
		add("ordered-moves", ordered, forthAndBack)
		add("ordered-crashes", ordered, crashing)
		add("ordered-leader", ordered, leader)
		add("ordered-two-leaders", ordered, twoLeaders)
		add("ordered-leaves", ordered, leavingNode)
	}
	return runs
}

// Needs returns for every rule the configuration that needs it, with that rule switched off.
func Needs() []Config { return rules.Needs(without) }

// Fences returns the runs that were made without each second fence, in which nothing may be found.
func Fences() []Config { return fences.Needs(without) }

func without(c Config, r Rule, name string) Config {
	c.Name, c.Broken = "instances/without "+name, r
	return c
}

// Prove makes runs, in which nothing may be found, and needs, in each of which something must be, some at a time.
func Prove(runs, needs []Config, states, workers int) explore.Result {
	return explore.Prove(runs, needs, workers, func(c Config) explore.Found { return Explore(c, states) },
		func(c Config) string { return c.Broken.String() })
}
