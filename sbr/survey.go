// Survey: how each member stands as seen from one node: reachable, unreachable, or connected only through others.

package sbr

import (
	"slices"

	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
)

// Situation is what a decision is made from: one node's view, and which of the accused are still in contact with it.
type Situation struct {
	Self        peer.ID
	Members     []membership.Member     // sorted by identity
	Accusations []membership.Accusation // which member holds which unreachable
	// Contact holds accused members that have confirmed a state which contains all present accusations against them:
	// they are accused, and yet a path leads from this node to them and back. It may hold others too.
	Contact peer.Set
	// Late holds members that may be asleep: what is decided another carries out.
	Late peer.Set
	// Aware holds Exiting members that have confirmed a state in which they are Exiting: every node in contact with
	// them knows it, too.
	Aware peer.Set
	// Older says that a member runs an older build, to which Exiting members count nowhere.
	Older bool
	// Fresh holds members that came Up after the last version which this node knows all members to have seen: the other
	// side may take them for Joining still.
	Fresh peer.Set
	// Seats are the holders of an electorate's seats, zero where one is empty: the sides count them in place of members.
	// Empty: there is no electorate, or nobody has a seat yet.
	Seats []peer.ID
	// Ended are holders with a process that is known to be dead.
	Ended peer.Set
	// FirstSeats says that this is the first list of them, and that the other side may have none.
	FirstSeats bool
}

// standing is how a member stands.
type standing uint8

const (
	reachable   standing = iota // no member with a word that counts accuses it
	unreachable                 // accused, and no path leads to it
	indirect                    // accused or accusing, and yet a path leads to it
	condemned                   // under quarantine, and yet a path leads to it: it counts as unreachable
)

// survey is a situation in which every member has its standing.
type survey struct {
	*Situation
	role     string
	at       []standing // by index of member
	accused  []bool     // by a member that is not Down
	lastWord []bool     // unreachable itself, and accusing another: its word blocks convergence while it is a member
}

// counts reports whether a member of this status counts in decisions. Joining and weakly up ones never do.
func counts(s membership.Status) bool {
	return s == membership.Up || s == membership.Leaving || s == membership.PreparingForShutdown ||
		s == membership.ReadyForShutdown
}

// decides reports whether a node of this status decides: one that is weakly up does, though it never counts.
func decides(own membership.Status) bool { return counts(own) || own == membership.WeaklyUp }

// joins reports whether a member of this status may be Up already as others see it.
func joins(s membership.Status) bool { return s == membership.Joining || s == membership.WeaklyUp }

// neverUp reports whether a member leaves that never came Up here: it may be Up already as others see it, or not known
// to them at all.
func neverUp(m *membership.Member) bool { return m.Status == membership.Leaving && m.UpNumber == 0 }

// downable reports whether a decision may down a member of this status.
func downable(s membership.Status) bool { return counts(s) || joins(s) }

func (v *survey) index(id peer.ID) int {
	i, ok := slices.BinarySearchFunc(v.Members, id, func(m membership.Member, id peer.ID) int { return m.ID.Compare(id) })
	if !ok {
		return -1
	}
	return i
}

func (v *survey) inContact(i int) bool {
	return v.Members[i].ID == v.Self || v.Contact.Has(v.Members[i].ID)
}

// away reports whether member i is not on our side.
func (v *survey) away(i int) bool { return v.at[i] == unreachable || v.at[i] == condemned }

// look gives every member its standing. An accused member that is not in contact is unreachable, and one that was put
// under quarantine counts as such. An observer speaks for our side when it is in contact or not accused itself: then a
// member that it accuses and that is in contact all the same is indirectly connected, and so is the observer.
// Accusations by an observer that all of our side has lost are past: they make no member indirectly connected. Members
// that leave for good (Exiting) or are Down have no say.
func look(role string, s *Situation) *survey {
	v := &survey{Situation: s, role: role, at: make([]standing, len(s.Members)),
		accused: make([]bool, len(s.Members)), lastWord: make([]bool, len(s.Members))}
	for _, a := range s.Accusations {
		o, x := v.index(a.Observer), v.index(a.Subject)
		if o >= 0 && x >= 0 && o != x && s.Members[o].Status != membership.Down {
			v.accused[x] = true
		}
	}
	for i := range v.accused {
		if v.accused[i] && !v.inContact(i) {
			v.at[i] = unreachable
		}
	}
	v.condemn()
	for _, a := range s.Accusations {
		o, x := v.index(a.Observer), v.index(a.Subject)
		if o < 0 || x < 0 || o == x || s.Members[o].Status == membership.Down {
			continue
		}
		if v.away(o) {
			v.lastWord[o] = true
			continue
		}
		if !v.away(x) && downable(s.Members[o].Status) && downable(s.Members[x].Status) {
			v.at[o], v.at[x] = indirect, indirect
		}
	}
	for i := range s.Members {
		// Wherever it is, it is not on our side.
		if s.Members[i].Status == membership.Down {
			v.at[i] = unreachable
		}
	}
	return v
}

// condemn finds members that an observer that speaks for our side holds quarantined: such a one is in contact, and yet
// its state can no longer be trusted. Its observer is above suspicion: that one gave up because of what it knows, not
// because a path is broken. Of an observer that is under quarantine itself this is not believed; two that have given
// each other up are indirectly connected as any two that cannot hear each other.
func (v *survey) condemn() {
	var said []membership.Accusation
	doubted := make([]bool, len(v.Members))
	for _, a := range v.Accusations {
		o, x := v.index(a.Observer), v.index(a.Subject)
		if a.Quarantined && o >= 0 && x >= 0 && o != x && downable(v.Members[o].Status) && v.at[o] != unreachable {
			said = append(said, a)
			doubted[x] = true
		}
	}
	for _, a := range said {
		if !doubted[v.index(a.Observer)] {
			if x := v.index(a.Subject); v.at[x] != unreachable {
				v.at[x] = condemned
			}
		}
	}
}

// Filters of count and first.
const (
	plain           = 0
	withJoining     = 1 // also those that may be Up already elsewhere
	withoutLeaving  = 2 // not those that may be Exiting already elsewhere
	onlyUnreachable = 4
	onlyReachable   = 8 // indirectly connected ones included
	withoutFresh    = 16
	withDown        = 32 // also those that are Down here and not removed yet, unless a successor proves them dead
	withExiting     = 64 // also those out of reach that are Exiting here and may be Leaving there, at hand

	elsewhere = withDown | withExiting
)

// counted reports whether member i passes the filter and has the role.
func (v *survey) counted(i, filter int) bool {
	m := &v.Members[i]
	switch {
	case filter&onlyUnreachable != 0 && !v.away(i), filter&onlyReachable != 0 && v.away(i):
		return false
	case filter&withoutLeaving != 0 && m.Status == membership.Leaving, filter&withoutFresh != 0 && v.Fresh.Has(m.ID):
		return false
	case m.Status == membership.Down && filter&withDown != 0 && !v.replaced(i):
	case m.Status == membership.Exiting && filter&withExiting != 0 && v.away(i) && !v.Aware.Has(m.ID):
	case (!counts(m.Status) || neverUp(m)) && (filter&withJoining == 0 || !joins(m.Status) && !neverUp(m)):
		return false
	}
	return m.HasRole(v.role)
}

// parting returns withoutLeaving when members that leave at hand may count elsewhere for nobody: an older build counts
// them nowhere once it knows that they exit.
func (v *survey) parting() int {
	if v.Older {
		return withoutLeaving
	}
	return plain
}

// joiners returns withJoining when members over there may be Up that are joining here: a member with an up-number is
// there, too, or is not known to be here. Only a leader makes members Up, and a leader is Up itself.
func (v *survey) joiners() int {
	for i := range v.Members {
		if v.Members[i].UpNumber != 0 && v.away(i) {
			return withJoining
		}
	}
	return plain
}

// replaced reports whether a member of another incarnation stands at the address of member i.
func (v *survey) replaced(i int) bool {
	addr := v.Members[i].ID.Addr
	return i > 0 && v.Members[i-1].ID.Addr == addr || i+1 < len(v.Members) && v.Members[i+1].ID.Addr == addr
}

func (v *survey) count(filter int) int {
	n := 0
	for i := range v.Members {
		if v.counted(i, filter) {
			n++
		}
	}
	return n
}

// lowest returns the index of the first member in address order that passes, -1 without one.
func (v *survey) lowest(filter int) int {
	for i := range v.Members {
		if v.counted(i, filter) {
			return i
		}
	}
	return -1
}

// oldest returns the index of the member with the lowest up-number that passes, -1 without one.
func (v *survey) oldest(filter int) int {
	best := -1
	for i := range v.Members {
		if v.counted(i, filter) && v.Members[i].UpNumber > 0 &&
			(best < 0 || v.Members[i].UpNumber < v.Members[best].UpNumber) {
			best = i
		}
	}
	return best
}

// all returns the members that pass lets through, sorted.
func (v *survey) all(pass func(i int) bool) peer.Set {
	var out peer.Set
	for i := range v.Members {
		if pass(i) {
			out = append(out, v.Members[i].ID)
		}
	}
	return out
}

// cut reports whether some member that a decision may down is out of reach.
func (v *survey) cut() bool {
	for i := range v.Members {
		if v.at[i] == unreachable && downable(v.Members[i].Status) {
			return true
		}
	}
	return false
}

// lost reports whether some member that a decision may down is out of reach or counts as such.
func (v *survey) lost() bool {
	for i := range v.Members {
		if v.away(i) && downable(v.Members[i].Status) {
			return true
		}
	}
	return false
}
