// The bill: where the time goes between the loss of an owner and the first answers of its entities, from journals and
// from the log records of the survivors. Pure but for reading them.

package chaos

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// stepName is a step on the way from a loss to the next answer.
type stepName string

// The steps, in their order. Of several victims, or several types, the last one counts: until then something waits.
const (
	stepUnreachable stepName = "unreachable" // the first survivor holds the victim unreachable
	stepDecided     stepName = "decided"     // the first resolver has decided
	stepDowned      stepName = "downed"      // the first survivor sees it Down
	stepRemoved     stepName = "removed"     // the first survivor sees it removed
	stepStarted     stepName = "coordinator_started"
	stepReady       stepName = "coordinator_ready" // knows what is owned, and that nothing lost can still be served
	stepAllocated   stepName = "allocated"         // median of the shards that get a next home, but by a move
	stepAnswered    stepName = "answered"          // median of the entities
)

var stepNames = []stepName{stepUnreachable, stepDecided, stepDowned, stepRemoved, stepStarted, stepReady, stepAllocated,
	stepAnswered}

// logPattern is how the log of a node reports a step: a record with that message for each of the things that of picks
// out of the rest of the line; a member is one of the victims.
type logPattern struct {
	step    stepName
	message string
	of      *regexp.Regexp
	member  bool
}

var signs = []logPattern{
	{stepUnreachable, "member unreachable", regexp.MustCompile(` member=([^#\s]+)#`), true},
	{stepDecided, "resolver decided", regexp.MustCompile(`()`), false},
	{stepDowned, "member downed", regexp.MustCompile(` member=([^#\s]+)#`), true},
	{stepRemoved, "member removed", regexp.MustCompile(` member=([^#\s]+)#`), true},
	{stepStarted, "coordinator started", regexp.MustCompile(` type=(\S+)`), false},
	{stepReady, "coordinator ready", regexp.MustCompile(` type=(\S+)`), false},
	{stepAllocated, "shard allocated", regexp.MustCompile(` type=(\S+ shard=\d+)`), false},
	{stepMoves, "move began", regexp.MustCompile(` type=(\S+ shard=\d+)`), false},
}

// stepMoves is no step of a bill: its shard has a home that lives, and gets the next one for balance.
const stepMoves stepName = "moves"

// breakdown is when each step came, since the loss. What did not come is absent.
type breakdown map[stepName]time.Duration

// makeBill reads the steps off records of the survivors' logs. victims are addresses, at is the time of the loss.
func makeBill(records []timed, victims []string, at time.Duration) breakdown {
	first := map[stepName]map[string]time.Duration{}
	for _, r := range records {
		if r.at < at {
			continue
		}
		for _, s := range signs {
			if !strings.Contains(r.text, `"`+s.message+`"`) {
				continue
			}
			m := s.of.FindStringSubmatch(r.text)
			if m == nil || s.member && !slices.Contains(victims, m[1]) {
				continue
			}
			if first[s.step] == nil {
				first[s.step] = map[string]time.Duration{}
			}
			if was, known := first[s.step][m[1]]; !known || r.at-at < was {
				first[s.step][m[1]] = r.at - at
			}
		}
	}
	for s, began := range first[stepMoves] { // each looks at its own shard alone
		if d, known := first[stepAllocated][s]; known && began <= d {
			delete(first[stepAllocated], s)
		}
	}
	delete(first, stepMoves)
	b := breakdown{}
	for step, each := range first {
		if len(each) == 0 {
			continue
		}
		var all []time.Duration
		for _, d := range each {
			all = append(all, d)
		}
		if b[step] = slices.Max(all); step == stepAllocated {
			b[step] = median(all)
		}
	}
	return b
}

// survivorsLogs returns the records of all processes in slots that were not hit.
func survivorsLogs(dir string, hit []int) (all []timed, err error) {
	paths, err := filepath.Glob(filepath.Join(dir, "n*-*.log"))
	if err != nil {
		return nil, err
	}
	for _, path := range paths {
		who, _, _ := strings.Cut(filepath.Base(path), "-")
		if slices.ContainsFunc(hit, func(s int) bool { return name(s) == who }) {
			continue
		}
		records, err := readLog(path)
		if err != nil {
			return nil, err
		}
		all = append(all, records...)
	}
	return all, nil
}

// ownedBy returns the entities that were handled last before a moment by one of these processes.
func (x *exclusive) ownedBy(processes []uint32, at time.Duration) (all []uint16) {
	for target, spans := range x.spans { // sorted below: the order does not show
		for i := len(spans) - 1; i >= 0; i-- {
			if s := &spans[i]; s.first <= at {
				if slices.Contains(processes, s.process) {
					all = append(all, target)
				}
				break
			}
		}
	}
	slices.Sort(all)
	return all
}

// firstAnswers returns for each entity that these processes owned when they were lost how long it took until another
// caller had an answer from it, by another process than these. An entity without an answer is in none.
func (b *journalSet) firstAnswers(gone []uint32, at time.Duration) (took map[uint16]time.Duration, none []uint16) {
	b.mu.Lock()
	defer b.mu.Unlock()
	type asked struct {
		sender uint32
		number uint64
	}
	owned := b.rule.ownedBy(gone, at)
	handledBy := map[asked]bool{} // by a next owner
	b.lives(gone, func(_ uint32, v *volume) {
		for n := range v.handled.begun() {
			h := handledOf(v.handled.get(n))
			if _, was := slices.BinarySearch(owned, h.target); was && h.ask && h.from > at {
				handledBy[asked{h.sender, h.number}] = true
			}
		}
	})
	took = map[uint16]time.Duration{}
	b.lives(gone, func(sender uint32, v *volume) {
		for n := range v.sent.begun() {
			s := sentOf(v.sent.get(n))
			if s.fate != fateAnswered || s.until <= at || !handledBy[asked{sender, uint64(n)}] {
				continue
			}
			if was, known := took[s.target]; !known || s.until-at < was {
				took[s.target] = s.until - at
			}
		}
	})
	for _, target := range owned {
		if _, some := took[target]; !some {
			none = append(none, target)
		}
	}
	return took, none
}

// lives calls f for the journals of all processes but these.
func (b *journalSet) lives(gone []uint32, f func(sender uint32, v *volume)) {
	for sender, v := range b.volumes { // what is made of them is a set or a minimum: the order does not show
		if !slices.Contains(gone, sender) {
			f(sender, v)
		}
	}
}

// gap is how one entity changed sides: when its last handler returned where it was, and when the first one began
// elsewhere.
type gap struct {
	target           uint16
	stopped, started time.Duration
}

// gaps returns the gap of each entity that these processes owned at a moment, and the entities that nobody else has
// handled since. A handler that its process took along has ended with it.
func (b *journalSet) gaps(gone []uint32, at time.Duration) (all []gap, none []uint16) {
	b.mu.Lock()
	defer b.mu.Unlock()
	last, first := map[uint16]time.Duration{}, map[uint16]time.Duration{}
	for sender, v := range b.volumes { // minima and maxima: the order does not show
		v.life.mu.Lock()
		end := v.life.end
		v.life.mu.Unlock()
		for n := range v.handled.begun() {
			h := handledOf(v.handled.get(n))
			switch {
			case h.step == stepNone:
			case slices.Contains(gone, sender):
				if h.step == stepBegun {
					h.until = end
				}
				last[h.target] = max(last[h.target], h.until)
			case h.from > at:
				if was, known := first[h.target]; !known || h.from < was {
					first[h.target] = h.from
				}
			}
		}
	}
	for _, target := range b.rule.ownedBy(gone, at) {
		if _, some := first[target]; some {
			all = append(all, gap{target, last[target], first[target]})
		} else {
			none = append(none, target)
		}
	}
	return all, none
}
