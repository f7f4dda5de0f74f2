// Founding: the first sets of a store, which are written down once, and the id that tells one founding from another.

package records

import (
	"fmt"
	"slices"

	"github.com/cespare/xxhash/v2"

	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// found is what is written down of a store. Its zero value is that of a disk which does not know it yet.
type found struct {
	store  uint64 // drawn when it was founded; 0 for none
	groups []peer.Set
}

// setOf returns set 1 of a shard.
func (f *found) setOf(s Shard) peer.Set {
	if len(f.groups) == 0 {
		return nil
	}
	return f.groups[xxhash.Sum64String(s.key())%uint64(len(f.groups))]
}

func (f *found) append(b []byte) []byte {
	b = wire.AppendUvarint(wire.AppendU64(b, f.store), uint64(len(f.groups)))
	for _, g := range f.groups {
		b = appendSet(b, g)
	}
	return b
}

func readFound(r *wire.Reader) found {
	f := found{store: r.U64()}
	for range r.Count(1+peer.MinIDSize, maxGroups) {
		g := readSet(r, MaxReplicas)
		if len(g) == 0 {
			r.Fail(wire.ErrBadValue)
		}
		f.groups = append(f.groups, g)
	}
	if (f.store == 0) != (len(f.groups) == 0) {
		r.Fail(wire.ErrBadValue)
	}
	return f
}

// identity is the record by which a disk is known.
type identity struct {
	name string
	id   peer.ID
}

// readIdent reads what identBytes wrote.
func readIdent(b []byte) (i identity, f found, err error) {
	r := wire.NewReader(0, b)
	i, f = identity{r.String(maxName), peer.ReadID(&r)}, readFound(&r)
	return i, f, r.Done()
}

// checkSet returns what is wrong with a set.
func checkSet(s peer.Set) error {
	if len(s) == 0 || len(s) > MaxReplicas || !slices.Equal(s, peer.SetOf(s...)) || s[0].IsZero() {
		return fmt.Errorf("%w: a set of %d members, must have 1 to %d, in order", ErrTooLarge, len(s), MaxReplicas)
	}
	return nil
}
