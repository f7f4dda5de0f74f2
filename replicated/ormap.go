// ORMap: replicated values by key.

package replicated

import (
	"iter"
	"maps"

	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// ORMap holds values by key: counters, GSets, LWWRegisters, or a type of your own that numbers nothing by itself. The
// others (ORSet, MVRegister, ORMap) count their additions from one again under a key that comes back, so Open refuses
// them here; a set of pairs does what a map of sets would. Keys are written as elements of a GSet are.
//
// A removal removes what its node had seen: a value that another node changes at the same time stays, with all that
// node had of it.
type ORMap[K comparable, V Value[V]] struct{ k kernel[K, V] }

// Update returns the map with change(value) under key; change is given the zero value where there is none.
func (m ORMap[K, V]) Update(me peer.ID, key K, change func(V) V) ORMap[K, V] {
	v, _ := m.Get(key)
	return ORMap[K, V]{m.k.put(me, change(v), key)}
}

// Remove returns the map without keys.
func (m ORMap[K, V]) Remove(keys ...K) ORMap[K, V] { return ORMap[K, V]{m.k.drop(keys...)} }

// Get returns the value under key, false when there is none.
func (m ORMap[K, V]) Get(key K) (v V, ok bool) {
	list := m.k.live[key]
	for i, d := range list {
		if i == 0 {
			v = d.p
		} else {
			v = v.Merge(d.p)
		}
	}
	return v, len(list) > 0
}

// Len returns how many keys there are.
func (m ORMap[K, V]) Len() int { return len(m.k.live) }

// All yields keys and values in any order.
func (m ORMap[K, V]) All() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		for key := range maps.Keys(m.k.live) { // in any order, as said
			if v, _ := m.Get(key); !yield(key, v) {
				return
			}
		}
	}
}

// Kind is "map of" what keys are written as "to" the kind of the values.
func (ORMap[K, V]) Kind() string {
	var v V
	return "map of " + formOf[K]() + " to " + v.Kind()
}

// Merge keeps keys as an ORSet does its elements; what both have under one is merged.
func (m ORMap[K, V]) Merge(other ORMap[K, V]) ORMap[K, V] { return ORMap[K, V]{m.k.merge(other.k)} }

// Since returns what was changed and removed since old.
func (m ORMap[K, V]) Since(old ORMap[K, V]) ORMap[K, V] { return ORMap[K, V]{m.k.since(old.k)} }

// Append appends keys and values in the order of the keys' bytes, behind the nodes that changed what.
func (m ORMap[K, V]) Append(b []byte) ([]byte, error) {
	return m.k.append(b, func(b []byte, v V) ([]byte, error) {
		part, err := v.Append(nil)
		return wire.AppendBytes(b, part), err
	})
}

// Parse reads what Append appended.
func (m ORMap[K, V]) Parse(b []byte) (ORMap[K, V], error) {
	r := wire.NewReader(0, b)
	k := m.k.read(&r, func(r *wire.Reader) (v V) {
		part := r.Bytes(maxPart)
		if r.Err() != nil {
			return v
		}
		v, err := v.Parse(part)
		if err != nil {
			r.Fail(err)
		}
		return v
	})
	return done(ORMap[K, V]{k}, &r)
}

// Fold gives the changes of gone to the zero identity. What gone counted in the values stays under its name: the next
// change of a value replaces it as a whole.
func (m ORMap[K, V]) Fold(gone peer.ID) ORMap[K, V] { return ORMap[K, V]{m.k.fold(gone)} }

// numbersAdditions reports that it does, for Open.
func (ORMap[K, V]) numbersAdditions() {}

// numbersAdditions reports that it does, for Open.
func (ORSet[T]) numbersAdditions() {}

// numbersAdditions reports that it does, for Open.
func (MVRegister[T]) numbersAdditions() {}

// nests reports whether a map holds values that number their additions.
func (ORMap[K, V]) nests() bool {
	var v V
	_, is := any(v).(interface{ numbersAdditions() })
	return is
}
