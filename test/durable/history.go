// Histories of registers, and their judge: porcupine.

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
	Plain    bool  // a read that was not committed
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

// judgement is what porcupine says of the registers.
type judgement struct {
	Steps       int  `json:"steps"`
	Unknown     int  `json:"unknown"` // writes of unknown outcome
	Registers   int  `json:"registers"`
	Violations  int  `json:"violations"`   // registers with a history that is not linearizable
	Undecided   int  `json:"undecided"`    // registers that porcupine could not decide in time
	PlainStale  int  `json:"plain_stale"`  // registers that are not when plain reads count too: docs/durable.md allows it
	PlainSteps  int  `json:"plain_steps"`  // plain reads
	Judged      bool `json:"linearizable"` // no violation, and all decided
	violatingAt []string
}

// judgeTime bounds the search in one register.
const judgeTime = time.Minute

// judge judges the registers of a run.
func judge(steps []step) (j judgement) {
	by := map[string][]step{}
	for _, s := range steps {
		by[s.Register] = append(by[s.Register], s)
		switch {
		case s.Plain:
			j.PlainSteps++
		case s.Write != 0 && s.Outcome == unknown:
			j.Unknown++
		}
	}
	j.Steps, j.Registers = len(steps), len(by)
	for name, list := range by { // sums
		switch porcupine.CheckOperationsTimeout(registerModel, operations(list, false), judgeTime) {
		case porcupine.Illegal:
			j.Violations++
			j.violatingAt = append(j.violatingAt, name)
		case porcupine.Unknown:
			j.Undecided++
		case porcupine.Ok:
			if porcupine.CheckOperationsTimeout(registerModel, operations(list, true), judgeTime) == porcupine.Illegal {
				j.PlainStale++
			}
		}
	}
	j.Judged = j.Violations+j.Undecided == 0
	return j
}

// operations returns the history of one register for porcupine. A read without an answer says nothing. A write of
// unknown outcome with a value that nobody has read may be left out: if the others can be put in order with it, they
// can without it. One with a value that was read had its effect before the first read of it returned.
func operations(steps []step, plain bool) (list []porcupine.Operation) {
	first := map[int64]time.Duration{} // by value: when the first read of it had returned
	for _, s := range steps {
		if s.Write != 0 || s.Outcome != done || s.Plain && !plain {
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
			if s.Outcome != done || s.Plain && !plain {
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
