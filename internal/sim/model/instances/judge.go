// Judge: what a node does with a message for an instance, and what it has to do for a partition, as package partition
// has it.

package instances

import "github.com/kith-io/kith/cluster"

// Verdict is what becomes of a message.
type Verdict uint8

// Verdicts, in the order of package partition.
const (
	Takes   Verdict = iota // the instance here handles it
	Goes                   // it is sent on
	Refuses                // it is refused
)

// pending returns the change of a slot, and whether there is one.
func (p *Placed) pending(slot int) (c Change, ok bool) {
	c = p.Change[slot]
	return c, c.At != 0
}

// Target is the node to which a sender sends what is for a slot.
func (p *Placed) Target(slot int) uint8 {
	if c, ok := p.pending(slot); ok && c.Complete {
		return c.To
	}
	return p.Host[slot]
}

// Judge says what node self does with a message for a slot that was sent by the table of a stamp, and to which node it
// goes. over means that the change that is pending from here is over on this node, here that the instance lives here.
func (c *Config) Judge(p *Placed, self uint8, slot int, at Stamp, over, here bool) (Verdict, uint8) {
	ch, pending := p.pending(slot)
	knows := at > p.At && c.keeps(believesLater) // the sender knows more: that the instance is here
	switch {
	case pending && ch.From == self && ch.To == nobody:
		if over || ch.Complete {
			return Refuses, nobody
		}
		return Takes, self
	case pending && ch.From == self && !over && !ch.Complete:
		switch p.Way.Old {
		case cluster.OldForwards:
			return Goes, ch.To
		case cluster.OldDrops:
			return Refuses, ch.To
		}
		return Takes, self
	case pending && ch.From == self:
		return c.late(p, ch.To)
	case pending && ch.To == self && !ch.Complete && at < ch.At && c.keeps(notBeforeTheChange):
		if p.Way.Old == cluster.OldDrops {
			return Refuses, self
		}
		return Goes, ch.From
	case p.Host[slot] == self, pending && ch.To == self && ch.Complete && c.keeps(takesEarly):
		return Takes, self
	case pending && ch.To == self && c.keeps(takesEarly), knows:
		if p.Way.Old == cluster.OldDrops && !here && c.keeps(madeByRequest) {
			return Refuses, self
		}
		return Takes, self
	}
	return c.late(p, p.Target(slot))
}

// late is what a node does that hosts the instance no more, or never did.
func (c *Config) late(p *Placed, to uint8) (Verdict, uint8) {
	if to == nobody || p.Way.Late == cluster.LateDrops || !c.keeps(sendsOnLate) {
		return Refuses, to
	}
	return Goes, to
}

// RankOf is the rank of the fence of an instance that a node makes now, for a message that was sent by the table of a
// stamp.
func (c *Config) RankOf(p *Placed, self uint8, slot int, sent Stamp) Stamp {
	ch, pending := p.pending(slot)
	switch {
	case !c.keeps(ranksApart):
		return max(p.At, sent)
	case pending && ch.From == self:
		return StampOf(ch.At.epoch()-1, 7)
	case pending && ch.To == self:
		return ch.At
	case p.Host[slot] == self, sent <= p.At:
		return p.At
	}
	return StampOf(sent.epoch()-1, 6)
}

// Act is what a node does for the instance of a slot.
type Act uint8

// Acts, in the order of package partition.
const (
	Begins    Act = iota // it makes the instance
	Ends                 // it ends the instance
	Asks                 // it asks the new node to make the instance
	Completes            // it says that the change is complete
)

// Duty is one of them.
type Duty struct {
	Act  Act
	Slot int
	Of   bool // a change
}

// Duties is what a node has to do for a partition. here are the stamps of the instances on it, 0 for none; over the
// changes that are over on it; asked those for which it has asked the new node. waits says that an instance that ends,
// and goes nowhere, still handles what comes.
func (c *Config) Duties(p *Placed, self uint8, here, over, asked [slots]Stamp, waits bool) (list []Duty) {
	for slot := range slots {
		is := here[slot] != 0
		ch, pending := p.pending(slot)
		switch {
		case p.Way.New == cluster.NewBuffers || p.At == 0:
			if is {
				list = append(list, Duty{Act: Ends, Slot: slot})
			}
		case pending && ch.From == self && ch.To == nobody:
			switch {
			case is && waits:
			case is:
				list = append(list, Duty{Ends, slot, true})
			case !ch.Complete:
				list = append(list, Duty{Completes, slot, true})
			}
		case pending && ch.From == self:
			list = append(list, c.handing(p, slot, ch, here[slot], over[slot] == ch.At)...)
		case pending && ch.To == self:
		case p.Host[slot] == self && is && asked[slot] >= here[slot] && c.keeps(anewAfterwards):
			list = append(list, Duty{Act: Ends, Slot: slot})
		case p.Host[slot] == self && !is:
			list = append(list, Duty{Act: Begins, Slot: slot})
		case is && p.Host[slot] != self && (here[slot] <= p.At || !c.keeps(laterIsSpared)):
			list = append(list, Duty{Act: Ends, Slot: slot})
		}
	}
	return list
}

// handing is what the old node does for an instance that goes to another one.
func (c *Config) handing(p *Placed, slot int, ch Change, at Stamp, noted bool) (list []Duty) {
	here, over := at != 0, ch.Complete || noted
	drops := here && p.Way.Old == cluster.OldDrops
	switch {
	case !over && drops && c.keeps(endsFirst):
	case !over:
		list = append(list, Duty{Asks, slot, true})
	case !ch.Complete:
		list = append(list, Duty{Completes, slot, true})
	}
	switch {
	case at > p.At && c.keeps(laterIsSpared):
	case here && over, drops:
		list = append(list, Duty{Ends, slot, true})
	case !here && !over && p.Way.Old == cluster.OldKeeps && c.keeps(oldGoesOn):
		list = append(list, Duty{Act: Begins, Slot: slot})
	}
	return list
}
