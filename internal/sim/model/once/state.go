// What a run looks at, the rules that can be switched off, and the state: a flat value.

// Package once holds the protocol of messages between durable entities against every order of events: one or two
// senders, one receiver, a few numbered parcels; copies that are late, doubled and lost, owners that move while a
// commit with an unknown outcome is under way, records that are deleted, receivers that refuse, time that goes by. It
// is a model of what docs/durable.md describes, not of the code: docs/contributing/once.md.
//
// `make model` runs it, behind the model of hand-off.
package once

import "github.com/kith-io/kith/internal/sim/model/explore"

// Config bounds one run. The zero value of a bound forbids what it bounds.
type Config struct {
	Name    string
	Parcels [senders]uint8 // that each sender makes, at most 3
	Moves   uint8          // of owners of senders; the owner before goes on sending what it knows
	Stops   uint8          // of owners of the receiver; their commit under way may be lost
	Rejects uint8          // parcels that the receiver's handler refuses
	Deletes uint8          // of records of senders
	Cleans  uint8          // of the receiver's record
	Time    bool           // thirds of the time that marks are kept go by

	Broken Rule // switched off
}

// Rule is a set of rules that are switched off.
type Rule uint32

// The rules, in the order of docs/contributing/once.md.
const (
	sentAfterCommit Rule = 1 << iota
	resentByOwner
	numbersGoOn
	outboxStays
	namesBefore
	beforeIsNow
	markWithState
	fenced
	ackAfterCommit
	knownWaits
	knownAgain
	marksStay
	voidFirst
	voidIsMark
	voidProves
	marksOutlive
	refusesOld
	lastRule // no rule: their number
)

// rules are the names of the rules, and the smallest runs that need them.
var rules = explore.Rules[Rule, Config]{
	explore.Need(sentAfterCommit, "sent-after-commit", Config{Parcels: [2]uint8{1}, Moves: 1}),
	explore.Need(resentByOwner, "resent-by-owner", Config{Parcels: [2]uint8{1}, Moves: 1}),
	explore.Need(numbersGoOn, "numbers-go-on", Config{Parcels: [2]uint8{2}, Deletes: 1}),
	explore.Need(outboxStays, "outbox-stays", Config{Parcels: [2]uint8{1}, Deletes: 1}),
	explore.Need(namesBefore, "names-before", Config{Parcels: [2]uint8{2}}),
	explore.Need(beforeIsNow, "before-is-now", Config{Parcels: [2]uint8{2}, Time: true}),
	explore.Need(markWithState, "mark-with-state", Config{Parcels: [2]uint8{1}, Stops: 1}),
	explore.Need(fenced, "fenced", Config{Parcels: [2]uint8{1, 1}, Stops: 1}),
	explore.Need(ackAfterCommit, "ack-after-commit", Config{Parcels: [2]uint8{1}, Stops: 1}),
	explore.Need(knownWaits, "known-waits", Config{Parcels: [2]uint8{1}, Stops: 1}),
	explore.Need(knownAgain, "known-again", Config{Parcels: [2]uint8{1}, Stops: 1}),
	explore.Need(marksStay, "marks-stay", Config{Parcels: [2]uint8{1}, Cleans: 1}),
	explore.Need(voidFirst, "void-first", Config{Parcels: [2]uint8{2}, Rejects: 1}),
	explore.Need(voidIsMark, "void-is-mark", Config{Parcels: [2]uint8{1}, Rejects: 1}),
	explore.Need(voidProves, "void-proves", Config{Parcels: [2]uint8{1}, Time: true}),
	explore.Need(marksOutlive, "marks-outlive", Config{Parcels: [2]uint8{1}, Time: true}),
	explore.Need(refusesOld, "refuses-old", Config{Parcels: [2]uint8{1}, Time: true}),
}

// Rules returns the names of all rules.
func Rules() []string { return rules.Names() }

// RuleOf returns the rule of that name.
func RuleOf(name string) (Rule, bool) { return rules.Of(name) }

// String returns the names of the rules in the set, with commas in between.
func (r Rule) String() string { return rules.Text(r) }

// keeps reports whether a rule is on.
func (c *Config) keeps(r Rule) bool { return c.Broken&r == 0 }

const (
	senders = 2
	most    = 3 // parcels of a sender, numbered from 1
)

// Ages, in thirds of the time that marks are kept.
const (
	voidAge   = 1 // from here on the sender asks that a parcel be void
	giveUpAge = 2
	markAge   = 3 // a mark is forgotten; older than this nothing needs to be
)

// set is a set of parcels of one sender.
type set uint8

func (s set) has(i int) bool { return s>>i&1 == 1 }
func only(i int) set         { return 1 << i }

// sender is one sender: its record, its owner, the owner before.
type sender struct {
	made   uint8 // parcels that were committed
	draft  bool  // one more is in a commit with an unknown outcome
	reused uint8 // parcels of records that were deleted, where numbers begin anew
	outbox set
	number [most + 1]uint8
	before [most + 1]uint8 // the number of the one before as it was when the parcel was made
	age    [most + 1]uint8

	handled, void set // what the owner has heard of
	blind         set // what the owner has not read of the outbox
	old           set // what the owner before still sends

	told   set // as undelivered: it may have been handled
	undone set // as certainly not handled
}

// receiver is the receiver's record with its marks, as it is stored or as its owner has it in memory.
type receiver struct {
	mark  [senders]uint8
	void  [senders]bool // the parcel of the mark was not handled
	times [senders][most + 1]uint8
}

// state is all there is.
type state struct {
	from   [senders]sender
	copies [senders][most + 1]set // on their way, by what they say of the parcel before; each may come again
	voids  [senders][most + 1]set // the same of wishes that a parcel be void
	acks   [senders]set           // answers on their way: it was handled
	vacks  [senders]set           // it is void
	stored receiver
	memory receiver
	waits  [senders]set // answers that wait for the commit, as acks
	vwaits [senders]set
	late   receiver // the commit of the receiver's owner before, where nothing fences it
	isLate bool
	idle   [senders]uint8 // age of the mark

	moves, stops, rejects, deletes, cleans uint8
}
