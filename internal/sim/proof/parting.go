// Parting: a node that leaves, and what groups that cannot hear each other know of it.

package proof

import (
	"slices"

	"github.com/kith-io/kith/membership"
)

// stage is how far a member has gone, as a view holds it.
type stage uint8

const (
	stays stage = iota
	leaving
	exiting
	removed
)

func (s stage) before() stage {
	if s == stays {
		return stays
	}
	return s - 1
}

// leaver is what a group knows of the one that leaves.
type leaver struct {
	node  int // from 1; 0: nobody leaves, as far as it knows
	stage stage
	aware bool // it has confirmed that it exits
}

// parting is which nodes leave, and which nodes are in groups that know the later stage.
type parting struct {
	node           int // -1: nobody
	earlier, later stage
	ahead          uint32
	confirmed      bool // if it knows that it exits, the others know that it does
	differ         bool // to some it counts no more
}

// as is what a group knows.
func (p *parting) as(group uint32) leaver {
	if p.node < 0 {
		return leaver{}
	}
	l := leaver{node: p.node + 1, stage: p.earlier}
	if group&p.ahead != 0 {
		l.stage = p.later
	}
	if l.stage == stays {
		return leaver{}
	}
	l.aware = l.stage == exiting && p.confirmed && (p.earlier == exiting || p.ahead>>p.node&1 == 1)
	return l
}

// leaves changes a view to what is known of the one that leaves.
func (p *parting) leaves(v *membership.View, s stage) {
	if p.node < 0 || s == stays {
		return
	}
	id := v.Members[p.node].ID
	switch s {
	case leaving:
		v.Members[p.node].Status = membership.Leaving
	case exiting:
		v.Members[p.node].Status = membership.Exiting
	case removed:
		about := func(a membership.Accusation) bool { return a.Observer == id || a.Subject == id }
		v.Members = slices.Delete(v.Members, p.node, p.node+1)
		v.Accusations = slices.DeleteFunc(v.Accusations, about)
		v.Unreachable.Remove(id)
	}
	v.Leader = v.RoleLeader("")
}

// stay returns those of a set that do not leave: a leaver has given back what it hosts.
func (p *parting) stay(set uint32) uint32 {
	if p.node < 0 {
		return set
	}
	return set &^ (1 << p.node)
}
