// Judge: whether the history of a register can be put in order, by porcupine; and what a set of marks must hold.

package main

import (
	"math"
	"time"

	"github.com/anishathalye/porcupine"
)

// step is one access of a register by one caller. Values that are written are unique.
type step struct {
	Register string
	Caller   int
	Write    int64 // zero: a read
	Read     int64 // what a read returned
	From, To time.Duration
	Outcome  outcome
}

// registerModel is one register, which begins with 0.
var registerModel = porcupine.Model{
	Init: func() any { return int64(0) },
	Step: func(state, input, output any) (bool, any) {
		if w := input.(int64); w != 0 {
			return true, w
		}
		return output.(int64) == state.(int64), state
	},
}

// judgement is what porcupine says of registers.
type judgement struct {
	Registers  int  `json:"registers"`
	Steps      int  `json:"steps"`
	Unknown    int  `json:"unknown"`      // writes of unknown outcome
	Violations int  `json:"violations"`   // registers with a history that is not linearizable
	Undecided  int  `json:"undecided"`    // that porcupine could not decide in time
	Judged     bool `json:"linearizable"` // no violation, and all decided
	violating  []string
}

// judgeTime bounds the search in one register.
const judgeTime = 20 * time.Second

// judge judges registers.
func judge(steps []step) (j judgement) {
	by := map[string][]step{}
	for _, s := range steps {
		by[s.Register] = append(by[s.Register], s)
		if s.Write != 0 && s.Outcome == unknown {
			j.Unknown++
		}
	}
	j.Steps, j.Registers = len(steps), len(by)
	for name, list := range by { // sums
		switch porcupine.CheckOperationsTimeout(registerModel, operations(list), judgeTime) {
		case porcupine.Illegal:
			j.Violations++
			j.violating = append(j.violating, name)
		case porcupine.Unknown:
			j.Undecided++
		}
	}
	j.Judged = j.Violations+j.Undecided == 0
	return j
}

// operations returns the history of one register for porcupine. A read without an answer says nothing. A write of
// unknown outcome with a value that nobody has read may be left out: if the others can be put in order with it, they
// can without it. One with a value that was read had its effect before the first read of it returned.
func operations(steps []step) (list []porcupine.Operation) {
	first := map[int64]time.Duration{} // by value: when the first read of it had returned
	for _, s := range steps {
		if s.Write != 0 || s.Outcome != done {
			continue
		}
		if at, read := first[s.Read]; !read || s.To < at {
			first[s.Read] = s.To
		}
	}
	for _, s := range steps {
		o := porcupine.Operation{ClientId: s.Caller, Input: s.Write, Output: s.Read, Call: int64(s.From), Return: int64(s.To)}
		switch at, read := first[s.Write]; {
		case s.Write == 0:
			if s.Outcome != done {
				continue
			}
		case s.Outcome == unknown:
			if !read {
				continue
			}
			o.Return = int64(at)
			if o.Return < o.Call { // it was read before it was written: nothing can be put in order
				o.Return = math.MaxInt64
			}
		case s.Outcome != done: // if its value was read all the same, nobody has written it
			continue
		}
		list = append(list, o)
	}
	return list
}

// add is a mark that was added to a set of siblings.
type add struct {
	Key  string
	Mark int64
	To   time.Duration // when it was acknowledged
}

// look is a read of a set.
type look struct {
	Key   string
	Marks map[int64]bool
	From  time.Duration
}

// stale returns how many reads that began behind an acknowledgement do not have the mark, and which marks the last read
// of a set does not have.
func stale(adds []add, looks []look, last map[string]map[int64]bool) (staleReads int, lost []add) {
	by := map[string][]add{}
	for _, a := range adds {
		by[a.Key] = append(by[a.Key], a)
		if marks, read := last[a.Key]; read && !marks[a.Mark] {
			lost = append(lost, a)
		}
	}
	for _, l := range looks {
		for _, a := range by[l.Key] {
			if a.To < l.From && !l.Marks[a.Mark] {
				staleReads++
				break
			}
		}
	}
	return staleReads, lost
}
