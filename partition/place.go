// Place: waiting for what the leader makes of a partition, and moves by hand.

package partition

import (
	"context"
	"errors"
	"fmt"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/cluster"
)

// until waits until done, or until ctx or the node has ended.
func (p *Partition) until(ctx context.Context, done func(r *row) (bool, error)) error {
	for node := p.hub.node; ; {
		if over, err := done(p.row.Load()); over || err != nil {
			return err
		}
		node.Wait(ctx, lookBusy/10, nil)
		switch {
		case node.Err() != nil:
			return node.Err()
		case ctx.Err() != nil && p.Err() != nil:
			return fmt.Errorf("%w: %w", p.Err(), ctx.Err())
		case ctx.Err() != nil:
			return fmt.Errorf("partition: %q: %w", p.path, ctx.Err())
		}
	}
}

// Known waits until the leader has placed the partition and this node knows a way to each of its instances. There may
// be fewer of them than are wanted, when there are too few nodes. Errors: the context's, with that of Err where there
// is one; Err's at once where the definition of this node does not stand, but for ErrNoRules: the table that has the
// rules may be on its way; and why the node has ended.
func (p *Partition) Known(ctx context.Context) error {
	return p.until(ctx, func(r *row) (bool, error) {
		if err := p.Err(); err != nil && !errors.Is(err, ErrNoRules) {
			return false, err
		}
		if !r.ok || r.Epoch == 0 || r.Has() == 0 {
			return false, nil
		}
		for slot, id := range r.Instances {
			if id.IsZero() {
				continue
			}
			if r.InForce.New == cluster.NewBuffers {
				room := p.room.Load()
				if room == nil {
					return false, nil
				}
				if home, ok := room.home(slot); !ok || home != id {
					return false, nil
				}
			} else if _, ok := p.hub.ear(id, slot, p.path); !ok {
				return false, nil
			}
		}
		return true, nil
	})
}

// Move hands the instance of a slot over to another node, and waits until the table has it there. Errors:
// cluster.ErrUnknownPartition for a slot without instance, cluster.ErrBadDefinition when the node hosts one of the
// partition, cluster.ErrMovePending while the leader has not looked at another move, ErrNotMoved; the context's: the
// move may still come about.
func (p *Partition) Move(ctx context.Context, slot int, to kith.ID) error {
	before := p.row.Load().Version
	if err := p.hub.door.Move(ctx, p.path, slot, to); err != nil {
		return err
	}
	return p.until(ctx, func(r *row) (bool, error) {
		c, pending := r.Change(slot)
		switch {
		case r.Version <= before, pending && c.To == to: // not seen yet, or on its way
			return false, nil
		case !pending && slot < len(r.Instances) && r.Instances[slot] == to:
			return true, nil
		case r.MoveSlot == slot && r.MoveTo == to && r.Heeded < r.Version:
			return false, nil
		}
		return false, fmt.Errorf("%w: %q: instance %d to %v", ErrNotMoved, p.path, slot, to)
	})
}
