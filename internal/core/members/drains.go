// Drains: the members that drain, as the state carries them: for the leader, which gives them no instances (PRT-4).

package members

import (
	"slices"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/internal/core/partition"
	"github.com/kith-io/kith/peer"
)

// Draining returns the members that say that they drain.
func (s *Version) Draining() peer.Set {
	if len(s.Parts) == 0 {
		return nil
	}
	i, ok := s.meta.find(partition.DrainKey)
	if !ok {
		return nil
	}
	return slices.DeleteFunc(partition.ReadDrains([]byte(s.meta[i].value)), func(id peer.ID) bool { return !s.Has(id) })
}

// withDrains returns the metadata in which by has written that these drain; as it was where there is no room for that.
func (s *Version) withDrains(ids peer.Set, by peer.ID) metadata {
	value, ok := partition.AppendDrains(nil, ids)
	if !ok {
		return s.meta
	}
	next, err := s.meta.with(partition.DrainKey, string(value), by)
	if err != nil {
		return s.meta
	}
	return next
}

// WithDrain returns the next version, in which by, which is Up, says that it drains, or that it does no more; nil when
// that changes nothing, nobody has defined a partition, or there is no room. Two that write at once see what the other
// one has made of it, and write again.
func (s *State) WithDrain(by peer.ID, on bool) *State {
	if len(s.Parts) == 0 || s.Status(by) != cluster.Up {
		return nil
	}
	ids := s.Draining()
	if on == ids.Has(by) {
		return nil
	}
	if on {
		ids.Add(by)
	} else {
		ids.Remove(by)
	}
	meta := s.withDrains(ids, by)
	if slices.Equal(meta, s.meta) {
		return nil
	}
	d := s.Draft()
	d.meta = meta
	return d.Commit(by)
}
