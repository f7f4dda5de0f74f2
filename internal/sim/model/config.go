// What a run looks at: a configuration, and the rules of the protocol that can be switched off.

package model

import "strings"

// Config bounds one run: owners, senders, which faults may come and how often. The zero value of a bound forbids what
// it bounds.
type Config struct {
	Name   string
	Nodes  uint8 // 3 or 4
	Owner  uint8 // the node that owns all shards at first; node 0 coordinates
	Shards uint8 // 1 or 2; every sender sends its message m to shard m mod Shards

	Senders  []uint8
	Messages uint8 // of each sender, at most 2

	Crashes, Restarts, Moves, Aborts, Breaks, Sleeps uint8
	Reigns                                           uint8 // offices that begin anew under their term
	Leaves                                           uint8 // nodes that are ordered to leave: what they host moves away

	Transfer bool // an owner that has not worked off everything may stop, and hands over what is left
	State    bool // each shard has an entity with a state, the count of its messages, which moves with it
	Refuse   bool // the new owner may refuse what is handed over: too large, no room
	Proxy    bool // the last node hosts nothing, coordinates nothing and is not asked for reports
	Large    Large
	Asks     Asks
	Loop     Loop
	Worker   bool  // frames go through the queue of a worker
	Room     uint8 // envelopes that a link holds, 0: as many as there are
	Mailbox  uint8 // messages that a mailbox holds, 0: as many as there are

	Broken Rule // switched off
}

// Large says whether the first sender's first message is a large one, and what a move does with it.
type Large uint8

// A large message that is on its way when its shard is to move is taken back and begins anew at the next home, or the
// marker waits behind it.
const (
	NoLarge Large = iota
	Recalled
	Awaited
)

// Asks says which messages are asks. The handler of a nested one asks in turn and waits for the answer.
type Asks uint8

// No asks; all messages are asks; the first sender's first message asks an entity that asks another one of its own
// shard; each sender's first message asks an entity of its shard that asks the other shard.
const (
	NoAsks Asks = iota
	PlainAsks
	SelfAsk
	CrossAsks
)

// Loop says what never comes to rest.
type Loop uint8

// Nothing; an entity of the shard that tells itself for ever; a caller on the owner's node that tells the shard again
// as soon as it was handled.
const (
	NoLoop Loop = iota
	SelfLoop
	CallerLoop
)

// Rule is a set of rules that are switched off.
type Rule uint64

// The rules, in the order of docs/contributing/model.md.
const (
	earlyMarkers Rule = 1 << iota
	numberedMarkers
	sequencesSurvive
	resentMarkers
	removalMarks
	allMarkers
	queuedMarkers
	markersBehindLarge
	largeHolds
	ownCallersPark
	deadline
	workedOff
	selfAsksFail
	deadlineFailsAsks
	transferNamesAsker
	transferFirst
	lateTransfers
	namedTransfers
	staleTransfers
	dropAtAck
	namesHolder
	reportsNameHolder
	homeForTransfer
	refusalReturns
	waitForStop
	startedFirst
	parkBehind
	parkedNeverRefused
	parkedNeverExpire
	confirmedAbort
	markerDeadline
	promises
	allReports
	toldAll
	toldProxies
	proxiesFollow
	movingNotDisclosed
	givenUpMoves
	sleepersConfirm
	gatedStartNothing
	statesAreARest
	statesComeLast
	leaversStay
	leaversTryAgain
	lastRule // no rule: their number
)

// rules are the names of the rules.
var rules = []struct {
	rule Rule
	name string
}{
	{earlyMarkers, "early-markers"}, {numberedMarkers, "numbered-markers"},
	{sequencesSurvive, "sequences-survive"}, {resentMarkers, "resent-markers"},
	{removalMarks, "removal-marks"}, {allMarkers, "all-markers"}, {queuedMarkers, "queued-markers"},
	{markersBehindLarge, "markers-behind-large"}, {largeHolds, "large-holds"},
	{ownCallersPark, "own-callers-park"},
	{deadline, "deadline"}, {workedOff, "worked-off"}, {selfAsksFail, "self-asks-fail"},
	{deadlineFailsAsks, "deadline-fails-asks"}, {transferNamesAsker, "transfer-names-asker"},
	{transferFirst, "transfer-first"}, {lateTransfers, "late-transfers"}, {namedTransfers, "named-transfers"},
	{staleTransfers, "stale-transfers"}, {dropAtAck, "drop-at-ack"}, {namesHolder, "names-holder"},
	{reportsNameHolder, "reports-name-holder"},

	{homeForTransfer, "home-for-transfer"}, {refusalReturns, "refusal-returns"}, {waitForStop, "wait-for-stop"},
	{startedFirst, "started-first"}, {parkBehind, "park-behind"}, {parkedNeverRefused, "parked-never-refused"},
	{parkedNeverExpire, "parked-never-expire"}, {confirmedAbort, "confirmed-abort"},
	{markerDeadline, "marker-deadline"}, {promises, "promises"}, {allReports, "all-reports"},
	{toldAll, "told-all"},
	{toldProxies, "told-proxies"}, {proxiesFollow, "proxies-follow"},
	{movingNotDisclosed, "moving-not-disclosed"}, {givenUpMoves, "given-up-moves"},
	{sleepersConfirm, "sleepers-confirm"}, {gatedStartNothing, "suspended-start-nothing"},
	{statesAreARest, "states-are-a-rest"}, {statesComeLast, "states-come-last"},
	{leaversStay, "leavers-stay"}, {leaversTryAgain, "leavers-try-again"},
}

// Rules returns the names of all rules.
func Rules() []string {
	names := make([]string, len(rules))
	for i, r := range rules {
		names[i] = r.name
	}
	return names
}

// RuleOf returns the rule of that name.
func RuleOf(name string) (Rule, bool) {
	for _, r := range rules {
		if r.name == name {
			return r.rule, true
		}
	}
	return 0, false
}

// String returns the names of the rules in the set, with commas in between.
func (r Rule) String() string {
	var names []string
	for _, x := range rules {
		if r&x.rule != 0 {
			names = append(names, x.name)
		}
	}
	return strings.Join(names, ",")
}

// keeps reports whether a rule is on.
func (c *Config) keeps(r Rule) bool { return c.Broken&r == 0 }

// sends reports whether a node is a sender.
func (c *Config) sends(i int) bool {
	for _, s := range c.Senders {
		if int(s) == i {
			return true
		}
	}
	return false
}
