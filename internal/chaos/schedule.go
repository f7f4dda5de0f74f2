// The schedule: a seed gives, for ever, rounds of faults. Pure: equal seeds give equal rounds on every machine.

package chaos

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// Kind is a kind of fault.
type Kind string

// The kinds of faults.
const (
	Kill       Kind = "kill"        // kill -9 of one, or of several one after another
	KillAll    Kind = "kill-all"    // of every process
	Pause      Kind = "pause"       // SIGSTOP, and SIGCONT after For
	Starve     Kind = "starve"      // stopped and let run by turns, so that little gets done
	Cut        Kind = "cut"         // nothing passes between two sides
	CutOneWay  Kind = "cut-one-way" // nothing passes from the victims to the others
	CutPartial Kind = "cut-partial" // nothing passes between two nodes; both hear all others
	Flap       Kind = "flap"        // a cut that comes and goes each Period
	DataCut    Kind = "data-cut"    // data connections of the victims are cut: only control flows
	ControlCut Kind = "control-cut" // control connections of the victims are cut: only data flows
	Reset      Kind = "reset"       // connections are reset right behind a chunk, PerMille of the chunks
	Loss       Kind = "loss"        // PerMille of what is sent is lost, everywhere
	Delay      Kind = "delay"       // everything takes Extra longer, everywhere
	Leave      Kind = "leave"       // one leaves gracefully and is started again
	Rolling    Kind = "rolling"     // each in turn leaves and is started again
	LeaveLate  Kind = "leave-late"  // one leaves, and its handlers take so long that the leave is over its limit
	Close      Kind = "close"       // one closes its node without leaving
)

// Kinds are all kinds, in a fixed order.
var Kinds = []Kind{Kill, KillAll, Pause, Starve, Cut, CutOneWay, CutPartial, Flap, DataCut, ControlCut, Reset, Loss,
	Delay, Leave, Rolling, LeaveLate, Close}

// Role says who the first victim of a fault is: known only when the fault comes.
type Role string

// The roles.
const (
	Owner       Role = "owner"       // hosts most shards
	Coordinator Role = "coordinator" // the oldest member
	Leader      Role = "leader"      // the leader of the view
	Seed        Role = "seed"        // the first seed
	Anybody     Role = "anybody"     // the first of Order
)

var roles = []Role{Owner, Coordinator, Leader, Seed, Anybody}

// Fault is one fault of a round.
type Fault struct {
	Kind     Kind
	At       time.Duration // after the begin of the round
	For      time.Duration // how long it lasts; zero for what is done at once
	First    Role          // who is the first victim
	Victims  int           // how many there are; zero: it concerns all alike
	Order    []int         // slots; the further victims are the first of them that are none yet
	Stagger  time.Duration // between one victim and the next
	Period   time.Duration // of flapping and starving
	PerMille int
	Extra    time.Duration
	Rest     time.Duration // the supervisor waits so long before it starts again who ends
}

// Round is what happens between two states in which all is well.
type Round struct {
	Number int
	Steady time.Duration // nothing happens for so long before it
	Faults []Fault       // in the order of At
}

// Rounds draws the rounds of a seed.
type Rounds struct {
	seed  uint64
	nodes int
	kinds []Kind
	next  int
}

// NewRounds returns the rounds of a seed for a cluster of so many nodes, at least 3. kinds restricts what is drawn;
// none means all.
func NewRounds(seed uint64, nodes int, kinds ...Kind) *Rounds {
	if len(kinds) == 0 {
		kinds = Kinds
	}
	return &Rounds{seed: seed, nodes: nodes, kinds: kinds}
}

// Next returns the next round. The n-th round depends on seed, nodes, kinds and n alone.
func (r *Rounds) Next() Round {
	r.next++
	rng := rand.New(rand.NewPCG(r.seed, uint64(r.next)))
	round := Round{Number: r.next, Steady: between(rng, 1000, 3000)}
	first := r.fault(rng, r.kinds[rng.IntN(len(r.kinds))])
	round.Faults = append(round.Faults, first)
	// One round in four has a second blow, which hits while the cluster is busy with the first.
	second := []Kind{Kill, Pause, Reset}[rng.IntN(3)]
	if rng.IntN(4) == 0 && first.Kind != Rolling && first.Kind != KillAll && contains(r.kinds, second) {
		f := r.fault(rng, second)
		f.Victims = min(f.Victims, 1)
		f.At = between(rng, 200, 12000)
		round.Faults = append(round.Faults, f)
	}
	return round
}

func contains(kinds []Kind, k Kind) bool {
	for _, have := range kinds {
		if have == k {
			return true
		}
	}
	return false
}

// between draws a duration from low to high milliseconds.
func between(rng *rand.Rand, low, high int) time.Duration {
	return time.Duration(low+rng.IntN(high-low+1)) * time.Millisecond
}

// skewed draws how long something lasts, from 1 to 40 s: short ones, ones about the time of a decision, long ones.
func skewed(rng *rand.Rand) time.Duration {
	switch rng.IntN(3) {
	case 0:
		return between(rng, 1000, 6000)
	case 1:
		return between(rng, 6000, 16000)
	}
	return between(rng, 16000, 40000)
}

// fault draws one of a kind.
func (r *Rounds) fault(rng *rand.Rand, k Kind) Fault {
	f := Fault{Kind: k, First: roles[rng.IntN(len(roles))], Order: rng.Perm(r.nodes), Victims: 1,
		Rest: between(rng, 200, 3000)}
	minority := 1 + rng.IntN((r.nodes-1)/2)
	switch k {
	case Kill:
		if rng.IntN(2) == 0 {
			f.Victims = 2
			f.Stagger = between(rng, 0, 8000)
		}
		if rng.IntN(2) == 0 { // a machine that is lost stays away, and silent
			f.Rest = between(rng, 10000, 30000)
		}
	case KillAll:
		f.Victims, f.Stagger = r.nodes, between(rng, 0, 400)
	case Pause:
		f.For = skewed(rng)
		if rng.IntN(3) == 0 {
			f.Victims = 1 + rng.IntN(r.nodes-1)
			f.Stagger = between(rng, 0, 2000)
		}
	case Starve:
		f.For, f.Period = between(rng, 8000, 25000), between(rng, 50, 400)
	case Cut, CutOneWay:
		f.For, f.Victims = skewed(rng), minority
	case CutPartial:
		f.For, f.Victims = skewed(rng), 2
	case Flap:
		f.For, f.Period, f.Victims = between(rng, 6000, 25000), between(rng, 500, 5000), minority
	case DataCut, ControlCut:
		f.For = skewed(rng)
	case Reset:
		f.For, f.PerMille, f.Victims = between(rng, 3000, 10000), 1+rng.IntN(20), 0
	case Loss:
		f.For, f.PerMille, f.Victims = between(rng, 8000, 25000), []int{10, 50, 200}[rng.IntN(3)], 0
	case Delay:
		f.For, f.Extra, f.Victims = between(rng, 8000, 20000), between(rng, 5, 150), 0
	case LeaveLate:
		f.Extra = between(rng, 1000, 20000)
	case Rolling:
		f.Victims = r.nodes
	}
	return f
}

// restBrief is how long a supervisor waits at most that starts again at once; who stays longer is away.
const restBrief = 3 * time.Second

// away reports whether it is a machine that is lost: nothing there answers, and nobody takes it for a restart.
func (f Fault) away() bool { return f.Rest > restBrief }

// String says in a line what the fault is.
func (f Fault) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s", f.Kind)
	if f.Victims > 0 && f.Kind != KillAll && f.Kind != Rolling {
		fmt.Fprintf(&b, " %s", f.First)
		if f.Victims > 1 {
			fmt.Fprintf(&b, " and %d more", f.Victims-1)
		}
	}
	apart := f.Stagger
	if f.Victims < 2 {
		apart = 0
	}
	for _, d := range []struct {
		what string
		d    time.Duration
	}{{"for", f.For}, {"apart", apart}, {"period", f.Period}, {"by", f.Extra}} {
		if d.d > 0 {
			fmt.Fprintf(&b, " %s %v", d.what, d.d)
		}
	}
	if f.away() {
		fmt.Fprintf(&b, " away for %v", f.Rest)
	}
	if f.PerMille > 0 {
		fmt.Fprintf(&b, " %d per mille", f.PerMille)
	}
	return b.String()
}

// String says in a line what the round holds.
func (r Round) String() string {
	all := make([]string, len(r.Faults))
	for i, f := range r.Faults {
		all[i] = f.String()
		if f.At > 0 {
			all[i] += fmt.Sprintf(" (after %v)", f.At)
		}
	}
	return strings.Join(all, "; ")
}

// ParseKinds reads names of kinds.
func ParseKinds(names []string) (kinds []Kind, err error) {
	for _, n := range names {
		if !contains(Kinds, Kind(n)) {
			return nil, fmt.Errorf("no fault %q; there are %v", n, Kinds)
		}
		kinds = append(kinds, Kind(n))
	}
	return kinds, nil
}

// What a fault touches, and whom it leaves untouched: whom the strategy obliges to live on.

// struck is a fault with its victims, known once it has come.
type struck struct {
	Fault
	who []int // slots, in the order in which they are hit
}

// unstableAfter is when the resolver may give everybody up because nothing stands still: 1.75 times the patience of a
// cluster of up to five members.
const unstableAfter = 12 * time.Second

// mildLoss is the loss under which no healthy member may be taken for dead; of more, nothing is demanded.
const mildLoss = 50

// harmless reports whether a fault gives nobody a reason to be downed.
func (f *struck) harmless() bool {
	switch f.Kind {
	case DataCut, Reset, Delay:
		return true
	case Loss:
		return f.PerMille <= mildLoss
	}
	return false
}

// touched reports whether a fault hits a node itself.
func (f *struck) touched(slot int) bool { return slices.Contains(f.who, slot) }

// obliged returns which of so many nodes must live through all these faults: those that none has touched, as long as
// they are the majority and nothing keeps the picture from standing still.
func obliged(faults []struck, nodes int) []int {
	var live []int
	for slot := range nodes {
		if !slices.ContainsFunc(faults, func(f struck) bool { return !f.harmless() && f.touched(slot) }) {
			live = append(live, slot)
		}
	}
	restless := slices.ContainsFunc(faults, func(f struck) bool {
		return f.Kind == Loss && f.PerMille > mildLoss || f.Kind == Flap && f.For > unstableAfter*3/4
	})
	// Who leaves is counted no more by those who stay, so one that leaves takes nobody's majority.
	gone := 0
	for slot := range nodes {
		if !slices.Contains(live, slot) && slices.ContainsFunc(faults, func(f struck) bool {
			return f.Kind != Rolling && f.Kind != Leave && f.Kind != LeaveLate && !f.harmless() && f.touched(slot)
		}) {
			gone++
		}
	}
	if restless || 2*(nodes-gone) <= nodes {
		return nil
	}
	return live
}

// explains reports whether a fault may have taken a message from one node to another: it touched sender or owner, or
// the way between them.
func (f *struck) explains(from, to int) bool {
	if f.Victims == 0 {
		return true // resets, loss, delay: every way
	}
	return f.touched(from) || f.touched(to)
}
