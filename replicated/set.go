// Sets: one that only grows, and one from which elements can be removed.

package replicated

import (
	"bytes"
	"iter"
	"maps"
	"slices"

	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// GSet is a set to which elements are added for good. Elements are written as strings, numbers, bools, by
// encoding.BinaryMarshaler, or else as JSON.
type GSet[T comparable] struct{ in map[T]struct{} }

// Add returns the set with elements.
func (s GSet[T]) Add(elements ...T) GSet[T] {
	in := make(map[T]struct{}, len(s.in)+len(elements))
	maps.Copy(in, s.in)
	for _, e := range elements {
		in[e] = struct{}{}
	}
	return GSet[T]{in}
}

// Has reports whether e is in the set.
func (s GSet[T]) Has(e T) bool { _, ok := s.in[e]; return ok }

// Len returns how many elements there are.
func (s GSet[T]) Len() int { return len(s.in) }

// All yields the elements in any order.
func (s GSet[T]) All() iter.Seq[T] { return maps.Keys(s.in) } // in any order, as said

// Kind is "set of" what elements are written as.
func (GSet[T]) Kind() string { return "set of " + formOf[T]() }

// Merge is the union.
func (s GSet[T]) Merge(other GSet[T]) GSet[T] {
	if len(s.in) < len(other.in) {
		s, other = other, s
	}
	for e := range other.in { // in any order: is there a new one?
		if !s.Has(e) {
			s = s.Add()
			maps.Copy(s.in, other.in)
			break
		}
	}
	return s
}

// Since returns the elements that old does not have.
func (s GSet[T]) Since(old GSet[T]) GSet[T] {
	d := GSet[T]{map[T]struct{}{}}
	for e := range s.in { // in any order: into a set
		if !old.Has(e) {
			d.in[e] = struct{}{}
		}
	}
	return d
}

// Append appends the elements in the order of their bytes.
func (s GSet[T]) Append(b []byte) ([]byte, error) {
	list := make([][]byte, 0, len(s.in))
	for e := range s.in { // in any order: sorted below
		text, err := appendOne(nil, e)
		if err != nil {
			return b, err
		}
		list = append(list, text)
	}
	slices.SortFunc(list, bytes.Compare)
	b = wire.AppendUvarint(b, uint64(len(list)))
	for _, text := range list {
		b = wire.AppendBytes(b, text)
	}
	return b, nil
}

// Parse reads what Append appended.
func (GSet[T]) Parse(b []byte) (GSet[T], error) {
	r := wire.NewReader(0, b)
	s := GSet[T]{map[T]struct{}{}}
	for range r.Count(1, maxCount) {
		e := readPart[T](&r)
		if s.Has(e) {
			r.Fail(wire.ErrBadValue)
		}
		if r.Err() != nil {
			break
		}
		s.in[e] = struct{}{}
	}
	return done(s, &r)
}

// Fold returns the set: it knows no identities.
func (s GSet[T]) Fold(peer.ID) GSet[T] { return s }

// ORSet is a set with elements that can be removed and added again. A removal removes what its node had seen: an
// element that another node adds at the same time stays. Elements are written as those of a GSet.
type ORSet[T comparable] struct{ k kernel[T, struct{}] }

// Add returns the set with elements.
func (s ORSet[T]) Add(me peer.ID, elements ...T) ORSet[T] {
	return ORSet[T]{s.k.put(me, struct{}{}, elements...)}
}

// Remove returns the set without elements.
func (s ORSet[T]) Remove(elements ...T) ORSet[T] { return ORSet[T]{s.k.drop(elements...)} }

// Has reports whether e is in the set.
func (s ORSet[T]) Has(e T) bool { _, ok := s.k.live[e]; return ok }

// Len returns how many elements there are.
func (s ORSet[T]) Len() int { return len(s.k.live) }

// All yields the elements in any order.
func (s ORSet[T]) All() iter.Seq[T] { return maps.Keys(s.k.live) } // in any order, as said

// Kind is "observed-remove set of" what elements are written as.
func (ORSet[T]) Kind() string { return "observed-remove set of " + formOf[T]() }

// Merge keeps what both have, and what one has and the other has not seen.
func (s ORSet[T]) Merge(other ORSet[T]) ORSet[T] { return ORSet[T]{s.k.merge(other.k)} }

// Since returns the additions and removals since old.
func (s ORSet[T]) Since(old ORSet[T]) ORSet[T] { return ORSet[T]{s.k.since(old.k)} }

// Append appends the elements in the order of their bytes, behind the nodes that added what.
func (s ORSet[T]) Append(b []byte) ([]byte, error) {
	return s.k.append(b, func(b []byte, _ struct{}) ([]byte, error) { return b, nil })
}

// Parse reads what Append appended.
func (s ORSet[T]) Parse(b []byte) (ORSet[T], error) {
	r := wire.NewReader(0, b)
	return done(ORSet[T]{s.k.read(&r, func(*wire.Reader) (none struct{}) { return none })}, &r)
}

// Fold gives the additions of gone to the zero identity.
func (s ORSet[T]) Fold(gone peer.ID) ORSet[T] { return ORSet[T]{s.k.fold(gone)} }
