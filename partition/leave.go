// Leave: a node that leaves, or drains, gives its instances away while messages still come to it.

package partition

import (
	"context"
	"slices"
	"time"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/cluster"
	table "github.com/kith-io/kith/internal/core/partition"
)

// leave hands over what is hosted here while this node is a full member: its shards are given back afterwards, and
// with them the way to it.
func (h *hub) leave(ctx context.Context) error {
	defer h.left.Store(true)
	h.settle(ctx, seenByAll) // what others have placed here lately
	for moved := false; ; moved = true {
		if h.evacuate(ctx) == 0 {
			// Senders that have not heard of it still send here, and what is sent on comes back as long as the tables of
			// others say so.
			if moved {
				h.settle(ctx, seenInTheEnd)
			}
			return nil
		}
		h.ping()
		if !h.pause(ctx, lookBusy/2) {
			return ctx.Err()
		}
	}
}

// settle waits until all members have seen one state, at most for a time, and for seenByAll while a member cannot be
// reached: then they may not before that one is downed.
func (h *hub) settle(ctx context.Context, most time.Duration) {
	for began := h.node.Now(); h.node.Now().Sub(began) < most; {
		all, err := h.node.Converged(ctx)
		if err != nil || all || !h.pause(ctx, lookBusy/2) {
			return
		}
		if v := h.node.View(); v != nil && len(v.Unreachable) > 0 && h.node.Now().Sub(began) >= seenByAll {
			return
		}
	}
}

// How long a node that leaves waits for that: before it gives its instances away, and behind that. Gossip takes as
// long among a thousand members.
const (
	seenByAll    = time.Second
	seenInTheEnd = 3 * time.Second
)

// pause waits, and reports whether ctx goes on.
func (h *hub) pause(ctx context.Context, d time.Duration) bool {
	h.node.Wait(ctx, d, nil)
	return ctx.Err() == nil
}

// letGo has the shards of ears go from a node that drains, when none of its instances are left: what is sent to one
// would come to another node, which could take it for its own.
func (h *hub) letGo(ctx context.Context) {
	if _, here := h.pool.ShardAt(h.self); !here || !h.bare() {
		return
	}
	if all, err := h.node.Converged(ctx); all && err == nil && h.bare() {
		_ = h.pool.Linger(ctx, false) // it is tried again
	}
}

// bare reports whether no instance that ears hear for is here, and none is to come or to go as the table has it.
func (h *hub) bare() bool {
	rows := h.door.Table()
	for i := range rows {
		if rows[i].InForce.New != cluster.NewBuffers && names(&rows[i], h.self) {
			return false
		}
	}
	return !slices.ContainsFunc(h.list(), func(p *Partition) bool { return p.held.any() })
}

// evacuate asks for each instance here to be moved to the member that has the fewest. It returns how many are here that
// somebody may take.
func (h *hub) evacuate(ctx context.Context) (here int) {
	rows := table.Table(h.door.Table())
	for i := range rows {
		p := &rows[i]
		slot := p.SlotOf(h.self)
		if slot < 0 || p.Deleted {
			continue
		}
		if c, pending := p.Change(slot); pending {
			if !c.Complete {
				here++
			}
			continue
		}
		if to := h.fewest(rows, p); !to.IsZero() {
			here++
			_ = h.door.Move(ctx, p.Path, slot, to) // it is tried again
		}
	}
	return here
}

// fewest returns the member that may take an instance of a partition and has the fewest of all, zero for none. One to
// which no way is known has opened no partition, or drains: it would never be ready.
func (h *hub) fewest(rows table.Table, p *State) (best kith.ID) {
	v, least := h.node.View(), 0
	word, _ := v.MetadataValue(table.DrainKey)
	drain := table.ReadDrains(word)
	for _, m := range v.Members {
		if m.ID == h.self || drain.Has(m.ID) {
			continue
		}
		if m.Status != kith.Up || !m.HasRole(p.Role) || !v.Reachable(m.ID) || names(p, m.ID) {
			continue
		}
		if _, ok := h.pool.ShardAt(m.ID); !ok {
			continue
		}
		has := 0
		for i := range rows {
			if names(&rows[i], m.ID) {
				has++
			}
		}
		if _, ok := h.pool.ShardAt(m.ID); !ok {
			has += cluster.MaxPartitions // it has just joined: nothing goes there yet
		}
		if best.IsZero() || has < least {
			best, least = m.ID, has
		}
	}
	return best
}

// names reports whether an instance of a partition, or a change of it, names a node.
func names(p *State, id kith.ID) bool {
	return p.SlotOf(id) >= 0 || slices.ContainsFunc(p.Changes, func(c Change) bool { return c.To == id })
}
