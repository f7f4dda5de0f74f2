// Measure: the node of the first instance asks the others what they have handled (PRT-5).

package partition

import (
	"context"
	"fmt"
	"time"

	"github.com/kith-io/kith"
	table "github.com/kith-io/kith/internal/core/partition"
	"github.com/kith-io/kith/wire"
)

// measureDue has the load of all instances measured, where this node hosts the first, and returns when to look again.
func measureDue(ctx context.Context, p *Partition, r *row) time.Duration {
	g := &p.gauge
	if !p.cfg.measures() || !r.ok || r.Deleted || len(r.Changes) > 0 || r.first() != p.hub.self {
		return lookIdle
	}
	now := p.hub.node.Now()
	if wait := g.next.Sub(now); wait > 0 {
		return wait
	}
	g.next = now.Add(gaugeEvery)
	p.tasks.start(task{measures, 0}, func() { sample(ctx, p, r) })
	return gaugeEvery
}

// first is the node of the instance with the lowest slot, zero for none.
func (r *row) first() kith.ID {
	for _, id := range r.Instances {
		if !id.IsZero() {
			return id
		}
	}
	return kith.ID{}
}

// sample asks the nodes of all instances what they have handled, and defines the partition anew where another number
// carries the load.
func sample(ctx context.Context, p *Partition, r *row) {
	g := &p.gauge
	within, cancel := p.hub.node.Within(ctx, gaugeEvery/2)
	defer cancel()
	totals, nodes := map[kith.ID]uint64{}, 0
	for slot, id := range r.Instances {
		if id.IsZero() {
			continue
		}
		nodes++
		if n, err := handledAt(within, p, id, slot); err == nil {
			totals[id] = n
		}
	}
	load, ok := g.take(p.hub.node.Now(), totals, nodes)
	if !ok {
		return
	}
	g.load.Store(int64(load))
	hint, ok := g.follow(r.Count, r.Hint, load)
	rows := table.Table(p.hub.door.Table())
	i, found := rows.Find(p.path)
	if !ok || !found || rows[i].Deleted || rows[i].PartitionDefinition != r.PartitionDefinition {
		return // somebody has defined it meanwhile
	}
	d := r.PartitionDefinition
	d.Hint = hint
	if err := p.hub.door.Define(ctx, d); err != nil {
		p.hub.log.Warn("the number of instances cannot follow the load", "event", "partition-load", "path", p.path,
			"load", load, "error", err)
		return
	}
	p.hub.log.Info("the number of instances follows the load", "event", "partition-load", "path", p.path, "load", load,
		"instances", r.Count.Of(0, hint), "before", r.Count.Of(0, r.Hint))
}

// handledAt asks the node of an instance how many calls its instances have handled in all.
func handledAt(ctx context.Context, p *Partition, node kith.ID, slot int) (uint64, error) {
	if node == p.hub.self {
		return p.count.all(p.room.Load()), nil
	}
	id, ok := p.hub.ear(node, slot, p.path)
	if !ok {
		return 0, ErrUnreachable
	}
	f := frame{kind: isGauge, at: stampOf(&p.row.Load().State), from: p.hub.self}
	b, err := p.hub.pool.Ask(ctx, appendFrame(nil, &f), id, nil)
	if err != nil {
		return 0, err
	}
	rd := wire.NewReader(wire.Kind(0), b)
	n := rd.U64()
	if err := rd.Done(); err != nil {
		return 0, fmt.Errorf("%w: %w", errFrame, err)
	}
	return n, nil
}
