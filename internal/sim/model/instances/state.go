// What a run looks at, the rules that can be switched off, and the state: a flat value.

// Package instances holds the hand-off of a partition's instances against every order of events: three nodes, one
// partition of two instances, tables that gossip carries, a leader that may be another one at every step, nodes that
// crash, leave and drain, and messages that are sent meanwhile. The table is planned by the very code of
// internal/core/partition; what nodes do by it is a model of package partition, which a test there holds against its
// code: docs/contributing/instances.md.
//
// `make model` runs it, behind the other models.
package instances

import (
	"slices"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/internal/sim/model/explore"
)

// Config bounds one run. Sets of nodes are digits, in any order: "02". The zero value of a bound forbids what it
// bounds. Slot 0 is on node 0 at first, slot 1 on node 1, and all that is sent is for slot 0.
type Config struct {
	Name string
	Way  cluster.Handoff

	One      bool   // one instance, of slot 0
	Senders  string // of one message each; a node that is named twice sends two
	Moves    uint8  // by hand
	Movers   string // that may ask for one; empty: node 1
	Takers   string // to which they move; empty: all
	Leavers  string // that may leave; one at a time
	Drainers string // that may drain: the way to their instances goes, and the instances follow
	Undrains uint8  // times that one takes it back
	Mortal   string // that may crash
	Crashes  uint8  // at most
	Mistakes uint8  // times that one that lives is taken for Down
	Victims  string // of mistakes
	Deciders string // that make them
	Ends     bool   // the partition is undefined once
	Fickle   bool   // any node that has converged may act as the leader
	Lags     string // nodes on which partitions look at the table later than membership has it
	Slow     bool   // a call of an instance takes a step of its own
	Timeouts uint8  // times that an old node asks the new one again while the first request is still on its way
	Live     bool   // every state must have a way to rest
	States   int    // at most, where the run is to stop before what the caller allows; 0 for no other bound

	Broken Rule // switched off
}

// Rule is a set of rules that are switched off.
type Rule uint64

// The rules, in the order of docs/contributing/instances.md.
const (
	converged Rule = 1 << iota
	writerInFence
	completeJoins
	endsFirst
	callEndsFirst
	takesEarly
	notBeforeTheChange
	madeByRequest
	believesLater
	laterStampGoesOn
	waitsForTable
	sendsOnLate
	initIsCurrent
	requestsNameOne
	ranksApart
	anewAfterwards
	laterIsSpared
	leaverMakesNone
	knowsDrainers
	drainersAgree
	handlesWithoutAWay
	shardsLast
	turnsBack
	goesOn
	parks
	markers
	stateMoves
	takeoverWaits
	lastRule // no rule: their number
)

// Second fences: rules that nothing was found without, for others cover them.
const (
	writerBreaksTies Rule = lastRule << iota
	looksFirst
	completeStays
	namedStays
	settles
	readyFirst
	oldGoesOn
	endNamesOne
	endsBehindItsCall
	lastFence
)

// every is all rules, the second fences behind those that are needed.
func every() explore.Rules[Rule, Config] { return slices.Concat(rules, fences) }

// Rules returns the names of all rules that are needed, and of the second fences.
func Rules() []string { return every().Names() }

// RuleOf returns the rule of that name.
func RuleOf(name string) (Rule, bool) { return every().Of(name) }

// String returns the names of the rules in the set, with commas in between.
func (r Rule) String() string { return every().Text(r) }

// Bounds of a state.
const (
	nodes    = 3
	slots    = 2
	most     = 3 // messages
	maxHops  = 4 // fewer than package partition allows
	maxEpoch = 7 // behind it no leader writes another one
	nobody   = nodes
)

// set is a set of nodes, a bit each.
type set uint8

func only(x int) set         { return 1 << uint(x) }
func (s set) has(x int) bool { return s&only(x) != 0 }

func setOf(digits string) (s set) {
	for _, d := range digits {
		s |= only(int(d - '0'))
	}
	return s
}

// Stamp is when something stood in the table: the epoch and the leader that wrote it, in the order of merges; as a rank
// it is the fence of an instance.
type Stamp uint8

// StampOf returns the stamp of an epoch below 32 and a writer below 8.
func StampOf(epoch, writer uint8) Stamp { return Stamp(epoch<<3 | writer) }

func (s Stamp) epoch() uint8 { return uint8(s) >> 3 }

// Change is a hand-off that is pending.
type Change struct {
	At       Stamp // 0: none is pending
	From, To uint8 // nobody: it ends
	Complete bool
}

// Placed is what leaders have made of the partition.
type Placed struct {
	At     Stamp
	Way    cluster.Handoff
	Wanted uint8
	Heeded uint8
	Host   [slots]uint8
	Change [slots]Change
}

// defined is what programmers have said of it.
type defined struct {
	version, by uint8
	deleted     bool
	slot, to    uint8 // of a move
}

// Status of a member.
const (
	up uint8 = iota
	leaving
	exiting
	down
)

// drains names the members that drain, as all gossip it: the later write stands.
type drains struct {
	who          set
	said, writer uint8 // how often that was written, and the last writer
}

// view is what the membership of a node has.
type view struct {
	defined
	Placed
	drains
	status [nodes]uint8
}

// instance is one on a node.
type instance struct {
	live bool
	at   Stamp // of the table by which it is here
	rank Stamp // of its fence
	busy uint8 // the message that it handles, behind 1; 0: none
}

// Where a message is.
const (
	unsent uint8 = iota
	flies        // to node to
	calls        // the instance at node to handles it
	backs        // it was refused by node to, and goes back
	handled
	reported
	lost
	waits // it is kept at its sender, of hand-offs that buffer
)

// message is one for slot 0.
type message struct {
	where uint8
	to    uint8
	at    Stamp
	hops  uint8
}

// request asks the new node of a slot to make the instance.
type request struct {
	phase  uint8 // idle, asked, ready
	at     Stamp
	by, to uint8
}

// Phases of a request.
const (
	idle uint8 = iota
	asked
	ready
)

// local is what package partition keeps on a node.
type local struct {
	row   Placed // as it looked at it last
	here  [slots]instance
	over  [slots]Stamp // changes that are over on this node
	told  [slots]Stamp // changes that its membership was told to complete
	asked [slots]Stamp // changes for which it has asked the new node
	ends  [slots]Stamp // a message that ends the instance of a stamp, on its way
	goes  uint8        // stays, evacuates, left, gone
	drain bool         // it drains, and says so
	doors bool         // shards by which messages come to this node have gone elsewhere
}

// Of a node that leaves.
const (
	stays     uint8 = iota
	evacuates       // it is Up, and gives its instances away
	left            // it is Leaving, and gives back what messages come by
)

// room is slot 0 of hand-offs that buffer: a shard with one owner, and its move in the smallest form.
type room struct {
	home   uint8 // nobody: it was lost
	to     uint8 // nobody: no move
	parked set   // senders that keep what they send
	marked set   // of these, the markers that have come to the owner
	knows  [nodes]uint8
	count  uint8 // state: messages that were handled
	sum    uint8 // the same, as it is judged
}

// state is everything.
type state struct {
	alive set
	left  set // of the others: nodes that have left
	view  [nodes]view
	seen  [nodes]set // which nodes had exactly the view of this one
	on    [nodes]local
	ask   [slots]request
	stray [slots]request // that its asker has given up
	given [nodes]uint64  // ranks of fences of slot 0 that were given on each node
	sent  [most]message
	room  room

	moves, crashes, mistakes, timeouts, leaves, undrains uint8
	ended                                                bool
}
