// Delta: what makes one version out of another, for nodes that hold exactly that other one (GOS-4, GOS-8).

package members

import (
	"slices"
	"strings"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/gossip"
	"github.com/kith-io/kith/internal/core/partition"
	"github.com/kith-io/kith/internal/core/tenure"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// appendDelta appends what turns from into to, two versions of one cluster, and reports whether that can be said: not
// when a member changed its roles or application version, which members never do. Positions are distances, as in the
// core; "in from" and "in to" say in which version's lists.
//
//	varint highest up-number; varint prunings, if any: u64 digest pruned from
//	members: gone (count, positions in from); changed (count, then each: position in from, u8 status, varint
//	         up-number, verdict); new (count, then each: id, u8 status, varint up-number, verdict, roles, version)
//	tombs:   gone; put (count, then each: id, u8 last status, verdict)
//	rows:    gone; put (count, then each: observer in to, varint version, count, then each record as in the core)
//	meta:    u8 with 1 and all of it when it changed
//	parts:   when that u8 has 2: gone; put (count, then each as in the core)
//	seats:   when that u8 has 4: all of them
//	clock:   gone; put (count, then each: member in to, varint counter)
//
// A verdict is empty but for Down: u8 cause, id of the decider.
func appendDelta(b []byte, from, to *Version) ([]byte, bool) {
	b = appendPruned(wire.AppendUvarint(b, uint64(to.HighestUp)), to)
	b, ok := appendMemberDelta(b, from.Members, to.Members)
	if !ok {
		return b, false
	}
	b, put := appendGone(b, from.Tombs, to.Tombs, compareTombs, func(x, y *Tombstone) bool { return *x == *y })
	b = wire.AppendUvarint(b, uint64(len(put)))
	for _, i := range put {
		t := &to.Tombs[i]
		b = appendVerdict(append(peer.AppendID(b, t.ID), byte(t.Last)), t.Last, t.Cause, t.By)
	}
	b, put = appendGone(b, from.Reach, to.Reach, compareRows, func(x, y *row) bool {
		return x.version == y.version && slices.Equal(x.records, y.records)
	})
	b = wire.AppendUvarint(b, uint64(len(put)))
	next := 0
	for _, i := range put {
		b, next = to.appendRow(b, next, &to.Reach[i])
	}
	b = appendTables(b, from, to)
	b, put = appendGone(b, from.Clock, to.Clock, compareEntries, func(x, y *gossip.Entry) bool { return x.N == y.N })
	b = wire.AppendUvarint(b, uint64(len(put)))
	next = 0
	for _, i := range put {
		b, next = to.appendMember(b, next, to.Clock[i].ID)
		b = wire.AppendUvarint(b, to.Clock[i].N)
	}
	return b, true
}

// Which of metadata, partition table and seats a delta holds.
const (
	deltaMeta  = 1 << 0
	deltaParts = 1 << 1
	deltaSeats = 1 << 2
)

// appendTables appends what changed of the metadata, of the partition table and of the seats.
func appendTables(b []byte, from, to *Version) []byte {
	at := len(b)
	b = append(b, 0)
	if !slices.Equal(from.meta, to.meta) {
		b[at] |= deltaMeta
		b = appendMeta(b, to.meta)
	}
	if !partition.Equal(from.Parts, to.Parts) {
		b[at] |= deltaParts
		var put []int
		b, put = appendGone(b, from.Parts, to.Parts, comparePaths, partition.Same)
		b = wire.AppendUvarint(b, uint64(len(put)))
		last := ""
		for _, i := range put {
			b = partition.AppendOne(b, &to.Parts[i], last, to.Members)
			last = to.Parts[i].Path
		}
	}
	if to.Seats.Newer(from.Seats) || from.Seats.Newer(to.Seats) {
		b[at] |= deltaSeats
		b = tenure.AppendSeats(b, to.Seats)
	}
	return b
}

// readTables reads what appendTables wrote.
func readTables(r *wire.Reader, from, v *Version) {
	v.meta, v.Parts, v.Seats = from.meta, from.Parts, from.Seats
	has := r.U8()
	check(r, has <= deltaMeta|deltaParts|deltaSeats, true)
	if has&deltaMeta != 0 {
		v.meta = readMeta(r)
	}
	if has&deltaParts != 0 {
		last := ""
		v.Parts = patch(r, from.Parts, cluster.MaxPartitions, partition.LeastSize, comparePaths, func() cluster.Partition {
			p := partition.ReadOne(r, last, v.Members)
			last = p.Path
			return p
		})
	}
	if has&deltaSeats != 0 {
		v.Seats = tenure.ReadSeats(r)
	}
}

func comparePaths(x, y *cluster.Partition) int { return strings.Compare(x.Path, y.Path) }

func compareEntries(x, y *gossip.Entry) int {
	if x.ID == y.ID {
		return 0
	}
	return x.ID.Compare(y.ID)
}

// appendGone appends how many entries of from are not in to, and their positions; it returns those of the entries of to
// that from lacks or has differently.
func appendGone[S ~[]T, T any](b []byte, from, to S, compare func(x, y *T) int,
	equal func(x, y *T) bool) ([]byte, []int) {
	var gone, put []int
	if !sameSlice(from, to) {
		i, j := 0, 0
		for i < len(from) || j < len(to) {
			order := 1
			if j == len(to) {
				order = -1
			} else if i < len(from) {
				order = compare(&from[i], &to[j])
			}
			switch {
			case order < 0:
				gone = append(gone, i)
			case order > 0 || !equal(&from[i], &to[j]):
				put = append(put, j)
			}
			if order <= 0 {
				i++
			}
			if order >= 0 {
				j++
			}
		}
	}
	return appendPositions(b, gone), put
}

func appendPositions(b []byte, at []int) []byte {
	b = wire.AppendUvarint(b, uint64(len(at)))
	next := 0
	for _, i := range at {
		b = wire.AppendUvarint(b, uint64(i-next))
		next = i + 1
	}
	return b
}

func appendMemberDelta(b []byte, from, to []cluster.Member) ([]byte, bool) {
	b, put := appendGone(b, from, to, compareMembers, equalMembers)
	was := make([]int, 0, len(put)) // position in from, -1 for a new member
	changed, next := 0, 0
	for _, i := range put {
		at, ok := slices.BinarySearchFunc(from, to[i].ID, func(m cluster.Member, id peer.ID) int { return m.ID.Compare(id) })
		if !ok {
			at = -1
		} else if changed++; !slices.Equal(from[at].Roles, to[i].Roles) || from[at].AppVersion != to[i].AppVersion {
			return b, false
		}
		was = append(was, at)
	}
	b = wire.AppendUvarint(b, uint64(changed))
	for k, i := range put {
		if m := &to[i]; was[k] >= 0 {
			b = append(wire.AppendUvarint(b, uint64(was[k]-next)), byte(m.Status))
			b = appendVerdict(wire.AppendUvarint(b, uint64(m.UpNumber)), m.Status, m.Cause, m.By)
			next = was[k] + 1
		}
	}
	b = wire.AppendUvarint(b, uint64(len(put)-changed))
	for k, i := range put {
		if m := &to[i]; was[k] < 0 {
			b = wire.AppendUvarint(append(peer.AppendID(b, m.ID), byte(m.Status)), uint64(m.UpNumber))
			b = appendVerdict(b, m.Status, m.Cause, m.By)
			b = wire.AppendUvarint(b, uint64(len(m.Roles)))
			for _, r := range m.Roles {
				b = wire.AppendString(b, r)
			}
			b = wire.AppendString(b, m.AppVersion)
		}
	}
	return b, true
}

func appendVerdict(b []byte, s cluster.Status, cause cluster.Cause, by peer.ID) []byte {
	if s != cluster.Down {
		return b
	}
	return peer.AppendID(append(b, byte(cause)), by)
}

// readDelta reads what appendDelta wrote and returns what it makes of from, sealed. It checks what must hold for the
// reading; whether the result is a sound version shows by its digest alone, which the caller compares.
func (w *work) readDelta(kind wire.Kind, from *Version, b []byte) (*Version, error) {
	r := wire.NewReader(kind, b)
	v := &Version{Cluster: from.Cluster, Birth: from.Birth, HighestUp: readUpNumber(&r)}
	readPruned(&r, v)
	v.Members = readMemberDelta(&r, from.Members)
	v.Tombs = patch(&r, from.Tombs, cluster.MaxTombstones, peer.MinIDSize+1, compareTombs, func() (t Tombstone) {
		t.ID, t.Last = peer.ReadID(&r), cluster.Status(r.U8())
		check(&r, !t.ID.Addr.IsZero() && (t.Last == cluster.Exiting || t.Last == cluster.Down), true)
		t.Cause, t.By = readVerdict(&r, t.Last)
		return t
	})
	next := 0
	v.Reach = patch(&r, from.Reach, len(v.Members), 3, compareRows, func() row { return readRow(&r, v, &next) })
	readTables(&r, from, v)
	next = 0
	v.Clock = patch(&r, from.Clock, len(v.Members), 2, compareEntries, func() gossip.Entry {
		e := gossip.Entry{ID: readMember(&r, v, &next), N: readChanges(&r)}
		return e
	})
	if err := r.Done(); err != nil {
		return nil, err
	}
	v.sealIn(w, from, nil)
	return v, nil
}

func readVerdict(r *wire.Reader, s cluster.Status) (cause cluster.Cause, by peer.ID) {
	if s == cluster.Down {
		cause, by = cluster.Cause(r.U8()), peer.ReadID(r)
		check(r, cause.Known(), true)
	}
	return cause, by
}

func readMemberDelta(r *wire.Reader, from []cluster.Member) []cluster.Member {
	kept := without(r, from)
	count := r.Count(3, len(from))
	if count > 0 && sameSlice(kept, from) {
		kept = slices.Clone(from)
	}
	next := 0
	for range count {
		at := r.Uvarint()
		check(r, at < uint64(len(from)-next), true)
		if r.Err() != nil {
			return nil
		}
		next += int(at) + 1
		i, ok := slices.BinarySearchFunc(kept, from[next-1].ID, func(o cluster.Member, id peer.ID) int {
			return o.ID.Compare(id)
		})
		check(r, ok, true)
		if r.Err() != nil {
			return nil
		}
		m := &kept[i]
		m.Status, m.UpNumber = cluster.Status(r.U8()), readUpNumber(r)
		check(r, m.Status.Known() && m.Status != cluster.Removed, true)
		m.Cause, m.By = readVerdict(r, m.Status)
	}
	return put(r, kept, cluster.MaxMembers, peer.MinIDSize+4, compareMembers, func() (m cluster.Member) {
		m.ID, m.Status, m.UpNumber = peer.ReadID(r), cluster.Status(r.U8()), readUpNumber(r)
		check(r, !m.ID.Addr.IsZero() && m.ID.Inc != 0 && m.Status.Known() && m.Status != cluster.Removed, true)
		m.Cause, m.By = readVerdict(r, m.Status)
		if roles := ReadStrings(r, cluster.MaxRoles, cluster.MaxRoleSize); len(roles) > 0 {
			m.Roles = roles
		}
		m.AppVersion = r.String(cluster.MaxAppVersion)
		return m
	})
}

// patch reads what is gone of from, then what is put into the rest.
func patch[S ~[]T, T any](r *wire.Reader, from S, limit, least int, compare func(x, y *T) int, read func() T) S {
	return put(r, without(r, from), limit, least, compare, read)
}

// without reads positions and returns from without them; from itself when there are none.
func without[S ~[]T, T any](r *wire.Reader, from S) S {
	n := r.Count(1, len(from))
	if n == 0 {
		return from
	}
	out := make(S, 0, len(from)-n)
	next := 0
	for range n {
		at := r.Uvarint()
		check(r, at < uint64(len(from)-next), true)
		if r.Err() != nil {
			return nil
		}
		out = append(out, from[next:next+int(at)]...)
		next += int(at) + 1
	}
	return append(out, from[next:]...)
}

// put reads entries in order, each of at least least bytes, and returns list with them, in place of those that compare
// equal; list itself when there are none. The result has at most limit entries.
func put[S ~[]T, T any](r *wire.Reader, list S, limit, least int, compare func(x, y *T) int, read func() T) S {
	n := r.Count(least, limit)
	if n == 0 {
		return list
	}
	out := make(S, 0, min(len(list)+n, limit))
	for range n {
		e := read()
		check(r, true, len(out) == 0 || compare(&out[len(out)-1], &e) < 0)
		for len(list) > 0 && r.Err() == nil && compare(&list[0], &e) < 0 {
			out, list = append(out, list[0]), list[1:]
		}
		check(r, len(out) < limit, true)
		if r.Err() != nil {
			return nil
		}
		if len(list) > 0 && compare(&list[0], &e) == 0 {
			list = list[1:]
		}
		out = append(out, e)
	}
	check(r, len(out)+len(list) <= limit, true)
	return append(out, list...)
}

// sound reports whether a version that was put together holds what a reader of the whole would have checked.
func (v *Version) sound() bool {
	t, next := 0, 0
	for i := range v.Members {
		m := &v.Members[i]
		must := m.Status.Numbered()
		if m.UpNumber > v.HighestUp || must > 0 && m.UpNumber == 0 || must < 0 && m.UpNumber != 0 {
			return false
		}
		for t < len(v.Tombs) && v.Tombs[t].ID.Less(m.ID) {
			t++
		}
		if t < len(v.Tombs) && v.Tombs[t].ID == m.ID {
			return false
		}
	}
	for i := range v.Clock {
		if next = v.indexFrom(next, v.Clock[i].ID); next < 0 {
			return false
		}
	}
	for i := range v.Reach {
		if !v.Has(v.Reach[i].observer) {
			return false
		}
		for _, c := range v.Reach[i].records {
			if !v.Has(c.subject) {
				return false
			}
		}
	}
	return true
}
