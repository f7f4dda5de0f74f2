// The schedule: a seed gives, for ever, rounds of faults. Pure: equal seeds give equal rounds on every machine.

package chaos

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/kith-io/kith/internal/lab/bootruns"
)

// Rounds draws the rounds of a seed.
type Rounds struct {
	seed  uint64
	nodes int
	kinds []Kind
	all   bool // nobody has restricted them
	store bool // nodes hold sessions: their store fails too
	next  int
}

// NewRounds returns the rounds of a seed for a cluster of so many nodes, at least 3. kinds restricts what is drawn;
// none means all.
func NewRounds(seed uint64, nodes int, kinds ...Kind) *Rounds {
	all := len(kinds) == 0
	if all {
		kinds = Kinds
	}
	return &Rounds{seed: seed, nodes: nodes, kinds: kinds, all: all}
}

// WithStore has the store of sessions fail beside other faults, which stay what they are.
func (r *Rounds) WithStore() *Rounds {
	r.store = true
	return r
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
	if rng.IntN(4) == 0 && !slices.Contains([]Kind{Rolling, KillAll, Move}, first.Kind) && contains(r.kinds, second) {
		f := r.fault(rng, second)
		f.Victims = min(f.Victims, 1)
		f.At = between(rng, 200, 12000)
		round.Faults = append(round.Faults, f)
	}
	if first.Kind == SlowLink { // what is planned hands over states meanwhile
		f := r.fault(rng, Leave)
		f.At = between(rng, 500, 3000)
		round.Faults = append(round.Faults[:1], f)
	}
	if first.Kind == DNS { // while it is in trouble, connections have to be made anew
		f := r.fault(rng, []Kind{Reset, Kill, Leave}[rng.IntN(3)])
		if f.Kind == Reset {
			sharpen(rng, &f)
		}
		f.Victims = min(f.Victims, 1)
		f.At = between(rng, 200, 3000)
		round.Faults = append(round.Faults[:1], f)
	}
	r.beside(&round)
	r.inStore(&round)
	return round
}

// inStore draws a fault of the store of sessions beside a round's faults, in one round of three, by numbers of its own.
func (r *Rounds) inStore(round *Round) {
	rng := rand.New(rand.NewPCG(r.seed, 1<<62|uint64(r.next)))
	if !r.store || rng.IntN(3) > 0 || round.Faults[0].Kind.OfStore() {
		return
	}
	f := r.fault(rng, OfStores[rng.IntN(len(OfStores))])
	f.At = between(rng, 0, 6000)
	round.Faults = append(round.Faults, f)
}

// beside draws what comes beside a round's faults, and how leavers get the order, by numbers of its own.
func (r *Rounds) beside(round *Round) {
	rng := rand.New(rand.NewPCG(r.seed, 1<<63|uint64(r.next)))
	for i := range round.Faults {
		f := &round.Faults[i]
		if again := between(rng, 1, 800); slices.Contains([]Kind{Leave, Rolling, LeaveLate}, f.Kind) && rng.IntN(2) == 0 {
			f.Twice, f.Again = true, again
		}
	}
	if rng.IntN(4) == 0 && r.all {
		f := r.fault(rng, StuckLog)
		f.At = between(rng, 0, 6000)
		round.Faults = append(round.Faults, f)
	}
	if rng.IntN(6) == 0 && r.all { // and in one of two of these, all connections are made anew
		f := r.fault(rng, DNS)
		f.At = between(rng, 0, 2000)
		round.Faults = append(round.Faults, f)
		if rng.IntN(2) == 0 {
			f := r.fault(rng, Reset)
			sharpen(rng, &f)
			f.At = between(rng, 2000, 8000)
			round.Faults = append(round.Faults, f)
		}
	}
}

// everyPacket is the part per mille of nft that resets every connection: a packet that is spared is a chance in a
// thousand.
const everyPacket = 999

// sharpen makes a Reset end every connection once.
func sharpen(rng *rand.Rand, f *Fault) { f.For, f.PerMille = between(rng, 1000, 3000), everyPacket }

// troubles are those of a DNS fault.
var troubles = []bootruns.Trouble{bootruns.DropSix, bootruns.Fails, bootruns.Silent}

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
	case Restart: // the second before the first is given up, or about then
		f.For, f.Victims, f.Stagger = between(rng, 14000, 30000), 2, between(rng, 4000, 12000)
		f.Rest = between(rng, 1, 60) // before anybody misses it
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
	case SlowLink:
		f.For, f.MBit, f.Victims = between(rng, 15000, 30000), 20, 0
	case LeaveLate:
		f.Extra = between(rng, 1000, 20000)
	case StuckLog: // one, or all at once: what collects their logs stands still
		f.For = between(rng, 3000, 40000)
		f.Victims = []int{r.nodes, 1}[rng.IntN(2)]
	case DNS: // longer than a node is given up in
		f.For, f.Trouble, f.Victims = between(rng, 15000, 35000), troubles[rng.IntN(len(troubles))], 0
	case Rolling:
		f.Victims = r.nodes
	case StoreCut, StoreStop, StoreAnew:
		r.ofStore(rng, &f, minority)
	case Move:
		r.moving(rng, &f, phases[rng.IntN(len(phases))], participants[rng.IntN(len(participants))],
			blows[rng.IntN(len(blows))])
	}
	return f
}

// ofStore draws what a fault of the store of sessions has of its own. A cut is one from a smaller side, or from all.
func (r *Rounds) ofStore(rng *rand.Rand, f *Fault, minority int) {
	if f.Victims = r.nodes; f.Kind == StoreCut && rng.IntN(3) > 0 {
		f.Victims = minority
	}
	if f.Kind != StoreAnew {
		f.For = skewed(rng)
	}
}

// moving draws what a fault has of a move, but for phase, participant and blow.
func (r *Rounds) moving(rng *rand.Rand, f *Fault, p Phase, who Role, b blow) {
	f.First, f.Rest = who, between(rng, 200, 3000)
	f.Moving = Moving{ways[rng.IntN(len(ways))], p, b.kind, between(rng, 500, 3000)}
	switch b.kind {
	case Kill:
	case Reset:
		f.PerMille = everyPacket
		fallthrough
	default:
		f.For = between(rng, b.low, b.high)
	}
}

// EveryMove returns a round for each phase, blow and participant, once. kinds restricts the blows; none means all.
func EveryMove(seed uint64, nodes int, kinds ...Kind) (all []Round) {
	r := NewRounds(seed, nodes, kinds...)
	for _, p := range phases {
		for _, b := range blows {
			for _, who := range participants {
				if !contains(r.kinds, b.kind) {
					continue
				}
				rng := rand.New(rand.NewPCG(seed, uint64(len(all)+1)))
				f := Fault{Kind: Move, Order: rng.Perm(nodes), Victims: 1}
				r.moving(rng, &f, p, who, b)
				all = append(all, Round{Number: len(all) + 1, Steady: between(rng, 1000, 3000), Faults: []Fault{f}})
			}
		}
	}
	return all
}

// What a fault touches, and what it leaves untouched: the nodes that the strategy obliges to live on.

// struck is a fault with its victims, known once it has come.
type struck struct {
	Fault
	who []int // slots, in the order in which they are hit
}

// unstableAfter is when the resolver may give everybody up because nothing stands still: 1.75 times the patience of a
// cluster of up to five members.
const unstableAfter = 9600 * time.Millisecond

// mildLoss is the loss under which no healthy member may be taken for dead; of more, nothing is demanded.
const mildLoss = 50

// harmless reports whether a fault gives nobody a reason to be downed.
func (f *struck) harmless() bool {
	switch f.Kind {
	case DataCut, Reset, Delay, StuckLog, DNS, SlowLink, holdData, holdControl, StoreCut, StoreStop, StoreAnew:
		return true
	case Loss:
		return f.PerMille <= mildLoss
	}
	return false
}

// touched reports whether a fault hits a node itself. A log that stands still is to be nothing to it.
func (f *struck) touched(slot int) bool { return f.Kind != StuckLog && slices.Contains(f.who, slot) }

// obliged returns which of so many nodes must live through all these faults: those that none has touched, as long as
// they are the majority and nothing keeps the picture from standing still.
func obliged(faults []struck, nodes int) []int {
	// A node without a session is ended as soon as it does not answer, for whatever reason.
	beside := slices.ContainsFunc(faults, func(f struck) bool { return !f.Kind.OfStore() && f.Kind != StuckLog })
	harms := func(f *struck) bool { return !f.harmless() || f.Kind.OfStore() && beside }
	var live []int
	for slot := range nodes {
		if !slices.ContainsFunc(faults, func(f struck) bool { return harms(&f) && f.touched(slot) }) {
			live = append(live, slot)
		}
	}
	restless := slices.ContainsFunc(faults, func(f struck) bool {
		return f.Kind == Loss && f.PerMille > mildLoss || f.Kind == Flap && f.For > unstableAfter*3/4
	})
	// Those that stay count a leaver no more, so one that leaves takes nobody's majority.
	gone := 0
	for slot := range nodes {
		if !slices.Contains(live, slot) && slices.ContainsFunc(faults, func(f struck) bool {
			return f.Kind != Rolling && f.Kind != Leave && f.Kind != LeaveLate && harms(&f) && f.touched(slot)
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
	if f.Kind == SlowLink || f.Kind == DNS || f.Kind.OfStore() {
		return false
	}
	if f.Victims == 0 {
		return true // resets, loss, delay: every way
	}
	return f.touched(from) || f.touched(to)
}
