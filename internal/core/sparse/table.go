// Table: a value for each shard that is in use.

package sparse

import (
	"maps"
	"slices"

	"github.com/kith-io/kith/route"
)

// Flat is how many shards a table has at most in which all of them have a place from the start: where shards are few,
// an array is smaller and faster than whatever is made on demand.
const Flat = 4096

// Table holds values of shards. A value that nobody has made is the zero value and, in a table of more than Flat
// shards, takes no memory. Make one with NewTable.
type Table[T any] struct {
	shards uint32
	flat   []T
	far    map[route.ShardID]*T
}

// NewTable returns a table for so many shards.
func NewTable[T any](shards uint32) Table[T] {
	if shards <= Flat {
		return Table[T]{shards: shards, flat: make([]T, shards)}
	}
	return Table[T]{shards: shards, far: map[route.ShardID]*T{}}
}

// Shards returns how many shards the table is for; every other method wants one below it.
func (t *Table[T]) Shards() uint32 { return t.shards }

// At returns the value of a shard, which stays at its place until it is dropped. It is made if need be: a caller that
// only looks calls Peek, so that nothing is made for what another node names.
func (t *Table[T]) At(s route.ShardID) *T {
	if t.far == nil {
		return &t.flat[s]
	}
	v := t.far[s]
	if v == nil {
		v = new(T)
		t.far[s] = v
	}
	return v
}

// Peek returns a copy of the value of a shard.
func (t *Table[T]) Peek(s route.ShardID) (v T) {
	if t.far == nil {
		return t.flat[s]
	}
	if p := t.far[s]; p != nil {
		v = *p
	}
	return v
}

// Drop makes the value of a shard the zero value, which takes no memory. What At returned for it is not to be used any
// more.
func (t *Table[T]) Drop(s route.ShardID) {
	if t.far == nil {
		var zero T
		t.flat[s] = zero
		return
	}
	delete(t.far, s)
}

// Made returns how many values take memory.
func (t *Table[T]) Made() int { return len(t.flat) + len(t.far) }

// All yields the values that take memory, of rising shards. Values may be made and dropped while it runs: what is
// dropped is not yielded any more, what is made may be.
func (t *Table[T]) All(yield func(route.ShardID, *T) bool) {
	if t.far == nil {
		for s := range t.flat {
			if !yield(route.ShardID(s), &t.flat[s]) {
				return
			}
		}
		return
	}
	for _, s := range slices.Sorted(maps.Keys(t.far)) {
		if v := t.far[s]; v != nil && !yield(s, v) {
			return
		}
	}
}
