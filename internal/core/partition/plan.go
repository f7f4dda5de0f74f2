// Plan: what the leader makes of the table when all members have seen it: circular placement with the least overlap, as
// few moves as possible, no move because somebody joins (PRT-1, PRT-2, PRT-3).

package partition

import (
	"slices"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/peer"
)

// Plan returns the table that the leader with that up-number writes next, t itself when there is nothing to do. members
// is sorted, as in a state. load says what a partition carries, for CountScaled; nil: what its hint says. drain are the
// members that drain, sorted: they keep what they have until they ask for a move, and are given nothing. It does in
// this order, for all paths:
//
// Changes that are complete enter the table. One needs no hand-off when its old node is gone; it is given up when its
// new node is gone, leaves or drains, and another node is found below. Where the new node drains and one instance may
// live it is turned back, for the old one may have ended; where one may handle it goes on, and the new node hands the
// instance over behind it. Instances of members that are gone leave their slot empty. Where nothing is pending, the
// definition comes into force, and slots beyond what is wanted end, the last first. Instances of those that leave, or
// have lost the role, are handed over. Empty slots are filled, the first first, without a hand-off, for nobody is there
// to hand over. Last a move that a programmer asked for.
//
// The node is the one with the fewest instances of all partitions among those that may, and of these the first in
// address order: so placement goes round the ring. Where what is placed anew would overlap less elsewhere, because
// roles or what stays leave little choice, it goes there. A node hosts at most one instance of a partition. While the
// cluster prepares for its shutdown nothing is planned.
func (t Table) Plan(members []cluster.Member, writer uint32, load func(path string) int, drain ...peer.ID) Table {
	if len(t) == 0 || cluster.Preparing(members) {
		return t
	}
	p := planner{members: members, drain: drain, load: load, next: slices.Clone(t), loads: make([]int, len(members)),
		changed: make([]bool, len(t)), waits: make([]bool, len(t))}
	for i := range p.next {
		if p.next[i].Epoch < MaxEpoch {
			p.settle(i)
		}
	}
	p.weigh()
	for i := range p.next {
		if p.next[i].Epoch < MaxEpoch {
			p.place(i)
		}
	}
	p.even()
	for i := range p.next {
		p.heed(i)
	}
	any := false
	for i, changed := range p.changed {
		if any = any || changed; changed {
			p.seal(&p.next[i], writer)
		}
	}
	if !any {
		return t
	}
	return p.next
}

// settle brings one partition up to date: what is complete, which members are gone, what is wanted, what ends.
func (p *planner) settle(i int) {
	p.resolve(i)
	is := &p.next[i]
	for slot := range is.Instances {
		if id := is.Instances[slot]; !id.IsZero() && !p.lives(id) {
			is = p.change(i)
			is.Instances[slot] = peer.ID{}
		}
	}
	if p.pending += len(is.Changes); len(is.Changes) > 0 {
		p.waits[i] = true
		return // what is defined meanwhile waits
	}
	p.enforce(i)
	target := p.target(is)
	staying := 0
	for _, id := range is.Instances {
		if p.may(id, is.Role, false) {
			staying++
		}
	}
	for slot := len(is.Instances) - 1; slot >= 0 && staying > target; slot-- {
		if p.may(is.Instances[slot], is.Role, false) && p.begin(i, slot, peer.ID{}) {
			staying--
		}
	}
}

// resolve takes out the changes of a partition that are over.
func (p *planner) resolve(i int) {
	for k := 0; k < len(p.next[i].Changes); {
		c := p.next[i].Changes[k]
		arrived := !c.To.IsZero() && p.lives(c.To)
		switch {
		case c.Complete || !p.lives(c.From):
			is := p.change(i)
			if is.Instances[c.Slot] = (peer.ID{}); arrived {
				is.Instances[c.Slot] = c.To
			}
		case c.To.IsZero() || p.may(c.To, p.next[i].Role, true) && (!p.drain.Has(c.To) || oneHandles(&p.next[i])):
			k++
			continue
		case p.may(c.To, p.next[i].Role, true) && endsFirst(&p.next[i]):
			p.turnBack(i, k)
			k++
			continue
		}
		is := p.change(i)
		is.Changes = append(is.Changes[:k], is.Changes[k+1:]...) // a list of its own
	}
}

// endsFirst reports whether an instance ends before the next one of its slot begins, by orders alone.
func endsFirst(is *cluster.Partition) bool {
	return is.InForce.Old == cluster.OldDrops && is.InForce.New != cluster.NewBuffers
}

// oneHandles reports whether two instances of a slot may live, and one of them handles: the new one from when the old
// node sends on what comes. Where such a hand-off is given up the old one would handle again before the new one has
// heard of it.
func oneHandles(is *cluster.Partition) bool {
	return is.InForce.Old == cluster.OldForwards && is.InForce.New != cluster.NewBuffers
}

// turnBack has a change to a member that drains go the other way, where one instance of a slot lives at a time: either
// node may have it, so it is taken for complete, and that member hands the instance back, if it has it. Where the old
// node drains as well the change goes on, and the new one hands the instance to another member later.
func (p *planner) turnBack(i, k int) {
	if c := p.next[i].Changes[k]; p.may(c.From, p.next[i].Role, true) && !p.drain.Has(c.From) {
		is := p.change(i)
		is.Instances[c.Slot] = c.To
		is.Changes[k] = cluster.PartitionChange{Path: c.Path, Slot: c.Slot, From: c.To, To: c.From}
	}
}

// enforce brings the definition into force, where nothing is pending.
func (p *planner) enforce(i int) {
	is := &p.next[i]
	wanted := 0
	if !is.Deleted {
		load := is.Hint
		if p.load != nil {
			load = p.load(is.Path)
		}
		wanted = is.Count.Of(p.eligible(is.Role), load)
	}
	if is.Epoch == 0 || wanted != is.Wanted || is.Handoff != is.InForce {
		is = p.change(i)
		is.Wanted, is.InForce = wanted, is.Handoff
	}
}

// target is how many instances a partition can have.
func (p *planner) target(is *cluster.Partition) int { return min(is.Wanted, p.eligible(is.Role)) }

// weigh counts the instances of each member as they are when all changes are complete.
func (p *planner) weigh() {
	for i := range p.next {
		is := &p.next[i]
		for slot, id := range is.Instances {
			if c, ok := is.Change(slot); ok {
				id = c.To
			}
			if !id.IsZero() {
				p.all++
				p.count(id, 1)
			}
		}
	}
}

// place finds nodes for the instances of one partition that need one.
func (p *planner) place(i int) {
	is := &p.next[i]
	waits := p.waits[i]
	target, final := p.target(is), 0 // instances when all is complete, those that have to go apart
	for slot, id := range is.Instances {
		if c, ok := is.Change(slot); ok {
			id = c.To
		}
		if p.may(id, is.Role, waits) {
			final++
		}
	}
	for slot := range is.Instances {
		id := is.Instances[slot]
		if _, ok := is.Change(slot); ok || id.IsZero() || p.may(id, is.Role, waits) {
			continue
		}
		to := peer.ID{}
		if final < target {
			to = p.choose(is)
		}
		if p.begin(i, slot, to) {
			p.count(id, -1)
			if is = &p.next[i]; to.IsZero() {
				p.all--
				continue
			}
			p.count(to, 1)
			p.fresh = append(p.fresh, fresh{i, slot})
			final++
		}
	}
	p.fill(i, target-final)
}

// fill places up to n instances in the first empty slots.
func (p *planner) fill(i, n int) {
	for slot := 0; n > 0 && slot < cluster.MaxInstances && p.all < cluster.MaxAllInstances; slot++ {
		is := &p.next[i]
		if slot < len(is.Instances) && !is.Instances[slot].IsZero() {
			continue
		}
		to := p.choose(is)
		if to.IsZero() {
			return
		}
		if is = p.change(i); slot == len(is.Instances) {
			is.Instances = append(is.Instances, peer.ID{})
		}
		is.Instances[slot] = to
		p.count(to, 1)
		p.fresh = append(p.fresh, fresh{i, slot})
		p.all++
		n--
	}
}

// heed begins the move that a programmer has asked for, once, or finds that it cannot be.
func (p *planner) heed(i int) {
	is := &p.next[i]
	if len(is.Changes) > 0 || is.MoveTo.IsZero() || is.Heeded >= is.Version || is.Epoch >= MaxEpoch {
		return
	}
	slot, to := is.MoveSlot, is.MoveTo
	if slot < len(is.Instances) && !is.Instances[slot].IsZero() && is.SlotOf(to) < 0 && p.takes(p.member(to), is.Role) {
		from := is.Instances[slot]
		if !p.begin(i, slot, to) {
			return
		}
		p.count(from, -1)
		p.count(to, 1)
	}
	is = p.change(i)
	is.Heeded = is.Version
}

// choose returns the member with the fewest instances, and of these the first, that may host one of the partition and
// has none; zero when there is none.
func (p *planner) choose(is *cluster.Partition) peer.ID {
	best := -1
	for i := range p.members {
		m := &p.members[i]
		if (best < 0 || p.loads[i] < p.loads[best]) && p.takes(m, is.Role) && !names(is, m.ID) {
			best = i
		}
	}
	if best < 0 {
		return peer.ID{}
	}
	return p.members[best].ID
}

// begin makes a change pending, if there is room for one more.
func (p *planner) begin(i, slot int, to peer.ID) bool {
	if p.pending >= cluster.MaxPendingChanges {
		return false
	}
	p.pending++
	is := p.change(i)
	c := cluster.PartitionChange{Path: is.Path, Slot: slot, From: is.Instances[slot], To: to}
	is.Changes = append(is.Changes, c)
	for at := len(is.Changes) - 1; at > 0 && is.Changes[at-1].Slot > slot; at-- {
		is.Changes[at-1], is.Changes[at] = is.Changes[at], is.Changes[at-1]
	}
	return true
}
