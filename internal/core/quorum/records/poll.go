// Polls: answers of replicas, until those that count decide the newest history among them.

package records

import (
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
)

// poll gathers answers to one question.
type poll struct {
	all   peer.Set // that are asked: members of each set that was heard of
	heard []heard
}

// heard is the answer of one replica.
type heard struct {
	from peer.ID
	yes  bool
	x    *message
}

// add takes an answer in the place of an earlier one of that replica.
func (p *poll) add(from peer.ID, yes bool, x *message) {
	for _, id := range x.sets.members(x.stamp.Number) {
		p.all.Add(id)
	}
	for i := range p.heard {
		if p.heard[i].from == from {
			p.heard[i] = heard{from, yes, x}
			return
		}
	}
	p.heard = append(p.heard, heard{from, yes, x})
}

// said reports whether a replica has said yes.
func (p *poll) said(id peer.ID) bool {
	for i := range p.heard {
		if p.heard[i].from == id {
			return p.heard[i].yes
		}
	}
	return false
}

// newest returns the answer with the newest history, and whether those that have said yes decide it.
func (p *poll) newest() (*message, bool) {
	var best *message
	for i := range p.heard {
		if h := &p.heard[i]; h.yes && (best == nil || h.x.stamp.newer(best.stamp)) {
			best = h.x
		}
	}
	return best, best != nil && best.sets.decided(best.stamp.Number, p.said)
}

// fence returns the highest fence that anybody has promised.
func (p *poll) fence() (f route.Fence) {
	for i := range p.heard {
		if b := p.heard[i].x.promise; b.Fence.Compare(f) > 0 {
			f = b.Fence
		}
	}
	return f
}

// attempt returns the highest attempt that anybody has promised under a fence.
func (p *poll) attempt(f route.Fence) (n uint64) {
	for i := range p.heard {
		if b := p.heard[i].x.promise; b.Fence == f {
			n = max(n, b.Attempt)
		}
	}
	return n
}

// followed reports whether an entry was decided behind the last change of set, as far as a poll knows: a majority holds
// one under the same ballot. So it was, whenever each of them has said so.
func (p *poll) followed(s *Sets) bool {
	said := map[Ballot]int{}
	for i := range p.heard {
		if h := &p.heard[i]; h.yes && s.Now.Has(h.from) && h.x.stamp.Number > s.At {
			said[h.x.stamp.Ballot]++
		}
	}
	for _, n := range said { // in any order
		if n > len(s.Now)/2 {
			return true
		}
	}
	return s.At == 0
}
