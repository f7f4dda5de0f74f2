// Decide: from a situation to the members that go, by each strategy; a function of its inputs.

package sbr

import (
	"github.com/kith-io/kith/internal/base/enum"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
)

// Outcome is what a strategy makes of a situation.
type Outcome uint8

// The outcomes.
const (
	DownUnreachable Outcome = iota // our side lives
	DownReachable                  // the other side may live: ours goes
	DownEverybody                  // no side may be sure: all go
	AskLease                       // our side lives if it gets the lease
)

var outcomeNames = []string{DownUnreachable: "down-unreachable", DownReachable: "down-reachable",
	DownEverybody: "down-everybody", AskLease: "ask-lease"}

// String names the outcome.
func (o Outcome) String() string { return enum.Name(outcomeNames, o, "outcome") }

// MarshalText gives the name.
func (o Outcome) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// UnmarshalText takes a name, as String gives it.
func (o *Outcome) UnmarshalText(text []byte) error { return enum.Parse(o, text) }

// verdict is the outcome of a strategy and why.
type verdict struct {
	outcome Outcome
	why     string
	mark    peer.ID // the lowest or oldest member that decided it
	later   bool    // ask for the lease later, as the smaller side
	always  bool    // also when nobody is out of reach and some are indirectly connected
}

// Decide returns what the strategy makes of a situation, every input named. It is pure: all nodes that see the same
// decide the same; only Decision.Self and Decision.Lives speak of one node.
func (c Config) Decide(s Situation) Decision {
	v := look(c.Role, &s)
	base, held := c.choose(v)
	d := Decision{Strategy: c.Strategy, Role: c.Role, Self: s.Self, Quorum: c.QuorumSize, Seats: held.all, Held: held.here,
		Cause:     membership.CauseResolver,
		Reachable: v.count(onlyReachable), Unreachable: v.count(onlyUnreachable),
		Lost:     v.all(func(i int) bool { return v.away(i) && downable(v.Members[i].Status) }),
		Indirect: v.all(func(i int) bool { return v.at[i] == indirect })}
	d.Outcome, d.Why, d.Mark, d.later = base.outcome, base.why, base.mark, base.later
	lost := v.lost()
	switch {
	case c.Strategy == Off:
		d.Outcome, d.Why = DownUnreachable, "the resolver is off"
	case !lost && len(d.Indirect) == 0:
		d.Outcome, d.Why, d.Mark = DownUnreachable, "nobody is out of reach: only the word of who has gone says so", peer.ID{}
		d.Down = v.goers(DownUnreachable)
	case !lost && d.Outcome != AskLease && !base.always:
		d.Outcome, d.Why, d.Mark = DownUnreachable, "only members that are indirectly connected go", peer.ID{}
		d.Down = v.goers(DownUnreachable)
	default:
		d.Down = v.goers(d.Outcome)
	}
	d.refused = v.goers(DownReachable)
	for i := range v.Members {
		if v.at[i] != reachable || !counts(v.Members[i].Status) {
			continue
		}
		if d.first.IsZero() {
			d.first = v.Members[i].ID
		}
		if !s.Late.Has(v.Members[i].ID) {
			d.next = v.Members[i].ID
			break
		}
	}
	if d.first.IsZero() && len(d.Down) > 0 && (lost || len(d.Indirect) > 0) {
		d.unled()
	}
	d.Lives = !d.Down.Has(s.Self)
	return d
}

// unled turns a decision to live around on a side where nobody counts and is above suspicion: members that never came
// Up carry no cluster on, and must not ask for a lease, while those that did may live elsewhere.
func (d *Decision) unled() {
	switch d.Outcome {
	case DownUnreachable:
		d.Why = "nobody who counts is above suspicion on our side"
	case AskLease:
		d.Why = "nobody on our side may ask for the lease"
	default:
		return
	}
	d.Outcome, d.Down = DownReachable, d.refused
}

// goers returns the members that an outcome downs: always the indirectly connected ones, for nobody can tell which of
// them is right. A quarantined member goes with our side when others are out of reach: it is cut off from them as we
// are. When our side lives, an Exiting member that nobody reaches and that accuses others goes as well: it would be
// removed anyway, but its last word would block convergence for ever.
func (v *survey) goers(o Outcome) peer.Set {
	cut := v.cut()
	return v.all(func(i int) bool {
		st := v.Members[i].Status
		switch o {
		case DownUnreachable, AskLease:
			if st == membership.Exiting {
				return v.at[i] == unreachable && v.lastWord[i]
			}
			return downable(st) && v.at[i] != reachable
		case DownReachable:
			return downable(st) && v.at[i] != unreachable && (v.at[i] != condemned || cut)
		}
		return downable(st)
	})
}

// verdict applies the strategy, indirectly connected members counted as reachable.
func (c Config) verdict(v *survey) verdict {
	switch c.Strategy {
	case KeepMajority:
		return v.keepMajority()
	case StaticQuorum:
		return v.staticQuorum(c.QuorumSize)
	case KeepOldest:
		return v.keepOldest(c.KeepAlone)
	case DownAll:
		return verdict{outcome: DownEverybody, always: true, why: "the strategy ends all nodes when one is lost"}
	case LeaseMajority:
		return v.leaseMajority()
	}
	return verdict{outcome: DownUnreachable, why: "this strategy downs whoever is unreachable, on every side"}
}

func (v *survey) keepMajority() verdict {
	if v.count(plain) == 0 {
		return verdict{outcome: DownEverybody, why: "no member counts"}
	}
	first := majority(v, v.count(onlyReachable), v.count(onlyUnreachable), v.lowest(plain))
	if first.outcome != DownUnreachable {
		return first
	}
	// The other side may know that a joining member is Up, and not yet that one at hand there is Exiting. And it may not
	// know which members our side has downed and not removed yet: it was lost before it could agree, so to it they may be
	// alive and at hand. If we would not live in the worst case, neither side can be sure. A member that is Leaving here
	// may be Exiting there, and counts there for our side all the same. Removed there it cannot be: we would have seen it
	// Exiting first.
	u := v.count(onlyUnreachable | v.joiners() | elsewhere)
	worst := majority(v, v.count(onlyReachable|v.parting()), u, v.lowest(v.parting()|elsewhere))
	if worst.outcome == DownUnreachable && !worst.mark.IsZero() || !first.mark.IsZero() {
		// A tie, here or in the worst case: over there a member that came Up just now may not be the lowest yet.
		if i := v.lowest(withoutFresh | v.parting() | elsewhere); i < 0 || v.away(i) {
			worst.outcome = DownReachable
		}
	}
	if worst.outcome != DownUnreachable {
		return verdict{outcome: DownEverybody, mark: worst.mark,
			why: "ours is the majority here, but with members in transition the other side may be it"}
	}
	return first
}

// majority compares both sides; lowest is the index of the lowest member, which decides a tie, -1 for none.
func majority(v *survey, r, u, lowest int) verdict {
	switch {
	case r > u:
		return verdict{outcome: DownUnreachable, why: "ours is the majority"}
	case r < u:
		return verdict{outcome: DownReachable, why: "the other side is the majority"}
	case lowest < 0:
		return verdict{outcome: DownReachable, why: "nobody is sure to count"}
	case v.away(lowest):
		return verdict{outcome: DownReachable, mark: v.Members[lowest].ID,
			why: "a tie: the lowest address is on the other side"}
	}
	return verdict{outcome: DownUnreachable, mark: v.Members[lowest].ID, why: "a tie: the lowest address is on our side"}
}

func (v *survey) staticQuorum(quorum int) verdict {
	r, u := v.count(onlyReachable), v.count(onlyUnreachable)
	switch {
	case r+u > 2*quorum-1:
		return verdict{outcome: DownEverybody, always: true,
			why: "there are too many members for this quorum: two sides could have it"}
	case r >= quorum && v.possible() > 2*quorum-1 && v.count(onlyReachable|withoutLeaving|withoutFresh) < quorum:
		// Two sides may have it if members that one side sees coming or gone count on the other. Ours lives only with a
		// quorum of members that count on both: then the other side sees that there are too many.
		return verdict{outcome: DownEverybody,
			why: "our side has the quorum here, but with members in transition the other side may have one, too"}
	case r >= quorum:
		return verdict{outcome: DownUnreachable, why: "our side has the quorum"}
	}
	return verdict{outcome: DownReachable, why: "our side has no quorum"}
}

// possible returns how many members with the role may count on one side or another, whatever they are here.
func (v *survey) possible() int {
	n := v.count(v.joiners())
	for i := range v.Members {
		if v.Members[i].Status == membership.Exiting && v.Members[i].HasRole(v.role) {
			n++
		}
	}
	return n
}

func (v *survey) keepOldest(keepAlone bool) verdict {
	if v.count(plain) == 0 {
		return verdict{outcome: DownEverybody, why: "no member counts"}
	}
	first := v.oldestSide(keepAlone, v.oldest(plain), v.count(onlyReachable), v.count(onlyUnreachable))
	if first.outcome != DownUnreachable {
		return first
	}
	r, u := v.count(onlyReachable|v.parting()), v.count(onlyUnreachable|v.joiners()|elsewhere)
	for _, more := range [...]int{elsewhere, withDown} { // Exiting members count there, or not
		filter := v.parting() | more
		if worst := v.oldestSide(keepAlone, v.oldest(filter), r, u); worst.outcome != DownUnreachable {
			return verdict{outcome: DownEverybody, mark: worst.mark,
				why: "our side would live, but with members in transition the other side may"}
		}
	}
	return first
}

// oldestSide decides for r members on our side and u on the other.
func (v *survey) oldestSide(keepAlone bool, oldest, r, u int) verdict {
	if oldest < 0 {
		return verdict{outcome: DownReachable, why: "nobody is sure to be oldest"}
	}
	id := v.Members[oldest].ID
	if !v.away(oldest) {
		if !keepAlone && r == 1 && u >= 2 {
			return verdict{outcome: DownReachable, mark: id, why: "the oldest is alone on our side"}
		}
		return verdict{outcome: DownUnreachable, mark: id, why: "the oldest is on our side"}
	}
	if !keepAlone && u == 1 && r >= 2 {
		return verdict{outcome: DownUnreachable, mark: id, why: "the oldest is alone on the other side"}
	}
	return verdict{outcome: DownReachable, mark: id, why: "the oldest is on the other side"}
}

func (v *survey) leaseMajority() verdict {
	r, u := v.count(onlyReachable), v.count(onlyUnreachable)
	lowest := v.lowest(plain)
	later := u > r || u == r && lowest >= 0 && v.away(lowest)
	if later {
		return verdict{outcome: AskLease, later: true, why: "the lease decides, ours is the smaller side"}
	}
	return verdict{outcome: AskLease, why: "the lease decides, ours is not the smaller side"}
}
