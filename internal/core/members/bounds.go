// Bounds on numbers of others that are counted on here: none may come near its end, or leap (SEC-5, MEM-4).

package members

import (
	"github.com/kith-io/kith/gossip"
	"github.com/kith-io/kith/wire"
)

// What is received and counted on ends here in a decoder, far below where it would wrap.
const (
	// MaxUpNumber is the highest up-number; beyond it nobody is let in.
	MaxUpNumber = 1 << 31
	maxPrunes   = 1 << 31
	maxChanges  = gossip.MaxChanges // of an entry in the clock, a row, a key of the metadata
	maxBirth    = 1 << 63           // 272 years of milliseconds above 20 bits
)

// A state that a member takes may be so far ahead of its own in each number. No cluster comes so far while a member is
// away: somebody has made it up, and the next honest change must not find the end.
const (
	upLeap     = 1 << 20 // up-numbers, and prunings
	changeLeap = 1 << 40
)

func readUpNumber(r *wire.Reader) uint32 {
	v := readU32(r)
	check(r, v <= MaxUpNumber, true)
	return v
}

// readChanges reads how often something has changed: at least once.
func readChanges(r *wire.Reader) uint64 {
	v := r.Uvarint()
	check(r, v > 0 && v <= maxChanges, true)
	return v
}

// Plausible reports whether a version of others may follow on what this node holds: no number leaps.
func (v *Version) Plausible(o *Version) bool {
	if o.HighestUp > v.HighestUp+upLeap || o.Prunes > v.Prunes+upLeap ||
		uint64(o.Seats.Number) > uint64(v.Seats.Number)+upLeap {
		return false
	}
	i := 0
	for _, e := range o.Clock {
		for i < len(v.Clock) && v.Clock[i].ID.Less(e.ID) {
			i++
		}
		was := uint64(0)
		if i < len(v.Clock) && v.Clock[i].ID == e.ID {
			was = v.Clock[i].N
		}
		if e.N > was+changeLeap {
			return false
		}
	}
	for i := range o.Reach {
		if o.Reach[i].version > v.Reach.VersionOf(o.Reach[i].observer)+changeLeap {
			return false
		}
	}
	for _, e := range o.meta {
		was := uint64(0)
		if at, ok := v.meta.find(e.key); ok {
			was = v.meta[at].count
		}
		if e.count > was+changeLeap {
			return false
		}
	}
	return v.Parts.Plausible(o.Parts)
}

// consume takes n up-numbers that nobody gets; they end at the highest.
func (s *Version) consume(n uint32) { s.HighestUp = min(s.HighestUp+n, MaxUpNumber) }
