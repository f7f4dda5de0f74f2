// Define: how many instances as data, and what programmers say of a partition from any node: the last writer wins
// (PRT-2).

package partition

import (
	"fmt"
	"slices"
	"sort"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/peer"
)

// What is received and counted on ends here in a decoder, far below where it would wrap.
const (
	MaxEpoch   = 1 << 62
	MaxVersion = 1 << 62
)

// Exactly is n instances.
func Exactly(n int) cluster.Count { return cluster.Count{Kind: cluster.CountExactly, N: n} }

// Survives is so many instances that one is left when that many nodes fail. With fewer nodes it is one on each.
func Survives(failures int) cluster.Count {
	return cluster.Count{Kind: cluster.CountSurvives, N: failures}
}

// Share is that many percent of the nodes, rounded up.
func Share(percent int) cluster.Count { return cluster.Count{Kind: cluster.CountShare, N: percent} }

// Scaled is one instance for each load that one carries, at least least and at most most.
func Scaled(least, most, load int) cluster.Count {
	return cluster.Count{Kind: cluster.CountScaled, N: least, Most: most, Load: load}
}

// Check refuses a definition with what is wrong with it: cluster.ErrBadPath, ErrBadCount, ErrBadHandoff,
// ErrBadDefinition.
func Check(d cluster.PartitionDefinition) error {
	if err := CheckPath(d.Path); err != nil {
		return err
	}
	if err := d.Count.Validate(); err != nil {
		return fmt.Errorf("%q: %w", d.Path, err)
	}
	if err := d.Handoff.Validate(); err != nil {
		return fmt.Errorf("%q: %w", d.Path, err)
	}
	if len(d.Role) > cluster.MaxRoleSize || d.Hint < 0 || d.Hint > cluster.MaxPartitionLoad {
		return fmt.Errorf("%w: %q: a role of %d bytes, a hint of %d", cluster.ErrBadDefinition, d.Path,
			len(d.Role), d.Hint)
	}
	return nil
}

// Table is the partition table and what is pending of it, sorted by path. It is immutable: changes return a new table.
type Table []cluster.Partition

// Find returns the place of a path, and whether it is there; a deleted one is.
func (t Table) Find(path string) (int, bool) {
	i := sort.Search(len(t), func(i int) bool { return t[i].Path >= path })
	return i, i < len(t) && t[i].Path == path
}

// Of returns the partition that has the path, or the nearest one above it that is defined and not deleted; nil when
// there is none. The result belongs to the table.
func (t Table) Of(path string) *cluster.Partition {
	for ; path != ""; path = Above(path) {
		if i, ok := t.Find(path); ok && !t[i].Deleted {
			return &t[i]
		}
	}
	return nil
}

// Live returns what views show: all but the deleted ones without an instance; the table itself when there are none.
func (t Table) Live() []cluster.Partition {
	gone := func(p *cluster.Partition) bool { return p.Deleted && len(p.Instances) == 0 }
	for i := range t {
		if gone(&t[i]) {
			live := make([]cluster.Partition, 0, len(t)-1)
			for k := range t {
				if !gone(&t[k]) {
					live = append(live, t[k])
				}
			}
			return live
		}
	}
	return t
}

// Pending returns how many hand-offs are under way.
func (t Table) Pending() (n int) {
	for i := range t {
		n += len(t[i].Changes)
	}
	return n
}

// Names reports whether an instance or a change names id.
func (t Table) Names(id peer.ID) bool {
	for i := range t {
		if names(&t[i], id) {
			return true
		}
	}
	return false
}

// names reports whether an instance of a partition, or a change, names id.
func names(is *cluster.Partition, id peer.ID) bool {
	for i := range is.Changes {
		if is.Changes[i].To == id {
			return true
		}
	}
	return is.SlotOf(id) >= 0
}

// put returns the table with p in place i, instead of what is there, or before it.
func (t Table) put(i int, there bool, p cluster.Partition) Table {
	if there {
		out := slices.Clone(t)
		out[i] = p
		return out
	}
	out := make(Table, 0, len(t)+1)
	return append(append(append(out, t[:i]...), p), t[i:]...)
}

// Define returns the table after by defined a partition; the table itself when the definition is there already.
// Errors: those of Check, cluster.ErrPartitionsFull for a new path when there is no place.
func (t Table) Define(d cluster.PartitionDefinition, by peer.ID) (Table, error) {
	if err := Check(d); err != nil {
		return t, err
	}
	i, ok := t.Find(d.Path)
	if !ok {
		if len(t) >= cluster.MaxPartitions {
			return t, fmt.Errorf("%w: %d paths", cluster.ErrPartitionsFull, len(t))
		}
		return t.put(i, false, cluster.Partition{PartitionDefinition: d, Version: 1, DefinedBy: by}), nil
	}
	p := t[i]
	if p.PartitionDefinition == d && !p.Deleted {
		return t, nil
	}
	if p.PartitionDefinition, p.Deleted = d, false; !stamp(&p, by) {
		return t, fmt.Errorf("%w: %q was defined too often", cluster.ErrPartitionsFull, d.Path)
	}
	return t.put(i, true, p), nil
}

// stamp makes p, which has a changed definition, the next version of it. It is false when there is none.
func stamp(p *cluster.Partition, by peer.ID) bool {
	if p.Version >= MaxVersion {
		return false
	}
	p.Version, p.DefinedBy, p.MoveSlot, p.MoveTo = p.Version+1, by, 0, peer.ID{}
	return true
}

// Undefine returns the table after by took a definition back; the table itself when it is back already. Its instances
// end one by one, handed over to nobody. cluster.ErrUnknownPartition for a path that never was defined.
func (t Table) Undefine(path string, by peer.ID) (Table, error) {
	i, ok := t.Find(path)
	if !ok {
		return t, fmt.Errorf("%w: %q", cluster.ErrUnknownPartition, path)
	}
	p := t[i]
	if p.Deleted {
		return t, nil
	}
	if p.Deleted = true; !stamp(&p, by) {
		return t, fmt.Errorf("%w: %q was defined too often", cluster.ErrPartitionsFull, path)
	}
	return t.put(i, true, p), nil
}

// Move returns the table after by asked for the instance of a slot to be handed over to another member. The leader
// looks at it once, when nothing of the partition is pending, and does nothing when to may not host it by then. Errors:
// cluster.ErrUnknownPartition for a path without that instance, ErrBadDefinition when to hosts one of the partition,
// ErrMovePending while the leader has not looked at the last move.
func (t Table) Move(path string, slot int, to, by peer.ID) (Table, error) {
	i, ok := t.Find(path)
	if !ok || t[i].Deleted || slot < 0 || slot >= len(t[i].Instances) || t[i].Instances[slot].IsZero() {
		return t, fmt.Errorf("%w: no instance %d of %q", cluster.ErrUnknownPartition, slot, path)
	}
	p := t[i]
	switch {
	case to.IsZero() || p.SlotOf(to) >= 0:
		return t, fmt.Errorf("%w: %s hosts an instance of %q, or is nobody", cluster.ErrBadDefinition, to, path)
	case !p.MoveTo.IsZero() && p.Heeded < p.Version:
		return t, fmt.Errorf("%w: %q", cluster.ErrMovePending, path)
	case !stamp(&p, by):
		return t, fmt.Errorf("%w: %q was defined too often", cluster.ErrPartitionsFull, path)
	}
	p.MoveSlot, p.MoveTo = slot, to
	return t.put(i, true, p), nil
}

// Complete returns the table after the node that hosts the instance said that it has handed it over; the table itself
// when there is no such change, or it is complete. Path, slot, epoch and writer name the change.
func (t Table) Complete(c cluster.PartitionChange) Table {
	i, ok := t.Find(c.Path)
	if !ok {
		return t
	}
	for k, is := range t[i].Changes {
		if SameChange(is, c) && !is.Complete {
			p := t[i]
			p.Changes = slices.Clone(p.Changes)
			p.Changes[k].Complete = true
			return t.put(i, true, p)
		}
	}
	return t
}

// SameChange reports whether two are one change, complete or not.
func SameChange(a, b cluster.PartitionChange) bool {
	a.Complete = b.Complete
	return a == b
}
