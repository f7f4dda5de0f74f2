// Dictionary: what many members of a state have in common, named once in its encoding (GOS-8).

package membership

import (
	"slices"

	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// dictionary holds the roles and versions of all members and those who downed somebody, each sorted.
type dictionary struct {
	roles, versions []string
	deciders        peer.Set
}

// gather fills d, in the memory that it has. Most members have the roles of their neighbour.
func (d *dictionary) gather(s *version) {
	d.roles, d.versions, d.deciders = d.roles[:0], d.versions[:0], d.deciders[:0]
	for i := range s.members {
		m := &s.members[i]
		if i > 0 && sameSlice(m.Roles, s.members[i-1].Roles) && m.AppVersion == s.members[i-1].AppVersion &&
			m.By == s.members[i-1].By {
			continue
		}
		for _, r := range m.Roles {
			d.roles = insert(d.roles, r)
		}
		if m.AppVersion != "" {
			d.versions = insert(d.versions, m.AppVersion)
		}
		if !m.By.IsZero() {
			d.deciders.Add(m.By)
		}
	}
	for i := range s.tombs {
		if by := s.tombs[i].by; !by.IsZero() {
			d.deciders.Add(by)
		}
	}
}

func insert(list []string, s string) []string {
	if at, ok := slices.BinarySearch(list, s); !ok {
		return slices.Insert(list, at, s)
	}
	return list
}

func (d dictionary) append(b []byte) []byte {
	for _, list := range [...][]string{d.roles, d.versions} {
		b = wire.AppendUvarint(b, uint64(len(list)))
		for _, s := range list {
			b = wire.AppendString(b, s)
		}
	}
	b = wire.AppendUvarint(b, uint64(len(d.deciders)))
	for _, id := range d.deciders {
		b = peer.AppendID(b, id)
	}
	return b
}

func readDictionary(r *wire.Reader) (d dictionary) {
	d.roles = readStrings(r, maxDictionary, MaxRoleSize)
	d.versions = readStrings(r, maxDictionary, MaxAppVersion)
	n := r.Count(peer.MinIDSize, MaxMembers+MaxTombstones)
	d.deciders = make(peer.Set, 0, n)
	for range n {
		id := peer.ReadID(r)
		check(r, !id.Addr.IsZero(), len(d.deciders) == 0 || d.deciders[len(d.deciders)-1].Less(id))
		if r.Err() != nil {
			return d
		}
		d.deciders = append(d.deciders, id)
	}
	return d
}

// readStrings reads a sorted list of distinct strings, none empty or longer than size.
func readStrings(r *wire.Reader, limit, size int) []string {
	n := r.Count(2, limit)
	list := make([]string, 0, n)
	for range n {
		s := r.String(size)
		check(r, s != "", len(list) == 0 || list[len(list)-1] < s)
		if r.Err() != nil {
			return nil
		}
		list = append(list, s)
	}
	return list
}

func (d dictionary) appendVersion(b []byte, v string) []byte {
	if v == "" {
		return append(b, 0)
	}
	at, _ := slices.BinarySearch(d.versions, v)
	return wire.AppendUvarint(b, uint64(at)+1)
}

func (d dictionary) readVersion(r *wire.Reader) string {
	i := r.Uvarint()
	check(r, i <= uint64(len(d.versions)), true)
	if r.Err() != nil || i == 0 {
		return ""
	}
	return d.versions[i-1]
}

// appendVerdict appends why a member is Down and who decided it; nothing for any other status.
func (d dictionary) appendVerdict(b []byte, status Status, cause Cause, by peer.ID) []byte {
	if status != Down {
		return b
	}
	b = append(b, byte(cause))
	if by.IsZero() {
		return append(b, 0)
	}
	at, _ := slices.BinarySearchFunc(d.deciders, by, peer.ID.Compare)
	return wire.AppendUvarint(b, uint64(at)+1)
}

func (d dictionary) readVerdict(r *wire.Reader, status Status) (cause Cause, by peer.ID) {
	if status != Down {
		return 0, by
	}
	cause = Cause(r.U8())
	i := r.Uvarint()
	check(r, cause <= lastCause && i <= uint64(len(d.deciders)), true)
	if r.Err() == nil && i > 0 {
		by = d.deciders[i-1]
	}
	return cause, by
}
