// Merge: two tables join path by path: the later definition, the later placement, and of one placement what is complete
// on either side (PRT-1).

package partition

import (
	"cmp"
	"slices"
	"strings"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/peer"
)

// Merge joins two tables. It is commutative, associative and idempotent. When more than MaxPartitions paths meet,
// because two sides filled the table without each other, the first in order stay: every node drops the same ones. The
// result is a or b itself where it equals it.
func Merge(a, b Table) Table {
	if len(b) == 0 || Shared(a, b) {
		return a
	}
	if len(a) == 0 {
		return b
	}
	var out Table
	isA, isB := true, true // so far
	at := 0
	for i, j := 0, 0; (i < len(a) || j < len(b)) && at < cluster.MaxPartitions; at++ {
		order := 1
		if j == len(b) {
			order = -1
		} else if i < len(a) {
			order = strings.Compare(a[i].Path, b[j].Path)
		}
		var p cluster.Partition
		fromA, fromB := order < 0, order > 0
		switch {
		case fromA:
			p = a[i]
		case fromB:
			p = b[j]
		default:
			p, fromA, fromB = join(&a[i], &b[j])
		}
		if order <= 0 {
			i++
		}
		if order >= 0 {
			j++
		}
		isA, isB = isA && fromA, isB && fromB
		out = append(out, p)
	}
	switch {
	case isA && len(out) == len(a):
		return a
	case isB && len(out) == len(b):
		return b
	}
	return out
}

// Shared reports whether a and b are one and the same list.
func Shared(a, b Table) bool { return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0]) }

// Equal reports whether two tables are the same in everything.
func Equal(a, b Table) bool {
	if Shared(a, b) {
		return true
	}
	for i := range a {
		if len(a) != len(b) || !Same(&a[i], &b[i]) {
			return false
		}
	}
	return len(a) == len(b)
}

// Same reports whether two partitions are the same in everything.
func Same(a, b *cluster.Partition) bool {
	return compareDefinitions(a, b) == 0 && a.Path == b.Path && comparePlacements(a, b) == 0 &&
		slices.Equal(a.Changes, b.Changes)
}

// join joins what two tables say of one path, and says which of both it is. Definition and placement join apart, each
// by an order that is total, and what is complete is joined for placements that are equal otherwise.
func join(a, b *cluster.Partition) (p cluster.Partition, isA, isB bool) {
	def, place := compareDefinitions(a, b), comparePlacements(a, b)
	p, isA, isB = *a, def >= 0 && place >= 0, def <= 0 && place <= 0
	if place < 0 {
		p = *b
	}
	if d := a; def != 0 {
		if def < 0 {
			d = b
		}
		p.PartitionDefinition, p.Version, p.DefinedBy = d.PartitionDefinition, d.Version, d.DefinedBy
		p.Deleted, p.MoveSlot, p.MoveTo = d.Deleted, d.MoveSlot, d.MoveTo
	}
	if place != 0 {
		return p, isA, isB
	}
	for i := range a.Changes {
		if x, y := a.Changes[i].Complete, b.Changes[i].Complete; x != y {
			if isA, isB = isA && x, isB && y; !p.Changes[i].Complete {
				p.Changes = slices.Clone(p.Changes)
				p.Changes[i].Complete = true
			}
		}
	}
	return p, isA, isB
}

// compareDefinitions orders two definitions of one path: the later wins, then the higher writer. The rest decides only
// when a writer is faulty; then all still agree.
func compareDefinitions(a, b *cluster.Partition) int {
	return cmp.Or(cmp.Compare(a.Version, b.Version), a.DefinedBy.Compare(b.DefinedBy), compareBools(a.Deleted, b.Deleted),
		cmp.Compare(a.Count.Kind, b.Count.Kind), cmp.Compare(a.Count.N, b.Count.N),
		cmp.Compare(a.Count.Most, b.Count.Most), cmp.Compare(a.Count.Load, b.Count.Load),
		compareHandoffs(a.Handoff, b.Handoff), strings.Compare(a.Role, b.Role), cmp.Compare(a.Hint, b.Hint),
		cmp.Compare(a.MoveSlot, b.MoveSlot), a.MoveTo.Compare(b.MoveTo))
}

func compareBools(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

func compareHandoffs(a, b cluster.Handoff) int { return int(handoffByte(a)) - int(handoffByte(b)) }

// comparePlacements orders what leaders have made of one path, what is complete apart: the higher epoch wins, then the
// higher writer. The rest decides only when a writer is faulty.
func comparePlacements(a, b *cluster.Partition) int {
	return cmp.Or(cmp.Compare(a.Epoch, b.Epoch), cmp.Compare(a.Writer, b.Writer), cmp.Compare(a.Wanted, b.Wanted),
		compareHandoffs(a.InForce, b.InForce), cmp.Compare(a.Heeded, b.Heeded),
		slices.CompareFunc(a.Instances, b.Instances, peer.ID.Compare),
		slices.CompareFunc(a.Changes, b.Changes, func(x, y cluster.PartitionChange) int {
			return cmp.Or(cmp.Compare(x.Slot, y.Slot), x.From.Compare(y.From), x.To.Compare(y.To),
				cmp.Compare(x.Epoch, y.Epoch), cmp.Compare(x.Writer, y.Writer))
		}))
}

// changeLeap is how far ahead of ours each number of a table may be that others sent. No cluster comes so far while a
// member is away: somebody has made it up, and the next honest change must not find the end.
const changeLeap = 1 << 40

// Plausible reports whether a table of others may follow on t: no number leaps.
func (t Table) Plausible(o Table) bool {
	if Shared(t, o) {
		return true
	}
	for i := range o {
		epoch, version := uint64(changeLeap), uint64(changeLeap)
		if k, ok := t.Find(o[i].Path); ok {
			epoch, version = epoch+t[k].Epoch, version+t[k].Version
		}
		if o[i].Epoch > epoch || o[i].Version > version {
			return false
		}
	}
	return true
}
