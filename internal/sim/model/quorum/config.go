// What a run looks at, and the rules that can be switched off.

// Package quorum holds the protocol of fenced records on the disks of N members against every order of events: a shard
// or two of one replica group, up to six replicas, up to four owners with rising fences, batches, changes of set,
// copies between replicas, reads, messages that are late, doubled and lost, crashes, and disks that go. It is a model
// of what docs/contributing/quorum.md describes, and shares nothing with any code.
//
// `make model` runs it, behind the model of messages between durable entities.
package quorum

import "github.com/kith-io/kith/internal/sim/model/explore"

// Config bounds one run. The zero value of a bound forbids what it bounds.
type Config struct {
	Name    string
	Set     string  // set 1: one digit for each replica, from 1 to 6; empty is 123
	Shards  []Shard // of one replica group: they share disks and nothing else; one or two
	Crashes uint8   // with the disk, torn writes, and losses of power of all, together
	Losses  uint8   // of disks
	Reads   bool    // owners answer reads
	Release bool    // replicas that are no longer members are wiped
	Leaves  bool    // so are those that leave, which know what the other disks say, and not what was decided
	Copies  bool    // replicas give one another what they hold
	Near    bool    // claims go to members of sets that the claimer has heard of, histories to members of their sets
	Live    bool    // while majorities live, the newest owner must have a way to serve and to commit
	States  int     // at most, where the run is to stop before what the caller allows; 0 for no other bound

	Broken Rule // switched off
}

// Shard bounds what the owners of one shard do. Lists are one for each owner, with slashes in between.
type Shard struct {
	Owners  int    // with fences 1, 2, ...; at most 4, of which the fourth changes no set
	Batches string // that each owner may commit, a digit each; empty is one each
	Wishes  string // the sets that each owner may change to, in order: "124,145/123"
	Tables  string // the sets that each owner's table names, where the disks are not asked
	Done    bool   // its first owner, alone, has done all that it may when the run begins
}

// Rule is a set of rules that are switched off.
type Rule uint32

// The rules, in the order of docs/contributing/quorum.md.
const (
	rewriteFirst Rule = 1 << iota
	newFence
	promiseOnDisk
	batchPromises
	noGap
	sameFenceBefore
	beyondGoes
	wholeHistory
	oneUnderWay
	besideTheState
	oldMajority
	newMajority
	setsOfDisks
	proposedIsNone
	answersTellSets
	newcomerCatchesUp
	diskIsIdentity
	lateRelease
	everyShardReleases
	leaveIsDecided
	ownSets
	fenceFirst
	copyRefused
	copyStamped
	readsAsk
	foundedOnce
	lastRule // no rule: their number
)

// rules are the names of the rules, and the smallest runs that need them.
var rules = explore.Rules[Rule, Config]{
	explore.Need(rewriteFirst, "rewrite-first", Config{Shards: one(3, "", "")}),
	explore.Need(newFence, "new-fence", Config{Shards: one(4, "1/1/0/0", "")}),
	explore.Need(promiseOnDisk, "promise-on-disk", Config{Shards: one(2, "", ""), Crashes: 1}),
	explore.Need(batchPromises, "batch-promises", Config{Shards: one(3, "", "")}),
	explore.Need(noGap, "no-gap", Config{Shards: one(3, "", "")}),
	explore.Need(sameFenceBefore, "same-fence-before", Config{Shards: one(3, "1/2/1", "")}),
	explore.Need(beyondGoes, "beyond-goes", Config{Shards: one(3, "", "")}),
	explore.Need(wholeHistory, "whole-history", Config{Shards: one(2, "2/1", ""), Losses: 1, Live: true}),
	explore.Need(oneUnderWay, "one-under-way", Config{Shards: one(2, "2/2", "")}),
	explore.Need(besideTheState, "beside-the-state", Config{Shards: one(3, "", ""), Crashes: 1}),
	explore.Need(oldMajority, "old-majority", Config{Shards: one(2, "", "124/")}),
	explore.Need(newMajority, "new-majority", Config{Shards: one(2, "", "124/")}),
	explore.Need(setsOfDisks, "sets-of-disks", Config{Near: true,
		Shards: []Shard{{Owners: 3, Batches: "0/0/0", Wishes: "124/145/", Tables: "123,124/124,145/123,123"}}}),
	explore.Need(proposedIsNone, "proposed-is-none", Config{Near: true, Shards: one(3, "0/1/0", "124//")}),
	explore.Need(answersTellSets, "answers-tell-sets", Config{Shards: one(2, "", "124/")}),
	explore.Need(newcomerCatchesUp, "newcomer-catches-up", Config{Shards: one(2, "", "124/")}),
	explore.Need(diskIsIdentity, "disk-is-identity", Config{Shards: one(2, "", ""), Losses: 1}),
	explore.Need(lateRelease, "late-release", Config{Shards: one(2, "", "124/"), Losses: 1, Live: true, Release: true}),
	explore.Need(everyShardReleases, "every-shard-releases", Config{Near: true, Losses: 1, Live: true, Release: true,
		Shards: []Shard{{Owners: 1, Wishes: "124", Done: true}, {Owners: 2, Batches: "0/1", Wishes: "124/"}}}),
	explore.Need(leaveIsDecided, "leave-is-decided", Config{Near: true, Losses: 1, Live: true, Leaves: true,
		Shards: one(2, "1/1", "124/")}),
	explore.Need(ownSets, "own-sets", Config{Set: "1",
		Shards: []Shard{{Owners: 1, Wishes: "2", Done: true}, {Owners: 2, Batches: "1/0"}}}),
	explore.Need(fenceFirst, "fence-first", Config{Shards: one(2, "", "124/"), Losses: 1, Live: true}),
	explore.Need(copyRefused, "copy-refused", Config{Shards: one(2, "", ""), Copies: true}),
	explore.Need(copyStamped, "copy-stamped", Config{Shards: one(3, "1/1/0", ""), Copies: true}),
	explore.Need(readsAsk, "reads-ask", Config{Shards: one(2, "", ""), Reads: true}),
	explore.Need(foundedOnce, "founded-once", Config{Shards: one(2, "", "12/345")}),
}

// one returns the bounds of a single shard.
func one(owners int, batches, wishes string) []Shard {
	return []Shard{{Owners: owners, Batches: batches, Wishes: wishes}}
}

// Rules returns the names of all rules.
func Rules() []string { return rules.Names() }

// RuleOf returns the rule of that name.
func RuleOf(name string) (Rule, bool) { return rules.Of(name) }

// String returns the names of the rules in the set, with commas in between.
func (r Rule) String() string { return rules.Text(r) }
