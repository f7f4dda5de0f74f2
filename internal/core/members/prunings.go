// Prunings: versions with a clock that was cut short, and how they compare with those that still have the entries
// (GOS-2).

package members

import (
	"cmp"

	"github.com/kith-io/kith/gossip"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// comparePrunings orders two versions by their last pruning; two of one number can come from two sides of a partition.
func comparePrunings(a, b *Version) int {
	if a.Prunes != b.Prunes {
		return cmp.Compare(a.Prunes, b.Prunes)
	}
	return cmp.Compare(a.Pruned, b.Pruned)
}

func appendPruned(b []byte, v *Version) []byte {
	b = wire.AppendUvarint(b, uint64(v.Prunes))
	if v.Prunes > 0 {
		b = wire.AppendU64(b, uint64(v.Pruned))
	}
	return b
}

func readPruned(r *wire.Reader, v *Version) {
	if v.Prunes = readU32(r); v.Prunes > 0 {
		v.Pruned = gossip.Digest(r.U64())
		check(r, v.Pruned != 0 && v.Prunes <= maxPrunes, true)
	}
}

// PruneEntries returns the next version, in which by has taken the entries of gone out of the clock. It names the one
// from which they went.
func (s *State) PruneEntries(gone peer.Set, by peer.ID) *State {
	d := s.Draft()
	d.Prunes, d.Pruned = s.Prunes+1, s.Digest
	d.Clock = d.Clock.Prune(gone.Has)
	return d.Commit(by)
}

// unpruned returns s as it is to be compared with newer, if the clock of newer was pruned more often: without the
// entries that were pruned and have not changed since, if held still knows the version from which they were.
func (s *State) unpruned(newer *State, held func(gossip.Digest) *Version) *State {
	if s.Prunes >= newer.Prunes {
		return s
	}
	from := held(newer.Pruned)
	if from == nil {
		return s
	}
	clock := s.Clock.Prune(func(id peer.ID) bool {
		return newer.Clock.Of(id) == 0 && s.Clock.Of(id) == from.Clock.Of(id)
	})
	if len(clock) == len(s.Clock) {
		return s
	}
	v := *s.Version
	v.Clock, v.Digest = clock, 0 // a digest of its own is not needed: it is compared and merged, never kept
	return &State{Version: &v, Seen: s.Seen, Floor: s.Floor}
}
