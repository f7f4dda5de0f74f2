// The account: accepted = handled + reported + lost, and which losses a fault explains. Pure.

package chaos

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// past is a round as it went.
type past struct {
	Round
	faults     []struck
	wronged    []struck      // nodes that were ended without a reason: that explains losses, and obliges nobody less
	from       time.Duration // when the first fault came
	until      time.Duration // when all was well again
	gap        time.Duration // the longest time without an answer
	healed     time.Duration // from the end of the last fault until all was well
	came       int           // faults that came: a carrier may leave one out
	measured   bool          // gap and healed are known
	unwell     bool          // it did not come right within the bound
	whole      bool          // everything was killed to begin anew
	excused    bool          // the machine itself stood still
	accepted   int           // tells and asks that began in it
	lost       int           // of those
	unexplains int           // of those, without an explanation
}

// message is an accepted one that nobody has handled.
type message struct {
	sender uint32
	target uint16
	typ    uint8
	shard  uint32
	at     time.Duration
	why    int // index of the round that explains it, -1 without one
	owners []uint32
	cause  cause
}

// cause is why a message that was not handled was not reported: a fact that the supervisor knows.
type cause string

// The causes. A loss without one is not explained, and neither is one by faults that all sides have lived through.
const (
	senderEnded   cause = "sender-ended"   // the process that sent it ended soon after
	receiverEnded cause = "receiver-ended" // a process that owned its entity then ended soon after
	onTheWay      cause = "on-the-way"     // all sides live, and a fault touched them or the way between
)

// endTime is how soon a process ends at the latest that takes a message with it: one may be parked for so long.
const endTime = 90 * time.Second

// sums is the account of a run.
type sums struct {
	Accepted, Handled, Reported, Lost, Unexplained int
	By                                             map[cause]int
	Over                                           int // reported, but nothing of the kind is missing
}

// The margins of a round: a message may have been on its way when the fault came, and the last cut-off sender's
// messages fail after all is well.
const (
	marginBefore = 3 * time.Second
	marginAfter  = 2 * time.Second
)

// explain returns the round with faults that touched a missing message's sender, its owners or the way between, or -1.
func explain(rounds []past, from int, owners []int, at time.Duration) int {
	for i := range rounds {
		r := &rounds[i]
		if at < r.from-marginBefore || r.until > 0 && at > r.until+marginAfter {
			continue
		}
		for _, f := range slices.Concat(r.faults, r.wronged) {
			if r.whole || len(owners) == 0 && f.explains(from, from) ||
				slices.ContainsFunc(owners, func(to int) bool { return f.explains(from, to) }) {
				return i
			}
		}
	}
	return -1
}

// groupKey is how Config.Undelivered reports messages: by type and shard, in one process. there is whether they were
// dropped there, from whatever sender.
type groupKey struct {
	sender uint32
	typ    uint8
	shard  uint32
	there  bool
}

// noShard is the shard of a report of several, noType the type of one of several types: what was lost in flight.
const (
	noShard = math.MaxUint32
	noType  = math.MaxUint8
)

// keys are the reports that may be of a message, the likeliest first: those of its sender, of its shard or of several,
// and those of the processes that owned its entity.
func (m *message) keys() []groupKey {
	all := []groupKey{{m.sender, m.typ, m.shard, false}, {m.sender, m.typ, m.shard, true},
		{m.sender, m.typ, noShard, false}, {m.sender, m.typ, noShard, true},
		{m.sender, noType, noShard, false}}
	for _, p := range m.owners {
		if p != m.sender {
			all = append(all, groupKey{p, m.typ, m.shard, true})
		}
	}
	return all
}

// matchReported sets what was reported against what is missing. A report says how many of a shard, not which: it is
// taken for those first that nothing else explains.
func matchReported(missing []message, reported map[groupKey]int) (lost []message, taken int) {
	missing = slices.Clone(missing)
	slices.SortStableFunc(missing, func(a, b message) int { return cmp.Compare(a.rank(), b.rank()) })
	left := map[groupKey]int{}
	for k, n := range reported {
		left[k] = n
	}
	for _, m := range missing {
		keys := m.keys()
		i := slices.IndexFunc(keys, func(k groupKey) bool { return left[k] > 0 })
		if i < 0 {
			lost = append(lost, m)
			continue
		}
		left[keys[i]]--
		taken++
	}
	return lost, taken
}

// rank puts what nothing explains first, and then what all sides have lived through.
func (m *message) rank() int {
	return slices.Index([]cause{"", onTheWay, receiverEnded, senderEnded}, m.cause)
}

// longest returns the longest time between two answers of a series that touches from until, the time until the first
// answer after and since the last before included, and when it began. A series that is empty there has none for all
// of it.
func longest(answers []time.Duration, from, until time.Duration) (began, gap time.Duration) {
	answers = slices.Clone(answers)
	slices.Sort(answers)
	before := from
	for _, at := range append(answers, max(until, from)) {
		if at > from && at-before > gap {
			began, gap = before, at-before
		}
		if at >= until {
			break
		}
		before = at
	}
	return began, gap
}

// median returns the middle value, the lower one of two; zero of nothing.
func median(all []time.Duration) time.Duration {
	if len(all) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(all))
	return sorted[(len(sorted)-1)/2]
}
