// What becomes of one state of the links: which nodes survive, whether that is allowed, whether some had to.

package proof

import (
	"fmt"

	"github.com/kith-io/kith/sbr"
)

// judge decides one state, given as the pairs that hear each other, and adds what came of it to the row.
func (p *prover) judge(heard uint32, row *Row, fault func(what string)) {
	var acts [MaxNodes]act
	var groups [MaxNodes]uint32
	for i := range p.n {
		groups[i] = p.group(i, heard)
		acts[i] = p.act(i, groups[i], heard)
	}
	p.sentence(heard, groups[:p.n], acts[:p.n], row, fault)
}

// sentence adds up what all nodes do. A lease has one winner, and nobody can tell which: each asker is tried.
func (p *prover) sentence(heard uint32, groups []uint32, acts []act, row *Row, fault func(what string)) {
	obliged := p.obliged(heard, groups)
	if obliged != 0 {
		row.Obliged++
	}
	survived, double, missing := false, false, false
	tried := false
	for winner := range acts {
		if acts[winner].asks {
			tried = true
			alive := p.outcome(groups, acts, winner)
			survived = survived || alive != 0
			double = double || !p.together(p.stay(alive), heard)
			missing = missing || obliged != 0 && alive == 0
		}
	}
	if !tried {
		alive := p.outcome(groups, acts, -1)
		survived, double = alive != 0, !p.together(p.stay(alive), heard)
		missing = obliged != 0 && obliged&alive == 0 || p.stay(obliged) != 0 && p.stay(obliged&alive) == 0
		if all := uint32(1)<<p.n - 1; p.whole(heard) && alive != all {
			missing = true // nothing is broken, so nobody may go
		}
	}
	switch {
	case survived:
		row.Survived++
	default:
		row.AllDown++
	}
	if double {
		row.DoubleSurvivors++
		fault("two groups without a path live on")
	}
	if missing {
		row.AllDownUnexpected++
		fault(fmt.Sprintf("of %0*b nobody lives on", p.n, obliged))
	}
}

// outcome returns the nodes that live: not suspended by their own decision, and downed by none that they hear. An asker
// that does not win downs its own side.
func (p *prover) outcome(groups []uint32, acts []act, winner int) (alive uint32) {
	var dead uint32
	for i, a := range acts {
		downs := a.downs
		switch {
		case a.asks && i == winner:
			downs = a.granted
		case a.asks:
			downs = a.refused
		}
		dead |= downs & groups[i]
		if a.suspends {
			dead |= 1 << i
		}
	}
	return (uint32(1)<<p.n - 1) &^ dead
}

// together reports whether all that live are one group: a path leads from each to each, through living ones.
func (p *prover) together(alive, heard uint32) bool {
	for i := range p.n {
		if alive>>i&1 == 1 {
			return p.group(i, p.inside(alive, heard))&alive == alive
		}
	}
	return true
}

// obliged returns the group that the strategy must leave survivors of in this state, 0 for none: see
// docs/contributing/resolver.md. In every case a node in the group must hear all others of it, else which of them are
// right nobody can tell.
func (p *prover) obliged(heard uint32, groups []uint32) uint32 {
	all := uint32(1)<<p.n - 1
	if p.whole(heard) {
		return all
	}
	for _, g := range groups {
		if p.seats != nil {
			if p.seated(g, heard) {
				return g
			}
			continue
		}
		if p.heardByOne(g, heard) && p.mustLive(g) {
			return g
		}
	}
	return 0
}

// whole reports whether nothing is broken: everybody hears everybody.
func (p *prover) whole(heard uint32) bool { return count(heard) == p.n*(p.n-1)/2 }

// heardByOne reports whether some node of a group, that stays or is alone, hears all others of it.
func (p *prover) heardByOne(group, heard uint32) bool {
	for a := range p.n {
		if (p.stay(group)>>a&1 == 1 || group == 1<<a) && p.accuses(a, heard)&group == 0 {
			return true
		}
	}
	return false
}

// seated reports whether some holders of a group that all hear each other hold a quorum of the seats.
func (p *prover) seated(group, heard uint32) bool {
	for set := uint32(1); set < 1<<p.n; set++ {
		if set&^p.stay(group) != 0 {
			continue
		}
		held, hear := 0, true
		for _, x := range p.seats {
			if x >= 0 && set>>x&1 == 1 {
				held++
				hear = hear && p.accuses(x, heard)&set == 0
			}
		}
		if hear && held == count(set) && 2*held > len(p.seats) {
			return true
		}
	}
	return false
}

// mustLive reports whether a group is the one that the strategy promises to keep.
func (p *prover) mustLive(group uint32) bool {
	votes, total := count(group&p.voters()), count(p.voters())
	lowest := p.voters() & -p.voters()
	if p.differ { // to some the leaver may be gone
		switch votes = count(p.stay(group) & p.voters()); p.promise.Strategy {
		case sbr.KeepMajority:
			return 2*votes > total
		case sbr.StaticQuorum:
			return votes >= p.promise.QuorumSize
		}
		return false
	}
	hasOldest := group>>p.oldest()&1 == 1
	switch p.promise.Strategy {
	case sbr.KeepMajority:
		return 2*votes > total || 2*votes == total && group&lowest != 0
	case sbr.StaticQuorum:
		return votes >= p.promise.QuorumSize
	case sbr.KeepOldest:
		if p.promise.KeepAlone {
			return hasOldest
		}
		return hasOldest && (votes > 1 || total-votes < 2) || !hasOldest && votes == total-1 && votes > 1
	case sbr.LeaseMajority:
		return true // whichever gets the lease
	}
	return false
}
