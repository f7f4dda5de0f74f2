// Faults: what they are, and how they are worded. Pure.

package chaos

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kith-io/kith/internal/lab/bootruns"
)

// Kind is a kind of fault.
type Kind string

// The kinds of faults.
const (
	Kill       Kind = "kill"          // kill -9 of one, or of several one after another
	KillAll    Kind = "kill-all"      // of every process
	Pause      Kind = "pause"         // SIGSTOP, and SIGCONT after For
	Restart    Kind = "restart"       // one is stopped for For; another loses its power meanwhile, and is back at once
	Starve     Kind = "starve"        // stopped and let run by turns, so that little gets done
	Cut        Kind = "cut"           // nothing passes between two sides
	CutOneWay  Kind = "cut-one-way"   // nothing passes from the victims to the others
	CutPartial Kind = "cut-partial"   // nothing passes between two nodes; both hear all others
	Flap       Kind = "flap"          // a cut that comes and goes each Period
	DataCut    Kind = "data-cut"      // data connections of the victims are cut: only control flows
	ControlCut Kind = "control-cut"   // control connections of the victims are cut: only data flows
	Reset      Kind = "reset"         // connections are reset right behind a chunk, PerMille of the chunks
	Loss       Kind = "loss"          // PerMille of what is sent is lost, everywhere
	Delay      Kind = "delay"         // everything takes Extra longer, everywhere
	SlowLink   Kind = "slow-link"     // every link carries MBit megabits a second, both ways; one leaves meanwhile
	Leave      Kind = "leave"         // one leaves gracefully and is started again
	Rolling    Kind = "rolling"       // each in turn leaves and is started again
	LeaveLate  Kind = "leave-late"    // one leaves, and its handlers take so long that the leave is over its limit
	Close      Kind = "close"         // one closes its node without leaving
	StuckLog   Kind = "stuck-log"     // nobody reads what the victims log: their stderr is a full pipe
	DNS        Kind = "dns"           // the DNS by which nodes find each other is in Trouble, beside something else
	StoreCut   Kind = "store-cut"     // the victims, or all, do not reach the store of sessions
	StoreStop  Kind = "store-stop"    // the store of sessions stands still
	StoreAnew  Kind = "store-restart" // it is killed, and starts again with its data
	Move       Kind = "move"          // a shard of slow entities moves, and Moving.Blow hits a participant in the middle
)

// The kinds that hold a move in its phase: data or control connections carry nothing from the first to the second.
const (
	holdData    Kind = "hold-data"
	holdControl Kind = "hold-control"
)

// Kinds are all that a round begins with, in a fixed order.
var Kinds = []Kind{Kill, KillAll, Pause, Restart, Starve, Cut, CutOneWay, CutPartial, Flap, DataCut, ControlCut, Reset,
	Loss, Delay, Leave, Rolling, LeaveLate, Close, Move, SlowLink}

// Beside are the kinds that come beside a round's faults, and only there unless they are asked for: a run that leaves
// them out has the same rounds. They give nobody a reason to be downed.
var Beside = []Kind{StuckLog, DNS}

// OfStores are kinds that come beside a round's faults where nodes hold sessions, and only there.
var OfStores = []Kind{StoreCut, StoreStop, StoreAnew}

// OfStore reports whether it hits the store of sessions.
func (k Kind) OfStore() bool { return slices.Contains(OfStores, k) }

// Named are all kinds that may be asked for.
func Named() []Kind { return slices.Concat(Kinds, Beside, OfStores) }

// Role says which node the first victim of a fault is: known only when the fault comes.
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
	First    Role          // the first victim
	Victims  int           // how many there are; zero: it concerns all alike
	Order    []int         // slots; the further victims are the first of them that are none yet
	Stagger  time.Duration // between one victim and the next
	Period   time.Duration // of flapping and starving
	PerMille int
	MBit     int // of SlowLink
	Extra    time.Duration
	Rest     time.Duration    // the supervisor waits so long before it starts an ended process again
	Twice    bool             // a leaver gets SIGTERM, and Again later once more, as the kubelet does
	Again    time.Duration    // of Twice
	Moving   Moving           // of Move
	Trouble  bootruns.Trouble // of DNS
}

// Round is what happens between two states in which all is well.
type Round struct {
	Number int
	Steady time.Duration // nothing happens for so long before it
	Faults []Fault       // in the order of At
}

// Phase is a part of a move.
type Phase string

// The phases of a move, in their order.
const (
	noPhase     Phase = ""
	Marking     Phase = "marking"      // it has begun; not all senders have marked
	WorkingOff  Phase = "working-off"  // nobody sends to the giver any more, and a handler there is slow
	HandingOver Phase = "handing-over" // the giver's entities have stopped; what is left is on its way to the taker
	Starting    Phase = "starting"     // the giver has nothing any more; nobody has heard that the taker hosts
	overPhase   Phase = "over"         // it is done, was given up, or came back
)

// phases are all that a fault may come in.
var phases = []Phase{Marking, WorkingOff, HandingOver, Starting}

// The participants of a move, as first victims of a fault. The third is the Coordinator.
const (
	Giver Role = "giver" // that the shard leaves
	Taker Role = "taker" // that it goes to
)

var participants = []Role{Giver, Taker, Coordinator}

// Way is how a move comes about.
type Way string

// The ways.
const (
	ByHand  Way = "by-hand" // Region.Move
	ByDrain Way = "drain"   // of the giver
	ByLeave Way = "leave"   // of the giver
)

var ways = []Way{ByHand, ByDrain, ByLeave}

// blow is a kind of fault in the middle of a move, which lasts so many milliseconds.
type blow struct {
	kind      Kind
	low, high int
}

// blows are all: what is over before anybody is given up for it, and what is not, has a place each.
var blows = []blow{{Kill, 0, 0}, {Pause, 300, 2500}, {Pause, 12000, 20000}, {Cut, 300, 2500}, {Cut, 12000, 20000},
	{Reset, 100, 500}}

// Moving is what a fault of kind Move has of its own. Fault.First is the participant that is hit, Fault.For how long.
type Moving struct {
	Way   Way
	Phase Phase
	Blow  Kind
	Slow  time.Duration // how long each Blocking call at the giver takes meanwhile
}

// restBrief is how long a supervisor waits at most that starts again at once; a process that stays longer is away.
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
	}{{"for", f.For}, {"apart", apart}, {"period", f.Period}, {"by", f.Extra}, {"told again after", f.Again}} {
		if d.d > 0 {
			fmt.Fprintf(&b, " %s %v", d.what, d.d)
		}
	}
	if f.away() {
		fmt.Fprintf(&b, " away for %v", f.Rest)
	}
	if f.Kind == Move {
		fmt.Fprintf(&b, " %s", f.Moving)
	}
	if f.PerMille > 0 {
		fmt.Fprintf(&b, " %d per mille", f.PerMille)
	}
	if f.Trouble != "" {
		fmt.Fprintf(&b, " %s", f.Trouble)
	}
	if f.MBit > 0 {
		fmt.Fprintf(&b, " %d Mbit/s", f.MBit)
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
		if !contains(Named(), Kind(n)) {
			return nil, fmt.Errorf("no fault %q; there are %v", n, Named())
		}
		kinds = append(kinds, Kind(n))
	}
	return kinds, nil
}

// String says in a few words what the move is.
func (m Moving) String() string {
	return fmt.Sprintf("%s, calls take %v, %s while %s", m.Way, m.Slow, m.Blow, m.Phase)
}
