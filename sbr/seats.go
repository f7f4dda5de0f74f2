// Seats: with a tenure the sides count the seats of its electorate, not members (MEM-10).

package sbr

import (
	"math/bits"

	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
)

// SeatsCommand says which list of seats the state of the next view has. Nodes with a tenure send it before that view,
// all others never. The machine keeps the slices: they are not to be changed.
type SeatsCommand struct {
	Number  uint32    // of the list; 0: there is none yet
	Holders []peer.ID // by seat; zero where it is empty
	// Ended are the holders with a process that is known to be dead, by proof or by another one at its address; those that
	// were removed too.
	Ended peer.Set
}

func (SeatsCommand) command() {}

// electorate is the seats as a machine knows them.
type electorate struct {
	list    SeatsCommand
	founded bool // all members are known to have had a list
}

// takes takes over a list. Each list behind the first one was written when all had seen the one before.
func (e *electorate) takes(c SeatsCommand) {
	e.list = c
	e.founded = e.founded || c.Number > 1
}

// sees takes a view that has the list.
func (e *electorate) sees(v *membership.View) {
	e.founded = e.founded || v.Converged && e.list.Number > 0
}

// bySeats reports whether a side is chosen by its seats: there is a list, and the strategy is one that chooses a side.
func (c *Config) bySeats(s *Situation) bool {
	return len(s.Seats) > 0 && c.Strategy != DownAll && c.Strategy != UnsafeAutoDown && c.Strategy != Off
}

// seats says how the seats are divided.
type seats struct {
	all, quorum int
	here        int // with members on our side
	stay        int // of these, with members that do not go
	lost        int // nobody will hold them again: their holders have ended
}

// choose applies what counts, seats or the strategy alone; what the seats say may put members above suspicion.
func (c Config) choose(v *survey) (verdict, seats) {
	if !c.bySeats(v.Situation) {
		return c.verdict(v), seats{}
	}
	return c.seatVerdict(v), v.divide()
}

// divide counts the seats.
func (v *survey) divide() seats {
	n := seats{all: len(v.Seats), quorum: len(v.Seats)/2 + 1}
	for _, h := range v.Seats {
		switch i := v.index(h); {
		case h.IsZero(): // the other side may have a list with a holder for it
		case v.Ended.Has(h), i >= 0 && v.Members[i].Status == membership.Down && v.replaced(i):
			n.lost++
		case i < 0 || v.away(i):
		default:
			if n.here++; v.at[i] == reachable {
				n.stay++
			}
		}
	}
	return n
}

// seatVerdict chooses the side with a quorum of the seats. Of two lists that two sides may hold one has only holders
// that the other has too, so no two sides find a quorum. Where the other side may have no list yet, ours lives only if
// it would live by the strategy as well. When so many holders have ended that no side can have a quorum the strategy
// decides alone: then nothing is handled before the seats are given to others.
func (c Config) seatVerdict(v *survey) verdict {
	n := v.divide()
	if n.stay < n.quorum && n.here >= n.quorum {
		v.spare(n.quorum)
		n = v.divide()
	}
	switch {
	case n.all-n.lost < n.quorum:
		return c.verdict(v)
	case n.here < n.quorum:
		return verdict{outcome: DownReachable, why: "our side has no quorum of the seats"}
	case n.stay < n.quorum:
		return verdict{outcome: DownReachable, always: true,
			why: "of the holders on our side too many do not hear each other for a quorum of the seats"}
	case v.FirstSeats:
		return c.verdict(v)
	}
	return verdict{outcome: DownUnreachable, why: "our side has a quorum of the seats"}
}

// spare finds the most holders on our side that all hear each other, of several such choices the one with the lower
// seats. When they are a quorum they are above suspicion: all others of those that do not hear each other go.
func (v *survey) spare(quorum int) {
	var deaf [maxSeats]uint16 // by seat, the seats with holders that it does not hear, or that do not hear it
	var here uint16
	for a, h := range v.Seats[:min(len(v.Seats), maxSeats)] {
		if i := v.index(h); i >= 0 && !v.away(i) && !v.Ended.Has(h) {
			here |= 1 << a
		}
	}
	for _, x := range v.Accusations {
		a, b := v.seat(x.Observer), v.seat(x.Subject)
		if a >= 0 && b >= 0 && v.at[v.index(x.Observer)] == indirect && v.at[v.index(x.Subject)] == indirect {
			deaf[a], deaf[b] = deaf[a]|1<<b, deaf[b]|1<<a
		}
	}
	best := uint16(0)
	for set := uint16(1); set < 1<<min(len(v.Seats), maxSeats); set++ {
		hear := set&^here == 0
		for a := range maxSeats {
			hear = hear && (set>>a&1 == 0 || deaf[a]&set == 0)
		}
		if hear && bits.OnesCount16(set) > bits.OnesCount16(best) {
			best = set
		}
	}
	if bits.OnesCount16(best) < quorum {
		return
	}
	for a, h := range v.Seats {
		if i := v.index(h); best>>a&1 == 1 && v.at[i] == indirect {
			v.at[i] = reachable
		}
	}
}

// maxSeats is the most seats that an electorate may have.
const maxSeats = 7

// seat returns the seat that a member holds, -1 for none.
func (v *survey) seat(id peer.ID) int {
	for a, h := range v.Seats {
		if h == id && a < maxSeats && v.index(id) >= 0 {
			return a
		}
	}
	return -1
}
