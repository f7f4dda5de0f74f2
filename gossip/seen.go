// Seen: which members have seen the current version, as a bitmap over their sorted list.

package gossip

import (
	"math/bits"

	"github.com/kith-io/kith/wire"
)

// Seen is a bitmap with one bit per member, by position in the sorted members of the version that it belongs to; so
// it is a subset of the members by construction. It knows how many it holds, so that asking costs nothing. Add and
// Union change it in place; share it only after Clone. The zero value is the empty set over no members.
type Seen struct {
	n, count int
	bits     []byte
}

// NewSeen returns the empty set over n members.
func NewSeen(n int) Seen { return Seen{n: n, bits: make([]byte, (n+7)/8)} }

// Reset makes s the empty set over n members, in the memory that it has when that is enough.
func (s *Seen) Reset(n int) {
	size := (n + 7) / 8
	if cap(s.bits) < size {
		s.bits = make([]byte, size)
	}
	s.n, s.count, s.bits = n, 0, s.bits[:size]
	clear(s.bits)
}

// Len returns over how many members the set stands.
func (s Seen) Len() int { return s.n }

// Has reports whether member i has seen. Out of range is false.
func (s Seen) Has(i int) bool { return i >= 0 && i < s.n && s.bits[i/8]&(1<<(i%8)) != 0 }

// Add marks member i and reports whether that is news. Out of range changes nothing.
func (s *Seen) Add(i int) bool {
	if i < 0 || i >= s.n || s.Has(i) {
		return false
	}
	s.bits[i/8] |= 1 << (i % 8)
	s.count++
	return true
}

// Count returns how many have seen, without counting.
func (s Seen) Count() int { return s.count }

// Full reports whether every member has seen.
func (s Seen) Full() bool { return s.count == s.n }

// Union adds all of o, which stands over the same members, and reports whether that is news. A set over another
// number of members changes nothing.
func (s *Seen) Union(o Seen) bool {
	if s.n != o.n {
		return false
	}
	before := s.count
	for i, b := range o.bits {
		if more := b &^ s.bits[i]; more != 0 {
			s.bits[i] |= more
			s.count += bits.OnesCount8(more)
		}
	}
	return s.count > before
}

// Covers reports whether s holds all of o.
func (s Seen) Covers(o Seen) bool {
	if s.n != o.n || s.count < o.count {
		return false
	}
	if s.count == s.n {
		return true
	}
	for i, b := range o.bits {
		if b&^s.bits[i] != 0 {
			return false
		}
	}
	return true
}

// Equal reports whether both are the same set over the same number of members.
func (s Seen) Equal(o Seen) bool { return s.count == o.count && s.Covers(o) }

// Clone returns an independent copy.
func (s Seen) Clone() Seen { return Seen{s.n, s.count, append([]byte(nil), s.bits...)} }

// AppendSeen appends the bitmap; its length follows from the number of members, which the reader knows or gets.
func AppendSeen(b []byte, s Seen) []byte { return append(b, s.bits...) }

// ReadSeen reads a bitmap over n members; bits beyond the last member are refused. Errors stay in r.
func ReadSeen(r *wire.Reader, n int) Seen {
	raw := r.Fixed((n + 7) / 8)
	if r.Err() == nil && n%8 != 0 && raw[len(raw)-1]>>(n%8) != 0 {
		r.Fail(wire.ErrBadValue)
	}
	if r.Err() != nil {
		return Seen{}
	}
	s := Seen{n: n, bits: append([]byte(nil), raw...)}
	for _, b := range s.bits {
		s.count += bits.OnesCount8(b)
	}
	return s
}
