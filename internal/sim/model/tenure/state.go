// What a run looks at, the rules that can be switched off, and the state: a flat value.

// Package tenure holds the rules of a tenure with a fixed electorate against every order of events: the owner of a
// shard handles messages only while a quorum of numbered seats has vouched for it, and a quorum's word that this is
// over gives the shard away. Every node has a view of its own: of the list of seats, of the members, of those that
// are Down. It is the model that package internal/core/tenure is built from: docs/contributing/tenure.md.
//
// `make model` runs it, behind the other models.
package tenure

import (
	"math/bits"
	"slices"

	"github.com/kith-io/kith/internal/sim/model/explore"
)

// Config bounds one run. Sets of nodes are digits, in any order: "02". The zero value of a bound forbids what it
// bounds.
type Config struct {
	Name  string
	Nodes int    // from the start, and those that join; 2 to 6
	Seats string // the first holder of each seat; 1 to 5
	Owner int    // of the shard, at first; -1 for nobody
	First int    // coordinator; the leader is the lowest that is Up

	Hosts   string // that the shard may be given to
	Spares  string // that may get a seat
	Leavers string // holders that leave: their seats move while they live
	Joiners string // one at most: it is no member at first

	Faults

	Deaf     string // that no state reaches, so that a run is smaller
	Seekers  string // that may begin to coordinate
	Drifters string // with clocks that are a tick off within any time

	Writes, Refounds uint8 // changes of the seats; foundings anew, after a quorum of seats was lost
	Reigns           uint8 // beginnings to coordinate
	Prunes           uint8 // times that a view forgets one that is Down
	Grant            uint8 // ticks of a grant; 0 is 1
	Ends             bool  // a node that learns that it is Down ends and says so
	Live             bool  // while a quorum and a host live, the shard must have a way to be handled
	Whole            bool  // states keep what nobody reads any more: many times as many
	States           int   // at most, where the run is to stop before what the caller allows; 0 for no other bound

	Broken Rule // switched off
}

// Faults is what may go wrong with nodes.
type Faults struct {
	Crashes   uint8  // nodes that die
	Mortal    string // that may die
	Losable   string // that may be taken for Down
	Witnesses string // that may see by themselves that another is dead
	Mistakes  uint8  // times that one that lives is taken for Down
	Deciders  string // that may take one that lives for Down
	Victims   string // that live, and may be taken for Down
}

// Rule is a set of rules that are switched off.
type Rule uint64

// The rules, in the order of docs/contributing/tenure.md.
const (
	looksEachBatch Rule = 1 << iota
	fromTheAsking
	quorumOfGrants
	promiseCovers
	promiseRunsOut
	quorumOfWords
	membersOnly
	downFirst
	knownDown
	everybodyReports
	noLowerTerms
	wordsOfTheDown
	wordsNameOthers
	joinersReport
	convergedJoins
	numbersRemember
	sameList
	wordsOfMembers
	ordersOfMembers
	seekerMarks
	ordersCarry
	emptiedFirst
	seenByAll
	quorumStays
	newHolderWaits
	endedBeforeRefounding
	lastRule // no rule: their number
)

// Second fences: rules that nothing was found without, for others cover them. They cost nothing.
const (
	newHolderGrantsLate Rule = lastRule << iota
	namedHoldersOnly
	listBeforeGrant
	lowerWriter
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

// compiled is a Config with its sets as bits.
type compiled struct {
	Config
	n, seats, quorum int
	grant, promise   uint8

	hosts, spares, leavers, joiners, losable, deciders, victims, witnesses, deaf, seekers, drifters, mortal set
}

// keeps reports whether a rule is on.
func (c *Config) keeps(r Rule) bool { return c.Broken&r == 0 }

func compile(cfg Config) *compiled {
	c := &compiled{Config: cfg, n: cfg.Nodes, seats: len(cfg.Seats), quorum: len(cfg.Seats)/2 + 1}
	c.grant = max(cfg.Grant, 1)
	for _, x := range []struct {
		to   *set
		from string
	}{
		{&c.hosts, cfg.Hosts}, {&c.spares, cfg.Spares}, {&c.leavers, cfg.Leavers}, {&c.joiners, cfg.Joiners},
		{&c.losable, cfg.Losable}, {&c.deciders, cfg.Deciders}, {&c.victims, cfg.Victims}, {&c.witnesses, cfg.Witnesses},
		{&c.deaf, cfg.Deaf}, {&c.seekers, cfg.Seekers}, {&c.drifters, cfg.Drifters}, {&c.mortal, cfg.Mortal},
	} {
		for _, d := range x.from {
			*x.to |= only(int(d - '0'))
		}
	}
	c.promise = c.grant
	if c.drifters != 0 && c.keeps(promiseCovers) {
		c.promise += 2 // a tick for each of two clocks
	}
	return c
}

// Bounds of a state.
const (
	nodes  = 6
	places = 5 // seats
	lists  = 5 // of seats that are ever written
	epochs = 4 // of a term

	nobody = 255 // holds the seat
)

// set is a set of nodes, a bit each.
type set uint8

func only(x int) set            { return 1 << uint(x) }
func (s set) has(x int) bool    { return s&only(x) != 0 }
func (s set) lowest() int       { return bits.TrailingZeros8(uint8(s)) }
func (s set) count() int        { return bits.OnesCount8(uint8(s)) }
func (s set) within(o set) bool { return s&^o == 0 }

// seatList is a list of seats: a fact, bound to its number and its writer, with the view that it was written in.
type seatList struct {
	number, writer uint8
	holder         [places]uint8
	in, up, down   set
}

// view is what a node has of the gossiped state.
type view struct {
	list uint8 // of seats
	in   set   // that it has ever known as members; never fewer
	up   set   // of these: that may host and lead
	down set   // of these: Down, removed or forgotten
	gone set   // of these: forgotten
	seen set   // that were seen with exactly this view, where this node leads
}

func (v view) members() set { return v.in &^ v.down }

// ask is a renewal or a grant under way: bit r-1 is one with r ticks of the owner's clock left.
type ask uint8

// owner is one node's part as the owner of the shard.
type owner struct {
	fence uint8 // 0: it does not own it
	top   uint8 // the highest fence it has had
	until [nodes]uint8
	asks  [nodes]ask
	got   [nodes]ask   // grants under way
	under [nodes]uint8 // the list that the granter held
}

// seat is one node's part as the holder of a seat.
type seat struct {
	promise [nodes]uint8
	revoked set        // that its view does not show: only without a rule
	cold    uint8      // ticks until a new holder speaks
	over    [lists]set // it has said that the tenure of these is over, under each list
	others  [lists]set // which members it named beside that, when it first spoke to the newest seeker; 0: it has not
}

// reign is one node's part as a coordinator.
type reign struct {
	phase    uint8 // notYet, asking, ready, superseded
	reported set
	home     uint8
	fence    uint8 // of home; 0: there is none
	epoch    uint8
	rests    [epochs]set // what an order rests on: those that are Down
}

// Phases of a reign.
const (
	notYet uint8 = iota
	asking
	ready
	superseded
)

// state is everything.
type state struct {
	alive, fast set // fast: clocks that are a tick ahead
	farewells   set // of those that have given up everything, and said so
	written     uint8
	list        [lists]seatList
	view        [nodes]view
	own         [nodes]owner
	seat        [nodes]seat
	reign       [nodes]reign
	promised    [nodes]uint8        // the highest term that each has reported to
	orders      [nodes][nodes]uint8 // orders[x][b]: a bit for each epoch in which b gave the shard to x
	highest     uint8               // fence under which it was handled

	crashes, mistakes, writes, refounds, reigns, prunes uint8
}

// holders returns the holders of the seats of a list.
func (c *compiled) holders(s *state, list uint8) (h set) {
	for _, x := range s.list[list].holder[:c.seats] {
		if x != nobody {
			h |= only(int(x))
		}
	}
	return h
}

// newer reports whether list a replaces list b.
func (c *compiled) newer(s *state, a, b uint8) bool {
	x, y := &s.list[a], &s.list[b]
	return x.number > y.number || x.number == y.number && c.keeps(lowerWriter) && x.writer < y.writer
}

// left returns for how many ticks node x may handle still.
func (c *compiled) left(s *state, x int) uint8 {
	from, need := c.holders(s, s.view[x].list), c.quorum
	if !c.keeps(namedHoldersOnly) {
		from = 255
	}
	if !c.keeps(quorumOfGrants) {
		need = 1
	}
	for t := c.grant; t > 0; t-- {
		k := 0
		for g := range c.n {
			if from.has(g) && s.own[x].until[g] >= t {
				k++
			}
		}
		if k >= need {
			return t
		}
	}
	return 0
}

// handles reports whether node x may handle messages of the shard.
func (c *compiled) handles(s *state, x int) bool {
	if !s.alive.has(x) || s.own[x].fence == 0 {
		return false
	}
	return c.left(s, x) > 0 || !c.keeps(looksEachBatch) && s.own[x].until != [nodes]uint8{}
}

// ended reports whether coordinator b has proof that the tenure of x is over for good.
func (c *compiled) ended(s *state, b, x int) bool {
	v := &s.view[b]
	if s.farewells.has(x) || !c.keeps(wordsOfTheDown) && v.down.has(x) {
		return true
	}
	need, k := c.quorum, 0
	if !c.keeps(quorumOfWords) {
		need = 1
	}
	for place := range c.seats {
		if c.placeSays(s, b, place, func(list uint8, h int) bool { return s.seat[h].over[list].has(x) }) {
			k++
		}
	}
	return k >= need
}

// placeSays reports whether coordinator b counts a word of a seat: of the one that holds it in the list of b, or,
// without that rule, of any that ever did.
func (c *compiled) placeSays(s *state, b, place int, says func(list uint8, h int) bool) bool {
	v := &s.view[b]
	for m := range s.written {
		h := s.list[m].holder[place]
		counts := !c.keeps(sameList) // any word of any holder
		if m == v.list && h != nobody {
			counts = !c.keeps(wordsOfMembers) || !v.down.has(int(h))
		}
		if h != nobody && counts && says(m, int(h)) {
			return true
		}
	}
	return false
}

// accounted reports whether coordinator b may begin to allocate: everybody that it knows, and that a quorum of seats
// names, has reported or is over.
func (c *compiled) accounted(s *state, b int) bool {
	v := &s.view[b]
	done := s.reign[b].reported
	for x := range c.n {
		if !done.has(x) && c.ended(s, b, x) {
			done |= only(x)
		}
	}
	known := v.in &^ v.gone
	if !c.keeps(joinersReport) {
		known &= v.up | v.down
	}
	if !c.keeps(everybodyReports) {
		return (known & done).count() > known.count()/2
	}
	if !known.within(done) {
		return false
	}
	if !c.keeps(wordsNameOthers) {
		return true
	}
	k := 0
	for place := range c.seats {
		if c.placeSays(s, b, place, func(list uint8, h int) bool {
			return s.seat[h].others[list] != 0 && s.seat[h].others[list].within(done)
		}) {
			k++
		}
	}
	return k >= c.quorum
}
