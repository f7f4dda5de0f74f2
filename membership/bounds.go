// Bounds on numbers of others that are counted on here: none may come near its end, or leap (SEC-5, MEM-4).

package membership

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

// plausible reports whether a version of others may follow on what this node holds: no number leaps.
func (v *version) plausible(o *version) bool {
	if o.highestUp > v.highestUp+upLeap || o.prunes > v.prunes+upLeap {
		return false
	}
	i := 0
	for _, e := range o.clock {
		for i < len(v.clock) && v.clock[i].ID.Less(e.ID) {
			i++
		}
		was := uint64(0)
		if i < len(v.clock) && v.clock[i].ID == e.ID {
			was = v.clock[i].N
		}
		if e.N > was+changeLeap {
			return false
		}
	}
	for i := range o.reach {
		if o.reach[i].version > v.reach.versionOf(o.reach[i].observer)+changeLeap {
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
	return true
}

// consume takes n up-numbers that nobody gets; they end at the highest.
func (s *version) consume(n uint32) { s.highestUp = min(s.highestUp+n, MaxUpNumber) }
