// Table: the part of the model that is the code itself: what a leader plans, and what two tables come to.

package instances

import (
	"fmt"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/internal/core/partition"
	"github.com/kith-io/kith/peer"
)

// path names the partition.
const path = "p"

// ids are the nodes, in address order; behind them nobody.
var ids = func() (all [nodes + 1]peer.ID) {
	for i := range nodes {
		all[i] = peer.ID{Addr: peer.MustAddr(fmt.Sprintf("10.0.0.%d:7355", i+1)), Inc: uint64(i + 1)}
	}
	return all
}()

// numberOf is the other way round.
func numberOf(id peer.ID) uint8 {
	for i, is := range ids {
		if is == id {
			return uint8(i)
		}
	}
	panic("a node that is none")
}

// partitionOf returns a view as the table has it.
func (v *view) partitionOf(way cluster.Handoff, wanted uint8) cluster.Partition {
	p := cluster.Partition{Version: uint64(v.version), DefinedBy: ids[v.by], Deleted: v.deleted, MoveSlot: int(v.slot),
		MoveTo: ids[v.to], Epoch: uint64(v.At.epoch()), Writer: uint32(v.At & 7), Wanted: int(v.Wanted), InForce: v.Way,
		Heeded: uint64(v.Heeded)}
	p.Path, p.Count, p.Handoff = path, partition.Exactly(int(wanted)), way
	n := slots
	for n > 0 && v.Host[n-1] == nobody {
		n--
	}
	for slot := range n {
		p.Instances = append(p.Instances, ids[v.Host[slot]])
	}
	for slot, c := range v.Change {
		if c.At != 0 {
			p.Changes = append(p.Changes, cluster.PartitionChange{Path: path, Slot: slot, From: ids[c.From], To: ids[c.To],
				Epoch: uint64(c.At.epoch()), Writer: uint32(c.At & 7), Complete: c.Complete})
		}
	}
	return p
}

// placedOf is the other way round.
func placedOf(p *cluster.Partition) (v Placed) {
	v = Placed{At: StampOf(uint8(p.Epoch), uint8(p.Writer)), Way: p.InForce, Wanted: uint8(p.Wanted),
		Heeded: uint8(p.Heeded), Host: [slots]uint8{nobody, nobody}}
	for slot, id := range p.Instances {
		v.Host[slot] = numberOf(id)
	}
	for _, c := range p.Changes {
		v.Change[c.Slot] = Change{StampOf(uint8(c.Epoch), uint8(c.Writer)), numberOf(c.From), numberOf(c.To), c.Complete}
	}
	return v
}

// membersOf returns the members of a view.
func (v *view) membersOf() (list []cluster.Member) {
	for i, status := range v.status {
		m := cluster.Member{ID: ids[i], UpNumber: uint32(i + 1)}
		switch status {
		case up:
			m.Status = cluster.Up
		case leaving:
			m.Status = cluster.Leaving
		case exiting:
			m.Status = cluster.Exiting
		case down:
			m.Status = cluster.Down
		}
		list = append(list, m)
	}
	return list
}

// plans are what leaders have planned: one plan is like the next.
type plans struct {
	way    cluster.Handoff
	wanted uint8
	made   map[planned]view
}

type planned struct {
	view
	by int
}

// plan returns a view after one pass of leader x over it: the table, and leavers that are done.
func (m *plans) plan(v view, x int, keepsNamed, knows, turns bool) view {
	key := planned{v, x}
	if next, ok := m.made[key]; ok {
		return next
	}
	next := v
	gave := !turns && v.givesUp()
	table := partition.Table{v.partitionOf(m.way, m.wanted)}
	for i, status := range v.status {
		if status == leaving && (!table.Names(ids[i]) || !keepsNamed) {
			next.status[i] = exiting
		}
	}
	var drain peer.Set
	for i := range nodes {
		if knows && v.who.has(i) {
			drain = append(drain, ids[i])
		}
	}
	table = table.Plan(next.membersOf(), uint32(x+1), nil, drain...)
	next.Placed = placedOf(&table[0])
	if gave && next.At == v.At {
		next.At = StampOf(v.At.epoch()+1, uint8(x+1))
	}
	m.made[key] = next
	return next
}

// givesUp takes hand-offs to members that drain out of the table, as if nobody could have begun them, and reports
// whether there was one.
func (v *view) givesUp() (gave bool) {
	for slot, c := range v.Change {
		if c.At != 0 && c.To != nobody && !c.Complete && v.who.has(int(c.To)) {
			v.Change[slot], gave = Change{}, true
		}
	}
	return gave
}

// announces has x write whether it drains, whenever its view has changed: another one that wrote at the same time may
// not have known.
func (v *view) announces(x int, drain bool) {
	if v.status[x] == up && v.who.has(x) != drain {
		v.drains = drains{v.who ^ only(x), v.said + 1, uint8(x)}
	}
}

// merge joins two views.
func (c *Config) merge(a, b *view) view {
	v := *a
	if a.version < b.version || a.version == b.version && ids[a.by].Compare(ids[b.by]) < 0 {
		v.defined = b.defined
	}
	if a.said < b.said || a.said == b.said && ids[a.writer].Compare(ids[b.writer]) < 0 {
		v.drains = b.drains
	}
	switch x, y := a.At, b.At; {
	case x == y:
		for slot := range slots {
			if c.keeps(completeJoins) {
				v.Change[slot].Complete = a.Change[slot].Complete || b.Change[slot].Complete
			}
		}
	case x.epoch() < y.epoch(), x.epoch() == y.epoch() && x < y && c.keeps(writerBreaksTies):
		v.Placed = b.Placed
	}
	for i := range nodes {
		v.status[i] = max(a.status[i], b.status[i])
	}
	return v
}
