// Codec of the core of a state: identities once each, everything else by position, one column after the other (GOS-8).

package members

import (
	"bytes"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/gossip"
	"github.com/kith-io/kith/internal/core/partition"
	"github.com/kith-io/kith/internal/core/tenure"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

const (
	stateFormat   = 3
	partsFormat   = 4    // with a partition table; nodes before wire version 9 cannot read it
	seatsFormat   = 5    // with a list of seats; only clusters with a tenure have one, and all of their nodes read it
	maxDictionary = 4096 // distinct roles of one state
)

// appendCore appends a version, all of a state but the seen set, and returns how much of it comes before the clock:
//
//	u8 format, 5 with seats, else 4 with a partition table, else 3; u64 cluster; u64 birth
//	varint highest up-number; varint prunings, if any: u64 digest pruned from
//	roles:    count, strings, sorted
//	profiles: count, then each: count and positions of roles, version as string; sorted, distinct
//	deciders: count, identities as columns
//	members:  count; columns: addresses, incarnations, u8 statuses, up-numbers, profiles; verdicts of the Down ones
//	tombs:    count; columns: addresses, incarnations, u8 last statuses; verdicts of the Down ones
//	rows:     count, then each: observer, varint version, count, then each record: subject, varint age, u8 kind
//	meta:     count, then each: key, value, varint count, id of the writer; sorted by key
//	parts:    formats 4 and 5: a table, as partition.Append writes it; in format 4 not an empty one
//	seats:    format 5 only: a list that is not the zero value, as tenure.AppendSeats writes it
//	clock:    count; columns: members, varint counters
//
// Identities are an address column (peer.AppendAddrAfter) and a column of u64. An up-number is the zigzag difference to
// one more than the number before it: members that came up together in order are zeros. A member is its position in
// the list, as the distance to the next after the one before it in the same list: a full clock is all zeros. A
// record's age is the row's version minus the one since which it stands. A verdict is u8 cause and the decider's
// position plus one, zero for none. Columns of like values lie together because gzip finds them there.
func appendCore(b []byte, v *Version) ([]byte, int) { return new(work).appendCore(b, v) }

func (w *work) appendCore(b []byte, v *Version) ([]byte, int) {
	at := len(b)
	b = wire.AppendU64(wire.AppendU64(append(b, v.format()), v.Cluster), v.Birth)
	b = appendPruned(wire.AppendUvarint(b, uint64(v.HighestUp)), v)
	d := &w.words
	d.gather(v)
	b = d.append(b)
	b = appendMembers(b, v, d)
	b = appendTombs(b, v.Tombs, d)
	b = wire.AppendUvarint(b, uint64(len(v.Reach)))
	observer := 0
	for i := range v.Reach {
		b, observer = v.appendRow(b, observer, &v.Reach[i])
	}
	b = appendMeta(b, v.meta)
	format := v.format()
	if format >= partsFormat {
		b = partition.Append(b, v.Parts, v.Members)
	}
	if format == seatsFormat {
		b = tenure.AppendSeats(b, v.Seats)
	}
	content := len(b) - at
	b = wire.AppendUvarint(b, uint64(len(v.Clock)))
	next := 0
	for i := range v.Clock {
		b, next = v.appendMember(b, next, v.Clock[i].ID)
	}
	for i := range v.Clock {
		b = wire.AppendUvarint(b, v.Clock[i].N)
	}
	return b, content
}

// format is that of a state without a partition table and seats for as long as there are none: then they cost nothing,
// and nodes of older wire versions read it.
func (v *Version) format() byte {
	switch {
	case v.Seats.Number > 0:
		return seatsFormat
	case len(v.Parts) > 0:
		return partsFormat
	}
	return stateFormat
}

func appendMembers(b []byte, v *Version, d *dictionary) []byte {
	b = wire.AppendUvarint(b, uint64(len(v.Members)))
	var prev peer.Addr
	for i := range v.Members {
		b = peer.AppendAddrAfter(b, prev, v.Members[i].ID.Addr)
		prev = v.Members[i].ID.Addr
	}
	for i := range v.Members {
		b = wire.AppendU64(b, v.Members[i].ID.Inc)
	}
	for i := range v.Members {
		b = append(b, byte(v.Members[i].Status))
	}
	up := int64(1)
	for i := range v.Members {
		n := int64(v.Members[i].UpNumber)
		b = wire.AppendUvarint(b, uint64((n-up)<<1^(n-up)>>63))
		up = n + 1
	}
	at := 0
	for i := range v.Members {
		if i == 0 || !sameProfile(&v.Members[i], &v.Members[i-1]) {
			at, _ = d.profile(&v.Members[i])
		}
		b = wire.AppendUvarint(b, uint64(at))
	}
	for i := range v.Members {
		b = d.appendVerdict(b, v.Members[i].Status, v.Members[i].Cause, v.Members[i].By)
	}
	return b
}

func appendTombs(b []byte, tombs []Tombstone, d *dictionary) []byte {
	b = wire.AppendUvarint(b, uint64(len(tombs)))
	var prev peer.Addr
	for i := range tombs {
		b = peer.AppendAddrAfter(b, prev, tombs[i].ID.Addr)
		prev = tombs[i].ID.Addr
	}
	for i := range tombs {
		b = wire.AppendU64(b, tombs[i].ID.Inc)
	}
	for i := range tombs {
		b = append(b, byte(tombs[i].Last))
	}
	for i := range tombs {
		b = d.appendVerdict(b, tombs[i].Last, tombs[i].Cause, tombs[i].By)
	}
	return b
}

// appendRow appends one row of the Reachability table; observer is as next in appendMember.
func (v *Version) appendRow(b []byte, observer int, r *row) ([]byte, int) {
	b, observer = v.appendMember(b, observer, r.observer)
	b = wire.AppendUvarint(wire.AppendUvarint(b, r.version), uint64(len(r.records)))
	subject := 0
	for _, c := range r.records {
		b, subject = v.appendMember(b, subject, c.subject)
		b = append(wire.AppendUvarint(b, r.version-c.since), byte(c.kind))
	}
	return b, observer
}

// appendMember appends the position of id as its distance from next, and returns the position after it.
func (v *Version) appendMember(b []byte, next int, id peer.ID) ([]byte, int) {
	i := v.indexFrom(next, id)
	return wire.AppendUvarint(b, uint64(i-next)), i + 1
}

// readCore reads a version and seals it. Every invariant is checked, and that these are the bytes in which this version
// is always written: equal versions have equal bytes.
func (w *work) readCore(kind wire.Kind, b []byte) (*Version, error) {
	r := wire.NewReader(kind, b)
	format := r.U8()
	if format < stateFormat || format > seatsFormat {
		r.Fail(wire.ErrBadWire)
	}
	v := &Version{Cluster: r.U64(), Birth: r.U64(), HighestUp: readUpNumber(&r)}
	check(&r, v.Cluster != 0 && v.Birth != 0 && v.Birth <= maxBirth, true)
	readPruned(&r, v)
	d := readDictionary(&r)
	readMembers(&r, v, &d)
	readTombs(&r, v, &d)
	readReach(&r, v)
	v.meta = readMeta(&r)
	if format >= partsFormat {
		v.Parts = partition.Read(&r, v.Members)
	}
	if format == seatsFormat {
		v.Seats = tenure.ReadSeats(&r)
	}
	readClock(&r, v)
	if err := r.Done(); err != nil {
		return nil, err
	}
	v.sealIn(w, nil, nil)
	if !bytes.Equal(w.buf, b) {
		return nil, &wire.Error{Kind: kind, Offset: 0, Err: wire.ErrBadValue}
	}
	return v, nil
}

// check fails r unless the value is in range and the order holds.
func check(r *wire.Reader, value, order bool) {
	switch {
	case r.Err() != nil:
	case !value:
		r.Fail(wire.ErrBadValue)
	case !order:
		r.Fail(wire.ErrBadOrder)
	}
}

func readU32(r *wire.Reader) uint32 {
	v := r.Uvarint()
	check(r, v <= 1<<32-1, true)
	return uint32(v)
}

func readMembers(r *wire.Reader, v *Version, d *dictionary) {
	n := r.Count(12, cluster.MaxMembers) // an address of one byte, an incarnation, three more columns
	v.Members = make([]cluster.Member, n)
	var prev peer.Addr
	for i := range v.Members {
		prev = peer.ReadAddrAfter(r, prev)
		v.Members[i].ID.Addr = prev
		if r.Err() != nil {
			return
		}
	}
	for i := range v.Members {
		v.Members[i].ID.Inc = r.U64()
		check(r, v.Members[i].ID.Inc != 0 && !v.Members[i].ID.Addr.IsZero(),
			i == 0 || v.Members[i-1].ID.Less(v.Members[i].ID))
	}
	for i := range v.Members {
		s := cluster.Status(r.U8())
		check(r, s.Known() && s != cluster.Removed, true)
		v.Members[i].Status = s
	}
	up := int64(1)
	for i := range v.Members {
		z := r.Uvarint()
		up += int64(z>>1) ^ -int64(z&1)
		check(r, up >= 0 && up <= int64(v.HighestUp), true)
		if r.Err() != nil {
			return
		}
		must := v.Members[i].Status.Numbered()
		check(r, (must <= 0 || up > 0) && (must >= 0 || up == 0), true)
		v.Members[i].UpNumber = uint32(up)
		up++
	}
	for i := range v.Members {
		at := r.Uvarint()
		check(r, at < uint64(len(d.profiles)), true)
		if r.Err() != nil {
			return
		}
		v.Members[i].Roles, v.Members[i].AppVersion = d.profiles[at].roles, d.profiles[at].version
	}
	for i := range v.Members {
		v.Members[i].Cause, v.Members[i].By = d.readVerdict(r, v.Members[i].Status)
	}
}

func readTombs(r *wire.Reader, v *Version, d *dictionary) {
	n := r.Count(10, cluster.MaxTombstones)
	v.Tombs = make([]Tombstone, n)
	var prev peer.Addr
	for i := range v.Tombs {
		prev = peer.ReadAddrAfter(r, prev)
		v.Tombs[i].ID.Addr = prev
		if r.Err() != nil {
			return
		}
	}
	for i := range v.Tombs {
		v.Tombs[i].ID.Inc = r.U64()
		id := v.Tombs[i].ID
		check(r, !id.Addr.IsZero() && !v.Has(id), i == 0 || v.Tombs[i-1].ID.Less(id))
		if r.Err() != nil {
			return
		}
	}
	for i := range v.Tombs {
		v.Tombs[i].Last = cluster.Status(r.U8())
		check(r, v.Tombs[i].Last == cluster.Exiting || v.Tombs[i].Last == cluster.Down, true)
	}
	for i := range v.Tombs {
		v.Tombs[i].Cause, v.Tombs[i].By = d.readVerdict(r, v.Tombs[i].Last)
	}
}

func readReach(r *wire.Reader, v *Version) {
	n := r.Count(3, len(v.Members))
	v.Reach = make(Reachability, 0, n)
	observer := 0
	for range n {
		row := readRow(r, v, &observer)
		if r.Err() != nil {
			return
		}
		v.Reach = append(v.Reach, row)
	}
}

// readRow reads one row, of an observer at or after the given position, which it moves on.
func readRow(r *wire.Reader, v *Version, observer *int) row {
	row := row{observer: readMember(r, v, observer), version: readChanges(r)}
	count := r.Count(3, len(v.Members))
	subject := 0
	for range count {
		c := record{subject: readMember(r, v, &subject)}
		age := r.Uvarint()
		c.since, c.kind = row.version-age, recordKind(r.U8())
		check(r, age < row.version && c.subject != row.observer && c.kind <= quarantined, true)
		if r.Err() != nil {
			return row
		}
		if row.records == nil {
			row.records = make([]record, 0, count)
		}
		row.records = append(row.records, c)
	}
	return row
}

func readClock(r *wire.Reader, v *Version) {
	v.Clock = make(gossip.Clock, r.Count(2, len(v.Members)))
	next := 0
	for i := range v.Clock {
		v.Clock[i].ID = readMember(r, v, &next)
		if r.Err() != nil {
			return
		}
	}
	for i := range v.Clock {
		v.Clock[i].N = readChanges(r)
	}
}

// readMember reads a position in the list of members, at or after next, which it moves on.
func readMember(r *wire.Reader, v *Version, next *int) peer.ID {
	i := r.Uvarint()
	check(r, i < uint64(len(v.Members)-*next), true)
	if r.Err() != nil {
		return peer.ID{}
	}
	*next += int(i) + 1
	return v.Members[*next-1].ID
}
