// Judge: what a node does with a message for an instance, and what it has to do for a partition, both by the table as
// it has it. Of hand-offs that do not buffer.

package partition

import (
	"math"
	"time"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/cluster"
)

// endGrace is for how long an instance that ends, and goes nowhere, handles what comes: until senders know.
const endGrace = time.Second

// verdict is what becomes of a message.
type verdict uint8

const (
	takes   verdict = iota // the instance here handles it
	goes                   // it is sent on
	refuses                // it is refused
)

// target is the node to which a sender sends what is for a slot; zero: there is no instance.
func target(p *cluster.Partition, slot int) kith.ID {
	if slot < 0 || slot >= len(p.Instances) {
		return kith.ID{}
	}
	if c, ok := p.Change(slot); ok && c.Complete {
		return c.To
	}
	return p.Instances[slot]
}

// lasting reports whether a slot has an instance that does not end.
func lasting(p *cluster.Partition, slot int) bool {
	if p.Instances[slot].IsZero() {
		return false
	}
	c, ok := p.Change(slot)
	return !ok || !c.To.IsZero()
}

// judge says what a node does with a message for a slot that was sent by the table of a stamp. over means that the
// change that is pending from here is over on this node: its new node is ready, or the instance has ended; here that
// the instance lives on this node. The new node takes nothing that was sent before the change: the old one may be the
// only one that handles. Where that one ends first a message makes no instance but on the node that hosts it by its own
// table: the new one is asked to. The message may be meant for another node, of which this one has the shard since, or
// the leader may have turned the change back, and the table names a node that has no instance.
func judge(p *cluster.Partition, self kith.ID, slot int, at stamp, over, here bool) (verdict, kith.ID, reason) {
	host := kith.ID{}
	if slot < len(p.Instances) {
		host = p.Instances[slot]
	}
	c, pending := p.Change(slot)
	switch {
	case pending && c.From == self && c.To.IsZero():
		if over || c.Complete {
			return refuses, c.To, noInstance
		}
		return takes, self, none
	case pending && c.From == self && !over && !c.Complete:
		return early(p, c.To, self)
	case pending && c.From == self:
		return late(p, c.To)
	case pending && c.To == self && !c.Complete && changeOf(&c).above(at):
		if p.InForce.Old == cluster.OldDrops {
			return refuses, self, moving
		}
		return goes, c.From, none
	case host == self, pending && c.To == self && c.Complete:
		return takes, self, none
	case pending && c.To == self, at.above(stampOf(p)): // the sender knows more: that the instance is here
		if p.InForce.Old == cluster.OldDrops && !here {
			return refuses, self, moving
		}
		return takes, self, none
	}
	return late(p, target(p, slot))
}

// early is what the old node does before the new one is ready.
func early(p *cluster.Partition, to, self kith.ID) (verdict, kith.ID, reason) {
	switch p.InForce.Old {
	case cluster.OldForwards:
		return goes, to, none
	case cluster.OldDrops:
		return refuses, to, moving
	}
	return takes, self, none
}

// late is what a node does that hosts the instance no more, or never did.
func late(p *cluster.Partition, to kith.ID) (verdict, kith.ID, reason) {
	switch {
	case to.IsZero():
		return refuses, to, noInstance
	case p.InForce.Late == cluster.LateDrops:
		return refuses, to, moved
	}
	return goes, to, none
}

// rankOf is the rank of the fence of an instance that a node makes now, for a message that was sent by the table of a
// stamp. No other node gets it, and that of a node to which the slot goes is higher: the leader may place an instance
// and begin its hand-off in one epoch, and this node may see the second of two tables only.
func rankOf(p *cluster.Partition, self kith.ID, slot int, sent stamp) stamp {
	c, pending := p.Change(slot)
	switch {
	case pending && c.From == self:
		return stamp{c.Epoch - 1, math.MaxUint32}
	case pending && c.To == self:
		return changeOf(&c)
	case slot < len(p.Instances) && p.Instances[slot] == self, !sent.above(stampOf(p)):
		return stampOf(p)
	}
	return stamp{sent.epoch - 1, math.MaxUint32 - 1} // by that table it may be handed over already
}

// act is what a node does for the instance of a slot.
type act uint8

const (
	begins    act = iota // it makes the instance
	ends                 // it ends the instance
	asks                 // it asks the new node to make the instance
	completes            // it says that the change is complete
	pulls                // it moves the shard of the instance here, of hand-offs that buffer
	measures             // it measures the load of all instances
)

// duty is one of them.
type duty struct {
	act    act
	slot   int
	change cluster.PartitionChange // of asks and completes, and of ends that belong to one
}

// known is what a node knows of its instances of a partition, by slot.
type known struct {
	here  map[int]stamp // that live here, and of which table they are
	over  map[int]stamp // changes that are over on this node
	asked map[int]stamp // changes for which this node has asked the new one
	seen  map[int]seen  // changes from here, and since when they are known
}

type seen struct {
	change stamp
	at     time.Duration
}

func (k *known) isOver(c *cluster.PartitionChange) bool {
	at, ok := k.over[c.Slot]
	return ok && at == changeOf(c)
}

// gaveUp reports whether the instance of a slot was to go to another node, which may have made its own.
func (k *known) gaveUp(slot int) bool {
	at, ok := k.asked[slot]
	return ok && !k.here[slot].above(at)
}

// duties is what a node has to do for a partition now. soon is when to look again, if nothing changes; zero: never.
func duties(p *cluster.Partition, self kith.ID, k *known, now time.Duration) (list []duty, soon time.Duration) {
	for slot := range cluster.MaxInstances {
		_, here := k.here[slot]
		c, pending := p.Change(slot)
		hosts := slot < len(p.Instances) && p.Instances[slot] == self
		switch {
		case p.InForce.New == cluster.NewBuffers || p.Epoch == 0:
			if here {
				list = append(list, duty{act: ends, slot: slot})
			}
		case pending && c.From == self && c.To.IsZero():
			if s, ok := k.seen[slot]; !ok || s.change != changeOf(&c) {
				k.seen[slot] = seen{changeOf(&c), now}
			}
			wait := k.seen[slot].at + endGrace - now
			switch {
			case here && wait > 0:
				soon = max(wait, time.Millisecond)
			case here:
				list = append(list, duty{ends, slot, c})
			case !c.Complete:
				list = append(list, duty{completes, slot, c})
			}
		case pending && c.From == self:
			list = append(list, handing(p, k, c, here)...)
		case pending && c.To == self:
		case hosts && here && k.gaveUp(slot): // the new one had a later fence, and is gone: so begin anew
			list = append(list, duty{act: ends, slot: slot})
		case hosts && !here:
			list = append(list, duty{act: begins, slot: slot})
		case here && !hosts && !k.here[slot].above(stampOf(p)):
			list = append(list, duty{act: ends, slot: slot})
		}
	}
	return list, soon
}

// handing is what the old node does for an instance that goes to another one.
func handing(p *cluster.Partition, k *known, c cluster.PartitionChange, here bool) (list []duty) {
	over := c.Complete || k.isOver(&c)
	drops := here && p.InForce.Old == cluster.OldDrops
	later := k.here[c.Slot].above(stampOf(p)) // not the one that goes: it is back by a table that this node has not seen
	switch {
	case !over && drops: // the new one begins when this one has ended
	case !over:
		list = append(list, duty{asks, c.Slot, c})
	case !c.Complete:
		list = append(list, duty{completes, c.Slot, c})
	}
	switch {
	case later:
	case here && over, drops:
		list = append(list, duty{ends, c.Slot, c})
	case !here && !over && p.InForce.Old == cluster.OldKeeps:
		list = append(list, duty{act: begins, slot: c.Slot})
	}
	return list
}
