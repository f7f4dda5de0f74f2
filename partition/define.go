// Define: how the definition of this node gets into the table, and which nodes are notified where two differ.

package partition

import (
	"context"
	"fmt"
	"time"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/cluster"
	table "github.com/kith-io/kith/internal/core/partition"
)

// NewBuffers is the option of hand-offs that keep the order (Handoff.New).
const NewBuffers = cluster.NewBuffers

// seenTime is how long a definition of this node is waited for in its table.
const seenTime = time.Second

// wish returns what this node wants the partition to be: false where it takes the rules of one above, and none is
// defined. A load that is measured is that of the table.
func (p *Partition) wish(rows table.Table, r *row) (Definition, bool) {
	if !p.cfg.inherits() {
		d := p.cfg.definition()
		if p.cfg.measures() && r.ok && !r.Deleted && r.Count.Kind == cluster.CountScaled {
			d.Hint = r.Hint
		}
		return d, true
	}
	above := rows.Of(table.Above(p.path))
	if above == nil {
		return Definition{}, false
	}
	d := above.PartitionDefinition
	d.Path = p.path
	return d, true
}

// define defines the partition once this node is Up, and follows what others make of it. It reports whether there is
// nothing left to do.
func (p *Partition) define(ctx context.Context, rows table.Table, r *row) bool {
	want, ok := p.wish(rows, r)
	if !ok {
		p.fail(fmt.Errorf("%w: %q", ErrNoRules, p.path))
		return true // a change of the table wakes
	}
	live := r.ok && !r.Deleted
	switch {
	case p.said != nil && !p.stood && p.hub.node.Now().Sub(p.since) < seenTime && !(live && r.PartitionDefinition == want):
		return false // the table is that of before
	case p.said != nil && !live:
		p.fail(fmt.Errorf("%w: %q", ErrUndefined, p.path))
		return true
	case live && r.PartitionDefinition == want:
		p.said, p.stood = &want, true
		p.err.Store(nil)
		return true
	case p.said != nil && *p.said == want:
		p.differs(want, r)
		return true
	case p.said != nil && r.PartitionDefinition != *p.said: // it follows one above, but was defined by somebody
		p.differs(want, r)
		return true
	}
	if m, ok := p.hub.node.View().SelfMember(); !ok || m.Status != kith.Up {
		return false
	}
	if err := p.hub.door.Define(ctx, want); err != nil {
		p.fail(err)
		return false
	}
	if live && p.said == nil {
		p.hub.log.Warn("another node has defined this partition differently: the definition of this node stands now",
			"event", "partition-differs", "path", p.path, "by", r.DefinedBy, "error", differing(want, r).Error())
	}
	p.said, p.stood, p.since = &want, false, p.hub.node.Now()
	p.err.Store(nil)
	return false
}

// differs notes that another definition stands.
func (p *Partition) differs(want Definition, r *row) {
	err := differing(want, r)
	p.fail(err)
	if p.told == r.Version {
		return
	}
	p.told = r.Version
	p.hub.log.Warn("another node has defined this partition differently: its definition stands", "event",
		"partition-differs", "path", p.path, "by", r.DefinedBy, "error", err.Error())
}

func differing(want Definition, r *row) *DiffersError {
	return &DiffersError{want, r.PartitionDefinition, r.DefinedBy}
}
