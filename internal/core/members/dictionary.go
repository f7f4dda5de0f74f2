// Dictionary: what many members of a state have in common, named once in its encoding (GOS-8).

package members

import (
	"cmp"
	"slices"
	"strings"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// profile is what many members have in common: their roles and the version of the application.
type profile struct {
	roles   []string
	version string
}

func (p *profile) compare(m *cluster.Member) int {
	return cmp.Or(slices.Compare(p.roles, m.Roles), strings.Compare(p.version, m.AppVersion))
}

// sameProfile is the quick look at two neighbours: most members have the profile of theirs.
func sameProfile(a, b *cluster.Member) bool {
	return sameSlice(a.Roles, b.Roles) && a.AppVersion == b.AppVersion
}

// dictionary holds all roles, all profiles, and the members that downed another, each sorted.
type dictionary struct {
	roles    []string
	profiles []profile
	deciders peer.Set
}

// gather fills d, in the memory that it has.
func (d *dictionary) gather(v *Version) {
	d.roles, d.profiles, d.deciders = d.roles[:0], d.profiles[:0], d.deciders[:0]
	for i := range v.Members {
		m := &v.Members[i]
		if !m.By.IsZero() {
			d.deciders.Add(m.By)
		}
		if i > 0 && sameProfile(m, &v.Members[i-1]) {
			continue
		}
		if at, ok := d.profile(m); !ok {
			d.profiles = slices.Insert(d.profiles, at, profile{m.Roles, m.AppVersion})
			for _, r := range m.Roles {
				if at, ok := slices.BinarySearch(d.roles, r); !ok {
					d.roles = slices.Insert(d.roles, at, r)
				}
			}
		}
	}
	for i := range v.Tombs {
		if by := v.Tombs[i].By; !by.IsZero() {
			d.deciders.Add(by)
		}
	}
}

// profile returns where the profile of m stands, or would.
func (d *dictionary) profile(m *cluster.Member) (int, bool) {
	return slices.BinarySearchFunc(d.profiles, m, func(p profile, m *cluster.Member) int { return p.compare(m) })
}

func (d *dictionary) append(b []byte) []byte {
	b = wire.AppendUvarint(b, uint64(len(d.roles)))
	for _, s := range d.roles {
		b = wire.AppendString(b, s)
	}
	b = wire.AppendUvarint(b, uint64(len(d.profiles)))
	for i := range d.profiles {
		b = wire.AppendUvarint(b, uint64(len(d.profiles[i].roles)))
		for _, r := range d.profiles[i].roles {
			at, _ := slices.BinarySearch(d.roles, r)
			b = wire.AppendUvarint(b, uint64(at))
		}
		b = wire.AppendString(b, d.profiles[i].version)
	}
	b = wire.AppendUvarint(b, uint64(len(d.deciders)))
	var prev peer.Addr
	for _, id := range d.deciders {
		b = peer.AppendAddrAfter(b, prev, id.Addr)
		prev = id.Addr
	}
	for _, id := range d.deciders {
		b = wire.AppendU64(b, id.Inc)
	}
	return b
}

func readDictionary(r *wire.Reader) (d dictionary) {
	d.roles = ReadStrings(r, maxDictionary, cluster.MaxRoleSize)
	n := r.Count(2, cluster.MaxMembers)
	d.profiles = make([]profile, 0, n)
	for range n {
		p := readProfile(r, d.roles)
		if r.Err() != nil {
			return d
		}
		d.profiles = append(d.profiles, p)
	}
	n = r.Count(peer.MinIDSize, cluster.MaxMembers+cluster.MaxTombstones)
	d.deciders = make(peer.Set, n)
	var prev peer.Addr
	for i := range d.deciders {
		prev = peer.ReadAddrAfter(r, prev)
		d.deciders[i].Addr = prev
		if r.Err() != nil {
			return d
		}
	}
	for i := range d.deciders {
		d.deciders[i].Inc = r.U64()
		check(r, !d.deciders[i].Addr.IsZero(), i == 0 || d.deciders[i-1].Less(d.deciders[i]))
	}
	return d
}

func readProfile(r *wire.Reader, roles []string) (p profile) {
	count := r.Count(1, min(cluster.MaxRoles, len(roles)))
	last := -1
	for range count {
		i := r.Uvarint()
		check(r, i < uint64(len(roles)), int64(i) > int64(last))
		if r.Err() != nil {
			return p
		}
		if p.roles == nil {
			p.roles = make([]string, 0, count)
		}
		last = int(i)
		p.roles = append(p.roles, roles[i])
	}
	p.version = r.String(cluster.MaxAppVersion)
	return p
}

// ReadStrings reads a sorted list of distinct strings, none empty or longer than size.
func ReadStrings(r *wire.Reader, limit, size int) []string {
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

// appendVerdict appends why a member is Down and which member decided it; nothing for any other status.
func (d *dictionary) appendVerdict(b []byte, status cluster.Status, cause cluster.Cause, by peer.ID) []byte {
	if status != cluster.Down {
		return b
	}
	b = append(b, byte(cause))
	if by.IsZero() {
		return append(b, 0)
	}
	at, _ := slices.BinarySearchFunc(d.deciders, by, peer.ID.Compare)
	return wire.AppendUvarint(b, uint64(at)+1)
}

func (d *dictionary) readVerdict(r *wire.Reader, status cluster.Status) (cause cluster.Cause, by peer.ID) {
	if status != cluster.Down {
		return 0, by
	}
	cause = cluster.Cause(r.U8())
	i := r.Uvarint()
	check(r, cause.Known() && i <= uint64(len(d.deciders)), true)
	if r.Err() == nil && i > 0 {
		by = d.deciders[i-1]
	}
	return cause, by
}
