// Failing: which seeds of a storm broke a promise, and which rules, beyond those that are told in full.

package storm

import "github.com/kith-io/kith/internal/sim/check"

// MaxFailingSeeds bounds how many failing seeds a storm lists by number.
const MaxFailingSeeds = 200

// Failing is what a storm says of all seeds that broke a promise.
type Failing struct {
	Failures []Failure `json:"failures,omitempty"` // the first ten, in full

	FailingSeeds int            `json:"failing_seeds"`           // how many
	SeedsFailing []uint64       `json:"seeds_failing,omitempty"` // the first MaxFailingSeeds of them, in order
	Rules        map[string]int `json:"rules,omitempty"`         // in how many of them each rule was broken
}

// Failure is one seed that broke a promise.
type Failure struct {
	Seed       uint64            `json:"seed"`
	Options    string            `json:"options"` // what the seed decided
	Violations []check.Violation `json:"violations"`
	Replay     string            `json:"replay"` // the command that runs it again
	Trace      string            `json:"trace"`  // the file with its trace
}

// add counts a seed, if it broke a rule.
func (f *Failing) add(seed uint64, list []check.Violation) {
	if len(list) == 0 {
		return
	}
	f.FailingSeeds++
	if len(f.SeedsFailing) < MaxFailingSeeds {
		f.SeedsFailing = append(f.SeedsFailing, seed)
	}
	if f.Rules == nil {
		f.Rules = map[string]int{}
	}
	seen := map[string]bool{}
	for _, v := range list {
		if !seen[v.Rule] {
			seen[v.Rule] = true
			f.Rules[v.Rule]++
		}
	}
}
