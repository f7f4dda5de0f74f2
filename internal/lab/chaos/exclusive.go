// The rule of one owner, judged by one clock: no two processes handle an entity under one fence or at one time, and no
// handling begins under a fence after one began under a higher one. Pure.

package chaos

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// handling is one call of a handler, and the process in which it was made.
type handling struct {
	handled
	process uint32
}

// pause is a time in which a process stood still.
type pause struct {
	process     uint32
	from, until time.Duration // until is zero while it lasts
}

// span is what is known of one fence of one entity.
type span struct {
	high, low   uint64
	process     uint32
	first, last time.Duration // begin of the first and of the last handling
}

// exclusive judges handlings as they become known.
type exclusive struct {
	spans   map[uint16][]span // by entity, in the order of the fences
	order   map[lineKey]lineEnd
	pauses  []pause
	twice   map[uint32][]bool // by sender and number: was handled
	verdict verdicts
}

// lineKey is one line of messages that keeps its order: of one sender to one entity, tells and asks apart.
type lineKey struct {
	sender uint32
	target uint16
	ask    bool
}

// lineEnd is the last message of a line that was handled.
type lineEnd struct {
	number uint64
	from   time.Duration
}

// verdicts counts what was found.
type verdicts struct {
	Double    int // handlings of one entity by two processes under one fence, or at one time
	Back      int // handlings that began under a fence that was overtaken
	Overrun   int // the same, of a process that had just stood still, where no library can help: stores refuse it
	Woke      int // of these, what began when it had stood still
	Twice     int // messages that were handled again
	Reordered int
	Fenced    int // handlings with a write that the store refused
	Handled   int
}

func newExclusive() *exclusive {
	return &exclusive{spans: map[uint16][]span{}, order: map[lineKey]lineEnd{}, twice: map[uint32][]bool{}}
}

// graceOfWaking is how long after it has stood still a process may go on with what it had in hand: the data plane looks
// at its own age once a batch, and a flag of its own stops the rest of one within a few milliseconds that it runs.
const graceOfWaking = 100 * time.Millisecond

// longPause is how long a process stands still at least for somebody else to become the owner meanwhile.
const longPause = 5 * time.Second

// compare orders fences.
func (s *span) compare(high, low uint64) int {
	return cmp.Or(cmp.Compare(s.high, high), cmp.Compare(s.low, low))
}

// add judges handlings and returns a line for each that breaks the rule.
func (x *exclusive) add(all []handling) (lines []string) {
	slices.SortStableFunc(all, func(a, b handling) int { return cmp.Compare(a.from, b.from) })
	for i := range all {
		if line := x.note(&all[i]); line != "" {
			lines = append(lines, line)
		}
		x.line(&all[i])
	}
	for i := range all {
		if line := x.judge(&all[i]); line != "" {
			lines = append(lines, line)
		}
	}
	return lines
}

// note adds a handling to the span of its fence.
func (x *exclusive) note(h *handling) string {
	spans := x.spans[h.target]
	at, found := slices.BinarySearchFunc(spans, h, func(s span, h *handling) int { return s.compare(h.birth, h.low) })
	if !found {
		s := span{h.birth, h.low, h.process, h.from, h.from}
		x.spans[h.target] = slices.Insert(spans, at, s)
		return ""
	}
	s := &spans[at]
	s.first, s.last = min(s.first, h.from), max(s.last, h.from)
	if s.process == h.process {
		return ""
	}
	x.verdict.Double++
	return fmt.Sprintf("entity %d: processes %d and %d handle it under one fence", h.target, s.process, h.process)
}

// judge looks whether a higher fence was there before a handling began, or before it was over.
func (x *exclusive) judge(h *handling) string {
	for _, s := range x.spans[h.target] {
		if s.compare(h.birth, h.low) <= 0 {
			continue
		}
		switch {
		case s.first < h.from && x.woke(h.process, h.from):
			x.verdict.Overrun++
			x.verdict.Woke++
			return ""
		case s.first >= h.from && s.first < h.until && x.stood(h):
			x.verdict.Overrun++
			return ""
		case s.first < h.from:
			x.verdict.Back++
			return fmt.Sprintf("entity %d: process %d begins to handle it %v after process %d did under a higher fence",
				h.target, h.process, h.from-s.first, s.process)
		case s.first < h.until:
			x.verdict.Double++
			return fmt.Sprintf("entity %d: process %d still handles it when process %d begins to, for %v", h.target,
				h.process, s.process, h.until-s.first)
		}
	}
	return ""
}

// woke reports whether a process had just stood still for long.
func (x *exclusive) woke(process uint32, at time.Duration) bool {
	return slices.ContainsFunc(x.pauses, func(p pause) bool {
		return p.process == process && p.until-p.from >= longPause && at >= p.until && at < p.until+graceOfWaking
	})
}

// stood reports whether a process stood still during a handling.
func (x *exclusive) stood(h *handling) bool {
	return slices.ContainsFunc(x.pauses, func(p pause) bool {
		return p.process == h.process && p.from <= h.until && (p.until == 0 || p.until >= h.from)
	})
}

// line judges the order of messages, and whether one comes again.
func (x *exclusive) line(h *handling) {
	x.verdict.Handled++
	if h.step == stepFenced {
		x.verdict.Fenced++
	}
	seen := x.twice[h.sender]
	if missing := int(h.number) + 1 - len(seen); missing > 0 {
		seen = append(seen, make([]bool, missing)...)
		x.twice[h.sender] = seen
	}
	if seen[h.number] {
		x.verdict.Twice++
		return
	}
	seen[h.number] = true
	key := lineKey{h.sender, h.target, h.ask}
	end, known := x.order[key]
	if !known || h.number > end.number {
		x.order[key] = lineEnd{h.number, h.from}
	} else if h.from >= end.from { // what became known late is not out of order for that
		x.verdict.Reordered++
	}
}

// handled reports whether a message was handled.
func (x *exclusive) handled(sender uint32, number uint64) bool {
	seen := x.twice[sender]
	return number < uint64(len(seen)) && seen[number]
}

// owners returns the processes that handled an entity last before and first after a moment.
func (x *exclusive) owners(target uint16, at time.Duration) (all []uint32) {
	var before, after *span
	spans := x.spans[target]
	for i := range spans {
		s := &spans[i]
		if s.first <= at && (before == nil || s.last > before.last) {
			before = s
		}
		if s.last >= at && (after == nil || s.first < after.first) {
			after = s
		}
	}
	for _, s := range []*span{before, after} {
		if s != nil {
			all = append(all, s.process)
		}
	}
	return all
}
