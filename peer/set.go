// Set: a small sorted set of identities, used where maps would bring their random order.

package peer

import "slices"

// Set is a sorted slice of distinct identities. The zero value is empty. Add and Remove change it in place and return
// whether it changed; share a Set only after Clone.
type Set []ID

// SetOf returns the set of ids.
func SetOf(ids ...ID) Set {
	s := Set(slices.Clone(ids))
	slices.SortFunc(s, ID.Compare)
	return slices.Compact(s)
}

// Has reports whether id is in s.
func (s Set) Has(id ID) bool {
	_, ok := slices.BinarySearchFunc(s, id, ID.Compare)
	return ok
}

// Index returns the position of id in s, or -1.
func (s Set) Index(id ID) int {
	if i, ok := slices.BinarySearchFunc(s, id, ID.Compare); ok {
		return i
	}
	return -1
}

// Add inserts id and reports whether it was new.
func (s *Set) Add(id ID) bool {
	i, ok := slices.BinarySearchFunc(*s, id, ID.Compare)
	if !ok {
		*s = slices.Insert(*s, i, id)
	}
	return !ok
}

// Remove deletes id and reports whether it was there.
func (s *Set) Remove(id ID) bool {
	i, ok := slices.BinarySearchFunc(*s, id, ID.Compare)
	if ok {
		*s = slices.Delete(*s, i, i+1)
	}
	return ok
}

// Clone returns an independent copy.
func (s Set) Clone() Set { return slices.Clone(s) }

// Equal reports whether both sets hold the same identities.
func (s Set) Equal(o Set) bool { return slices.Equal(s, o) }
