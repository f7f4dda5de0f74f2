// Set: shards by number, in pages that exist while something is in them.

package sparse

import (
	"math/bits"

	"github.com/kith-io/kith/route"
)

const (
	pageWords = 16
	pageShift = 10 // shards of a page, as a power of two
)

// page is the part of a set that covers so many shards.
type page struct {
	words [pageWords]uint64
	n     int
}

// Set is a set of shards. The zero value is empty. A scattered member costs at most 160 bytes, dense ones a bit each,
// and the highest member 8 bytes for each 1,024 shards below it.
type Set struct {
	pages []*page
	n     int
}

// Len returns how many members there are.
func (b *Set) Len() int { return b.n }

// Has reports whether s is a member.
func (b *Set) Has(s route.ShardID) bool {
	p := int(s >> pageShift)
	return p < len(b.pages) && b.pages[p] != nil && b.pages[p].words[s>>6%pageWords]&(1<<(s&63)) != 0
}

// Add adds s and reports whether it was new.
func (b *Set) Add(s route.ShardID) bool {
	if b.Has(s) {
		return false
	}
	at := int(s >> pageShift)
	if at >= len(b.pages) {
		grown := make([]*page, at+1)
		copy(grown, b.pages)
		b.pages = grown
	}
	if b.pages[at] == nil {
		b.pages[at] = &page{}
	}
	p := b.pages[at]
	p.words[s>>6%pageWords] |= 1 << (s & 63)
	p.n++
	b.n++
	return true
}

// Remove removes s and reports whether it was there.
func (b *Set) Remove(s route.ShardID) bool {
	if !b.Has(s) {
		return false
	}
	p := b.pages[s>>pageShift]
	p.words[s>>6%pageWords] &^= 1 << (s & 63)
	p.n--
	b.n--
	if p.n == 0 {
		b.pages[s>>pageShift] = nil
	}
	if b.n == 0 {
		b.pages = nil
	}
	return true
}

// Clear removes all members.
func (b *Set) Clear() { *b = Set{} }

// All yields the members in rising order. Members may be added and removed while it runs: what is removed is not
// yielded any more, what is added may be.
func (b *Set) All(yield func(route.ShardID) bool) { b.From(0)(yield) }

// From yields the members that are not below s in rising order, as All does.
func (b *Set) From(s route.ShardID) func(yield func(route.ShardID) bool) {
	return func(yield func(route.ShardID) bool) {
		for at := int(s >> pageShift); at < len(b.pages); at++ {
			p := b.pages[at]
			if p == nil {
				continue
			}
			for w := range p.words {
				for v := p.words[w]; v != 0; v &= v - 1 {
					m := route.ShardID(at<<pageShift + w<<6 + bits.TrailingZeros64(v))
					if m >= s && p.words[w]&(v&-v) != 0 && !yield(m) {
						return
					}
				}
			}
		}
	}
}
