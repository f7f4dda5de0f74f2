// Prunings: versions whose clock was cut short, and how they compare with those that still have the entries (GOS-2).

package membership

import (
	"cmp"

	"github.com/kith-io/kith/gossip"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// comparePrunings orders two versions by their last pruning; two of one number can come from two sides of a partition.
func comparePrunings(a, b *version) int {
	if a.prunes != b.prunes {
		return cmp.Compare(a.prunes, b.prunes)
	}
	return cmp.Compare(a.pruned, b.pruned)
}

func appendPruned(b []byte, v *version) []byte {
	b = wire.AppendUvarint(b, uint64(v.prunes))
	if v.prunes > 0 {
		b = wire.AppendU64(b, uint64(v.pruned))
	}
	return b
}

func readPruned(r *wire.Reader, v *version) {
	if v.prunes = readU32(r); v.prunes > 0 {
		v.pruned = gossip.Digest(r.U64())
		check(r, v.pruned != 0 && v.prunes <= maxPrunes, true)
	}
}

// pruneEntries returns the next version, in which by has taken the entries of gone out of the clock. It names the one
// from which they went.
func (s *state) pruneEntries(gone peer.Set, by peer.ID) *state {
	d := s.draft()
	d.prunes, d.pruned = s.prunes+1, s.digest
	d.clock = d.clock.Prune(gone.Has)
	return d.commit(by)
}

// unpruned returns s as it is to be compared with newer, whose clock was pruned more often: without the entries that
// were pruned and have not changed since, if held still knows the version from which they were.
func (s *state) unpruned(newer *state, held func(gossip.Digest) *version) *state {
	if s.prunes >= newer.prunes {
		return s
	}
	from := held(newer.pruned)
	if from == nil {
		return s
	}
	clock := s.clock.Prune(func(id peer.ID) bool {
		return newer.clock.Of(id) == 0 && s.clock.Of(id) == from.clock.Of(id)
	})
	if len(clock) == len(s.clock) {
		return s
	}
	v := *s.version
	v.clock, v.digest = clock, 0 // a digest of its own is not needed: it is compared and merged, never kept
	return &state{version: &v, seen: s.seen, floor: s.floor}
}
