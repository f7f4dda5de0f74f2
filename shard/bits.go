// bits: a set of shard ids as a bitmap, which iterates in order and grows to what is set.

package shard

import (
	"math/bits"

	"github.com/kith-io/kith/route"
)

// bitmap is a set of shard ids. The zero value is empty; it grows with the largest id set.
type bitmap []uint64

func (b bitmap) has(s route.ShardID) bool {
	w := int(s >> 6)
	return w < len(b) && b[w]&(1<<(s&63)) != 0
}

// set adds s and reports whether it was new.
func (b *bitmap) set(s route.ShardID) bool {
	w := int(s >> 6)
	if w >= len(*b) {
		grown := make(bitmap, w+1)
		copy(grown, *b)
		*b = grown
	}
	was := (*b)[w]&(1<<(s&63)) != 0
	(*b)[w] |= 1 << (s & 63)
	return !was
}

// clear removes s and reports whether it was there.
func (b bitmap) clear(s route.ShardID) bool {
	if !b.has(s) {
		return false
	}
	b[s>>6] &^= 1 << (s & 63)
	return true
}

// all yields the members in rising order. Members may be removed while it runs.
func (b bitmap) all(yield func(route.ShardID) bool) {
	for w := range b {
		for v := b[w]; v != 0; v &= v - 1 {
			if !yield(route.ShardID(w<<6 + bits.TrailingZeros64(v))) {
				return
			}
		}
	}
}

func (b bitmap) count() int {
	n := 0
	for _, v := range b {
		n += bits.OnesCount64(v)
	}
	return n
}
