// The runs: the matrix of configurations, some deeper ones, and for every rule the configuration that needs it.

package model

import (
	"fmt"
	"slices"
)

// edit is a named part of a configuration.
type edit struct {
	name string
	do   func(c *Config)
}

// faultEdits are the columns of the matrix.
var faultEdits = []edit{
	{"calm", func(c *Config) { c.Moves, c.Messages = 2, 2 }},
	{"crash", func(c *Config) { c.Crashes = 1 }},
	{"restart", func(c *Config) { c.Crashes, c.Restarts = 1, 1 }},
	{"break", func(c *Config) { c.Breaks = 1 }},
	{"abort", func(c *Config) { c.Aborts, c.Moves = 1, 2 }},
	{"sleep", func(c *Config) { c.Sleeps = 1 }},
}

// featureEdits are its rows.
var featureEdits = []edit{
	{"plain", func(*Config) {}},
	{"transfer", func(c *Config) { c.Transfer = true }},
	{"state", func(c *Config) { c.State = true }},
	{"state-transfer", func(c *Config) { c.State, c.Transfer = true, true }},
	{"state-refuse", func(c *Config) { c.State, c.Transfer, c.Refuse = true, true, true }},
	{"refuse", func(c *Config) { c.Transfer, c.Refuse = true, true }},
	{"proxy", func(c *Config) { c.Proxy = true }},
	{"large-recalled", func(c *Config) { c.Large = Recalled }},
	{"large-awaited", func(c *Config) { c.Large = Awaited }},
	{"asks", func(c *Config) { c.Asks, c.Transfer = PlainAsks, true }},
	{"self-ask", func(c *Config) { c.Asks, c.Messages = SelfAsk, 1 }},
	{"worker", func(c *Config) { c.Worker = true }},
	{"links", func(c *Config) { c.Room, c.Mailbox = 1, 1 }},
	{"two-shards", func(c *Config) { c.Shards, c.Senders, c.Messages = 2, []uint8{2}, 2 }},
	{"self-loop", func(c *Config) { c.Loop, c.Transfer, c.Messages = SelfLoop, true, 1 }},
	{"caller-loop", func(c *Config) { c.Loop, c.Messages = CallerLoop, 1 }},
}

// base is what edits begin with: node 1 owns the shard, the other two send one message each, one move to anywhere.
func base(name string, owner uint8) Config {
	c := Config{Name: name, Nodes: 3, Owner: owner, Shards: 1, Senders: []uint8{0, 2}, Messages: 1,
		Moves: 1}
	if owner == 0 {
		c.Senders = []uint8{1, 2}
	}
	return c
}

// matrix returns every feature under every fault, for an owner that coordinates and for one that does not.
func matrix() []Config {
	var all []Config
	for owner := range uint8(2) {
		for _, feature := range featureEdits {
			for _, fault := range faultEdits {
				c := base(fmt.Sprintf("%s/%s/n%d", feature.name, fault.name, owner), owner)
				fault.do(&c)
				feature.do(&c)
				all = append(all, c)
			}
		}
	}
	return all
}

// deep returns runs that go further in a few directions.
func deep() []Config {
	list := []edit{
		{"deep/moves", func(c *Config) { c.Moves, c.Messages = 3, 2 }},
		{"deep/crash", func(c *Config) { c.Moves, c.Messages, c.Crashes = 2, 2, 1 }},
		{"deep/crashes", func(c *Config) { c.Moves, c.Crashes = 2, 2 }},
		{"deep/restarts", func(c *Config) { c.Moves, c.Crashes, c.Restarts = 2, 2, 2 }},
		{"deep/crash-abort", func(c *Config) { c.Moves, c.Crashes, c.Aborts = 2, 1, 1 }},
		{"deep/break-abort", func(c *Config) { c.Moves, c.Messages, c.Breaks, c.Aborts = 2, 2, 1, 1 }},
		{"deep/transfer", func(c *Config) { c.Moves, c.Messages, c.Crashes, c.Transfer = 2, 2, 1, true }},
		{"deep/transfer-one", func(c *Config) {
			c.Moves, c.Messages, c.Crashes, c.Transfer, c.Senders = 3, 2, 2, true, []uint8{2}
		}},
		{"deep/state", func(c *Config) { c.Moves, c.Messages, c.State = 3, 2, true }},
		{"deep/state-crash", func(c *Config) { c.Moves, c.Messages, c.Crashes, c.State = 2, 2, 1, true }},
		{"deep/state-crashes", func(c *Config) {
			c.Moves, c.Crashes, c.Restarts, c.State, c.Transfer = 2, 2, 1, true, true
		}},
		{"deep/state-two-shards", func(c *Config) {
			c.Shards, c.Messages, c.Senders, c.Moves, c.Crashes, c.State = 2, 2, []uint8{0}, 2, 1, true
		}},
		{"deep/state-reign", func(c *Config) { c.Moves, c.Messages, c.Reigns, c.State = 2, 2, 1, true }},
		{"deep/state-sleep-crash", func(c *Config) { c.Sleeps, c.Crashes, c.Senders, c.State = 1, 1, []uint8{2}, true }},
		{"deep/senders", func(c *Config) { c.Senders, c.Moves, c.Crashes = []uint8{0, 1, 2}, 2, 1 }},
		{"deep/large-recalled", func(c *Config) { c.Large, c.Messages, c.Breaks, c.Crashes = Recalled, 2, 1, 1 }},
		{"deep/large-awaited", func(c *Config) { c.Large, c.Messages, c.Breaks, c.Crashes = Awaited, 2, 1, 1 }},
		{"deep/cross-asks", func(c *Config) { c.Shards, c.Asks, c.Moves = 2, CrossAsks, 2 }},
		{"deep/cross-asks-crash", func(c *Config) { c.Shards, c.Asks, c.Moves, c.Crashes = 2, CrossAsks, 1, 1 }},
		{"deep/two-shards", func(c *Config) { c.Shards, c.Messages, c.Senders, c.Moves, c.Crashes = 2, 2, []uint8{0}, 2, 1 }},
		{"deep/sleep-crash", func(c *Config) { c.Sleeps, c.Crashes, c.Senders = 1, 1, []uint8{2} }},
		{"deep/reign", func(c *Config) { c.Moves, c.Messages, c.Reigns = 2, 2, 1 }},
		{"deep/reign-transfer", func(c *Config) { c.Moves, c.Messages, c.Reigns, c.Transfer = 2, 2, 1, true }},
		{"deep/reign-crash", func(c *Config) { c.Crashes, c.Reigns, c.Transfer = 1, 1, true }},
		{"deep/worker", func(c *Config) { c.Worker, c.Room, c.Crashes, c.Moves, c.Messages = true, 1, 1, 2, 2 }},
	}
	all := make([]Config, len(list))
	for i, e := range list {
		all[i] = base(e.name, 1)
		e.do(&all[i])
	}
	return all
}

// leaving returns runs in which a node has to leave, at any step: the owner, the coordinator, the next owner, or one
// that has nothing.
func leaving() []Config {
	list := []edit{
		{"leave/calm", func(c *Config) { c.Messages = 2 }},
		{"leave/moves", func(c *Config) { c.Moves = 1 }},
		{"leave/sleep", func(c *Config) { c.Sleeps = 1 }},
		{"leave/abort", func(c *Config) { c.Aborts = 1 }},
		{"leave/crash", func(c *Config) { c.Crashes = 1 }},
		{"leave/break", func(c *Config) { c.Breaks = 1 }},
		{"leave/reign", func(c *Config) { c.Reigns = 1 }},
		{"leave/refuse", func(c *Config) { c.Transfer = true }},
		{"leave/two-shards", func(c *Config) { c.Shards, c.Messages, c.Senders = 2, 2, []uint8{2} }},
	}
	var all []Config
	for owner := range uint8(2) {
		for _, e := range list {
			c := base(fmt.Sprintf("%s/n%d", e.name, owner), owner)
			c.Moves, c.Leaves, c.State, c.Senders = 0, 1, true, []uint8{2}
			e.do(&c)
			all = append(all, c)
		}
	}
	return all
}

// four returns runs of four nodes: coordinator, its successor, owner and new owner are all different ones.
func four() []Config {
	list := []edit{
		{"four/crash", func(c *Config) { c.Moves, c.Crashes, c.Senders = 2, 1, []uint8{1, 3} }},
		{"four/crashes", func(c *Config) { c.Moves, c.Crashes = 2, 2 }},
		{"four/restart", func(c *Config) { c.Crashes, c.Restarts = 1, 1 }},
		{"four/break", func(c *Config) { c.Crashes, c.Breaks = 1, 1 }},
		{"four/transfer", func(c *Config) { c.Moves, c.Messages, c.Crashes, c.Transfer = 2, 2, 1, true }},
		{"four/state", func(c *Config) { c.Moves, c.Crashes, c.State, c.Senders = 2, 1, true, []uint8{1, 3} }},
		{"four/state-crashes", func(c *Config) { c.Crashes, c.State, c.Transfer = 2, true, true }},
		{"four/transfer-crashes", func(c *Config) { c.Crashes, c.Transfer = 2, true }},
		{"four/refuse", func(c *Config) { c.Moves, c.Crashes, c.Transfer, c.Refuse = 2, 1, true, true }},
		{"four/reign", func(c *Config) { c.Reigns, c.Moves, c.Messages, c.Transfer, c.Refuse = 1, 2, 2, true, true }},
		{"four/proxy", func(c *Config) { c.Owner, c.Proxy, c.Moves, c.Crashes, c.Aborts = 1, true, 2, 1, 1 }},
	}
	all := make([]Config, len(list))
	for i, e := range list {
		all[i] = base(e.name, 2)
		all[i].Nodes, all[i].Senders = 4, []uint8{3}
		e.do(&all[i])
	}
	return all
}

// need is the smallest configuration that is known to need a rule.
type need struct {
	rule Rule
	do   func(c *Config)
}

// needs has a row for every rule.
var needs = []need{
	{earlyMarkers, func(*Config) {}},
	{numberedMarkers, func(c *Config) { c.Moves, c.Aborts = 2, 1 }},
	{sequencesSurvive, func(c *Config) { c.Moves, c.Reigns = 2, 1 }},
	{resentMarkers, func(c *Config) { c.Breaks = 1 }},
	{removalMarks, func(c *Config) { c.Crashes = 1 }},
	{allMarkers, func(*Config) {}},
	{queuedMarkers, func(c *Config) { c.Worker = true }},
	{markersBehindLarge, func(c *Config) { c.Large = Awaited }},
	{largeHolds, func(c *Config) { c.Moves, c.Messages, c.Large = 0, 2, Recalled }},
	{ownCallersPark, func(c *Config) { c.Loop = CallerLoop }},
	{deadline, func(c *Config) { c.Loop, c.Transfer = SelfLoop, true }},
	{workedOff, func(*Config) {}},
	{selfAsksFail, func(c *Config) { c.Asks = SelfAsk }},
	{deadlineFailsAsks, func(c *Config) { c.Moves, c.Shards, c.Asks = 2, 2, CrossAsks }},
	{transferNamesAsker, func(c *Config) { c.Asks, c.Transfer = PlainAsks, true }},
	{transferFirst, func(c *Config) { c.Messages, c.Transfer = 2, true }},
	{namedTransfers, func(c *Config) {
		c.Moves, c.Messages, c.Crashes, c.Transfer, c.Senders = 3, 2, 1, true, []uint8{1}
	}},
	{staleTransfers, func(c *Config) {
		c.Moves, c.Messages, c.Crashes, c.Transfer, c.Senders = 2, 2, 2, true, []uint8{2}
	}},
	{lateTransfers, func(c *Config) {
		c.Moves, c.Messages, c.Crashes, c.Transfer, c.Senders = 2, 2, 2, true, []uint8{2}
	}},
	{dropAtAck, func(c *Config) { c.Crashes, c.Transfer = 2, true }},
	{namesHolder, func(c *Config) { c.Moves, c.Crashes, c.Transfer = 2, 1, true }},
	{reportsNameHolder, func(c *Config) {
		c.Nodes, c.Owner, c.Senders, c.Crashes, c.Transfer = 4, 2, []uint8{3}, 1, true
	}},
	{homeForTransfer, func(c *Config) { c.Transfer = true }},
	{refusalReturns, func(c *Config) { c.Transfer, c.Refuse = true, true }},
	{waitForStop, func(*Config) {}},
	{startedFirst, func(*Config) {}},
	{parkBehind, func(c *Config) { c.Messages, c.Room, c.Senders = 3, 1, []uint8{0} }},
	{parkedNeverRefused, func(c *Config) { c.Mailbox = 1 }},
	{parkedNeverExpire, func(*Config) {}},
	{confirmedAbort, func(c *Config) { c.Aborts = 1 }},
	{markerDeadline, func(c *Config) { c.Sleeps = 1 }},
	{promises, func(c *Config) { c.Crashes = 1 }},
	{allReports, func(c *Config) { c.Owner, c.Senders, c.Crashes = 2, []uint8{1}, 1 }},
	{toldAll, func(c *Config) { c.Crashes = 1 }},
	{toldProxies, func(c *Config) { c.Proxy, c.Crashes, c.Restarts = true, 1, 1 }},
	{proxiesFollow, func(c *Config) { c.Nodes, c.Proxy, c.Senders, c.Crashes = 4, true, []uint8{3}, 1 }},
	{movingNotDisclosed, func(c *Config) { c.Crashes = 1 }},
	{givenUpMoves, func(c *Config) { c.Crashes = 1 }},
	{sleepersConfirm, func(c *Config) { c.Moves, c.Sleeps = 0, 1 }},
	{gatedStartNothing, func(c *Config) { c.Moves, c.Sleeps, c.Crashes, c.Senders = 2, 1, 1, []uint8{2} }},
	{statesAreARest, func(c *Config) { c.State = true }},
	{statesComeLast, func(c *Config) { c.State = true }},
	{leaversStay, func(c *Config) { c.Leaves, c.Sleeps, c.State, c.Moves, c.Messages = 1, 1, true, 0, 0 }},
	{leaversTryAgain, func(c *Config) { c.Leaves, c.Aborts, c.State, c.Moves = 1, 1, true, 0 }},
}

// small is the matrix as far as it goes in seconds.
func small() []Config {
	var all []Config
	for _, c := range matrix() {
		if c.Owner == 0 || c.Sleeps+c.Restarts > 0 {
			continue
		}
		c.Moves, c.Messages = 1, min(c.Messages, 1+uint8(c.Shards/2))
		all = append(all, c)
	}
	return all
}

// Runs returns the configurations in which the protocol has to hold: all of them, or those that take seconds.
func Runs(all bool) []Config {
	if all {
		return slices.Concat(matrix(), deep(), leaving(), four())
	}
	return small()
}

// Needs returns for every rule the configuration that needs it, with that rule switched off.
func Needs() []Config {
	all := make([]Config, len(needs))
	for i, n := range needs {
		all[i] = base("without "+n.rule.String(), 1)
		n.do(&all[i])
		all[i].Broken = n.rule
	}
	return all
}
