// What a run looks at, the rules that can be switched off, and the state: a flat value.

// Package session holds the rules of a session lease against every order of events: an owner that renews its session
// in a store, calls of it that are late or lost, clocks that do not run alike, an owner that stands still, and members
// that take the owner's shards when they have ended its session. It is the model from which Sharding.Session is to be
// built, and stands before any code: docs/contributing/session.md.
//
// `make model` runs it, behind the other models.
package session

import "github.com/kith-io/kith/internal/sim/model/explore"

// Config bounds one run. The zero value of a bound forbids what it bounds.
type Config struct {
	Name  string
	Slow  uint8 // ticks that the owner's clock does not count
	Stops uint8 // times that the owner stands still
	Dies  bool  // the owner may die
	// Sleeps is how often its machine sleeps, which none of its clocks shows until it wakes, and Sets how often its wall
	// clock is set forward, which looks the same.
	Sleeps, Sets uint8

	Broken Rule // switched off
}

// Rule is a set of rules that are switched off.
type Rule uint32

// The rules, in the order of docs/contributing/session.md.
const (
	fromTheCall Rule = 1 << iota
	margin
	proofIsTheSwap
	endedStays
	endedOutlasts
	givesUp
	readEachBatch
	goesOn
	asksItself
	noneUnderWay
	asksAnew
	lastRule // no rule: their number
)

// rules are the names of the rules, and the smallest runs that need them.
var rules = explore.Rules[Rule, Config]{
	explore.Need(fromTheCall, "from-the-call", Config{}),
	explore.Need(margin, "margin", Config{Slow: 1}),
	explore.Need(proofIsTheSwap, "proof-is-the-swap", Config{}),
	explore.Need(endedStays, "ended-stays", Config{}),
	explore.Need(endedOutlasts, "ended-outlasts", Config{}),
	explore.Need(givesUp, "gives-up", Config{}),
	explore.Need(readEachBatch, "read-each-batch", Config{Stops: 1}),
	explore.Need(goesOn, "goes-on", Config{}),
	explore.Need(asksItself, "asks-itself", Config{Sleeps: 1}),
	explore.Need(noneUnderWay, "none-under-way", Config{Sleeps: 1}),
	explore.Need(asksAnew, "asks-anew", Config{Sleeps: 1}),
}

// Rules returns the names of all rules.
func Rules() []string { return rules.Names() }

// RuleOf returns the rule of that name.
func RuleOf(name string) (Rule, bool) { return rules.Of(name) }

// String returns the names of the rules in the set, with commas in between.
func (r Rule) String() string { return rules.Text(r) }

// keeps reports whether a rule is on.
func (c *Config) keeps(r Rule) bool { return c.Broken&r == 0 }

// Times, in ticks.
const (
	ttl   = 3 // of a session, by the store's clock
	drift = 1 // by how much less the owner counts on, where its clock may be slow
	tries = 4 // after so long without a session the owner asks no more
	// marker is how long the store keeps that a session was ended: longer than the owner asks, and than an answer to it
	// is good for, also where its clock is slow.
	marker = tries + ttl + drift
)

// word is what the store knows of a session.
type word uint8

const (
	none  word = iota // nothing: it has run out, or was never there
	held              // of the owner
	ended             // by a member that took the owner's shards
)

// call is one call of the owner.
type call struct {
	on     bool
	age    uint8 // by the owner's clock, at most ttl: an answer that is older is good for nothing
	landed bool  // the store has carried it out
	ok     bool  // and what it said
}

// probe is how far the owner is with its question: an attempt to end its own session.
type probe uint8

const (
	sure   probe = iota // it asks nothing
	asks                // the call is under way
	isHeld              // carried out: the session was held
	ranOut              // carried out: it had run out, or was ended before
)

// state is everything.
type state struct {
	store word
	left  uint8 // for how long the word stands still

	calls   [2]call
	sure    uint8 // for how long the owner may handle still, by its clock
	without uint8 // for how long it has had no session, at most tries and one more
	began   bool  // it has had one
	batch   bool  // it handles what it has read its clock for
	over    bool  // it has ended, or died
	still   bool  // it stands still
	asleep  bool  // its machine sleeps: its clock stands
	doubt   probe // the wall clock has stepped, and it asks whether it slept
	kept    uint8 // what sure was before; only where it does not ask anew

	taken bool // a member has taken its shards

	slow, stops, sleeps, sets uint8 // what was used of the bounds
}
