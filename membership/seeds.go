// Seeds: contact points that a node which has begun without any is given later (JOIN-1, BOOT-3).

package membership

import (
	"fmt"
	"slices"

	"github.com/kith-io/kith/peer"
)

// SeedsCommand gives seeds to a node that is in no cluster, in the meaning of JoinCommand.Seeds: the first that answers
// admits it, and when this node heads the list it forms the cluster, as a first seed does. Another one adds its seeds
// in front of those before it; of all together at most MaxSeeds are asked. Errors: ErrJoined, ErrTooManySeeds,
// ErrSeedsOverridden, ErrNotMember of a node that has not begun to join.
type SeedsCommand struct {
	Seeds []peer.Addr
	// Told marks seeds of an operator: they replace all seeds before them, and those that are found later are refused.
	// ErrJoinPending: a member was asked to admit this node, which may be one already.
	Told bool
}

func (SeedsCommand) command() {}

func (j *joining) useSeeds(c SeedsCommand) error {
	switch {
	case j.phase == member:
		return ErrJoined
	case j.phase == idle:
		return ErrNotMember
	case len(c.Seeds) > MaxSeeds:
		return fmt.Errorf("%w: %d, at most %d", ErrTooManySeeds, len(c.Seeds), MaxSeeds)
	case j.ordered && !c.Told:
		return ErrSeedsOverridden
	case len(c.Seeds) == 0:
		return nil
	case c.Told && j.phase == pending:
		return fmt.Errorf("%w: %s", ErrJoinPending, j.target)
	case c.Told:
		j.forget()
	}
	j.awaits, j.head = false, c.Seeds[0]
	if c.Seeds[0] == j.self.Addr && !j.forming.never && !j.first {
		j.first, j.forming.looked = true, false
		j.in(timerSeed, j.cfg.SeedTimeout)
	}
	var list []peer.Addr
	for _, a := range slices.Concat(c.Seeds, j.seeds) {
		if a != j.self.Addr && !a.IsZero() && !slices.Contains(list, a) && len(list) < MaxSeeds {
			list = append(list, a)
		}
	}
	j.seeds = list
	j.forming.seedsFirst(list)
	if j.phase == probing {
		j.askAgain()
	}
	return nil
}

// forget lets go of all seeds that were found, and of forming a cluster as the first of them: an operator has others.
// What this node remembers stays.
func (j *joining) forget() {
	f := j.forming
	if f.tries {
		f.giveUpTrying()
	}
	j.ordered, j.first, j.head, j.seeds, f.contacts = true, false, peer.Addr{}, nil, nil
	f.meet(f.record.Others...)
}

// seedsFirst puts the seeds before the other contacts, with what is known of them.
func (f *forming) seedsFirst(seeds []peer.Addr) {
	next := make([]contact, 0, len(seeds)+len(f.contacts))
	for _, a := range seeds {
		if c := f.contact(a); c != nil {
			next = append(next, *c)
		} else {
			next = append(next, contact{addr: a})
		}
	}
	for i := range f.contacts {
		if c := &f.contacts[i]; !slices.Contains(seeds, c.addr) && len(next) < maxContacts {
			next = append(next, *c)
		}
	}
	f.contacts = next
}

// OwnAddressCommand tells that an address among the seeds is this node's own, spelled otherwise than the one that it
// goes by: it is no longer asked, and when it heads the list, this node is the first seed.
type OwnAddressCommand struct{ Addr peer.Addr }

func (OwnAddressCommand) command() {}

// ownAddress takes an address of this node out of its seeds.
func (j *joining) ownAddress(a peer.Addr) {
	i := slices.Index(j.seeds, a)
	if i < 0 || j.phase == idle {
		return
	}
	j.seeds = slices.Delete(j.seeds, i, i+1)
	j.forming.contacts = slices.DeleteFunc(j.forming.contacts, func(c contact) bool { return c.addr == a })
	if j.phase != probing {
		return
	}
	if j.head == a && !j.first {
		j.first, j.forming.looked = true, false
		j.in(timerSeed, j.cfg.SeedTimeout)
	}
	j.forming.tryForming()
}
