// Codec: a table as bytes for nodes that hold the same members, which are ordinals there and identities here (PRT-1).

package partition

import (
	"sort"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// Flags of a partition on the wire.
const (
	flagDeleted = 1 << iota
	flagRole
	flagHint
	flagMove
	flagPlaced

	allFlags = 1<<iota - 1
)

// Append appends a table: a varint count of paths, then each in order,
//
//	varint how many bytes its path begins with as the one before it; the rest of the path as string
//	u8 flags: 1 deleted, 2 role, 4 hint, 8 move, 16 placed; varint version; member that defined it
//	u8 kind of count; varint N; scaled: varint most, varint load; u8 hand-off
//	role: string; hint: varint; move: varint slot, member
//	placed: varint epoch; varint up-number of the writer; varint wanted; u8 hand-off in force; varint heeded
//	        count of slots, then each: member; count of changes, then each: varint slot, the new member,
//	        varint what it is before the epoch times two, plus one when complete, varint up-number of its writer
//
// A member is its ordinal in the sorted members plus one, zero for none; one more than all members, and its id, for one
// that is none of them (any more). A hand-off is the old option, plus four times the new, plus eight times the late
// one. Nothing defined is one byte.
func Append(b []byte, t Table, members []cluster.Member) []byte {
	b = wire.AppendUvarint(b, uint64(len(t)))
	last := ""
	for i := range t {
		b = AppendOne(b, &t[i], last, members)
		last = t[i].Path
	}
	return b
}

// AppendOne appends one partition behind the one with the path last.
func AppendOne(b []byte, p *cluster.Partition, last string, members []cluster.Member) []byte {
	shared := 0
	for shared < min(len(last), len(p.Path)) && last[shared] == p.Path[shared] {
		shared++
	}
	b = wire.AppendString(wire.AppendUvarint(b, uint64(shared)), p.Path[shared:])
	b = wire.AppendUvarint(append(b, flagsOf(p)), p.Version)
	b = appendMember(b, p.DefinedBy, members)
	b = wire.AppendUvarint(append(b, byte(p.Count.Kind)), uint64(p.Count.N))
	if p.Count.Kind == cluster.CountScaled {
		b = wire.AppendUvarint(wire.AppendUvarint(b, uint64(p.Count.Most)), uint64(p.Count.Load))
	}
	b = append(b, handoffByte(p.Handoff))
	if p.Role != "" {
		b = wire.AppendString(b, p.Role)
	}
	if p.Hint != 0 {
		b = wire.AppendUvarint(b, uint64(p.Hint))
	}
	if !p.MoveTo.IsZero() {
		b = appendMember(wire.AppendUvarint(b, uint64(p.MoveSlot)), p.MoveTo, members)
	}
	if p.Epoch == 0 {
		return b
	}
	b = wire.AppendUvarint(wire.AppendUvarint(wire.AppendUvarint(b, p.Epoch), uint64(p.Writer)), uint64(p.Wanted))
	b = wire.AppendUvarint(append(b, handoffByte(p.InForce)), p.Heeded)
	b = wire.AppendUvarint(b, uint64(len(p.Instances)))
	for _, id := range p.Instances {
		b = appendMember(b, id, members)
	}
	b = wire.AppendUvarint(b, uint64(len(p.Changes)))
	for i := range p.Changes {
		c := &p.Changes[i]
		b = appendMember(wire.AppendUvarint(b, uint64(c.Slot)), c.To, members)
		age := (p.Epoch - c.Epoch) << 1
		if c.Complete {
			age |= 1
		}
		b = wire.AppendUvarint(wire.AppendUvarint(b, age), uint64(c.Writer))
	}
	return b
}

func flagsOf(p *cluster.Partition) (flags byte) {
	for i, is := range [...]bool{p.Deleted, p.Role != "", p.Hint != 0, !p.MoveTo.IsZero(), p.Epoch != 0} {
		if is {
			flags |= 1 << i
		}
	}
	return flags
}

func handoffByte(h cluster.Handoff) byte { return byte(h.Old) | byte(h.New)<<2 | byte(h.Late)<<3 }

// ordinal returns the place of id in the sorted members, -1 when it is none of them.
func ordinal(members []cluster.Member, id peer.ID) int {
	i := sort.Search(len(members), func(i int) bool { return members[i].ID.Compare(id) >= 0 })
	if i == len(members) || members[i].ID != id {
		return -1
	}
	return i
}

func appendMember(b []byte, id peer.ID, members []cluster.Member) []byte {
	if id.IsZero() {
		return append(b, 0)
	}
	if i := ordinal(members, id); i >= 0 {
		return wire.AppendUvarint(b, uint64(i)+1)
	}
	return peer.AppendID(wire.AppendUvarint(b, uint64(len(members))+1), id)
}

// Read reads what Append wrote; r fails when it breaks a bound. Whether these are the bytes in which this table is
// always written, the caller checks by writing it again.
func Read(r *wire.Reader, members []cluster.Member) Table {
	n := r.Count(LeastSize, cluster.MaxPartitions)
	if n == 0 {
		return nil
	}
	t := make(Table, 0, n)
	last := ""
	for range n {
		p := ReadOne(r, last, members)
		check(r, true, p.Path > last)
		if r.Err() != nil {
			return nil
		}
		t, last = append(t, p), p.Path
	}
	return t
}

// LeastSize is the least size of one partition.
const LeastSize = 9

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

// readNumber reads a varint that is at most most.
func readNumber(r *wire.Reader, most uint64) uint64 {
	v := r.Uvarint()
	check(r, v <= most, true)
	if r.Err() != nil {
		return 0
	}
	return v
}

// ReadOne reads one partition behind the one with the path last. After an error the result is of no use.
func ReadOne(r *wire.Reader, last string, members []cluster.Member) (p cluster.Partition) {
	shared := readNumber(r, uint64(len(last)))
	p.Path = last[:shared] + r.String(cluster.MaxPartitionPath-int(shared))
	flags := r.U8()
	p.Version = readNumber(r, MaxVersion)
	p.DefinedBy = readMember(r, members)
	p.Count = cluster.Count{Kind: cluster.CountKind(r.U8()), N: int(readNumber(r, 100))}
	if p.Count.Kind == cluster.CountScaled {
		p.Count.Most = int(readNumber(r, cluster.MaxInstances))
		p.Count.Load = int(readNumber(r, cluster.MaxPartitionLoad))
	}
	p.Handoff = readHandoff(r)
	if flags&flagRole != 0 {
		p.Role = r.String(cluster.MaxRoleSize)
	}
	if flags&flagHint != 0 {
		p.Hint = int(readNumber(r, cluster.MaxPartitionLoad))
	}
	if flags&flagMove != 0 {
		p.MoveSlot, p.MoveTo = int(readNumber(r, cluster.MaxInstances-1)), readMember(r, members)
	}
	p.Deleted = flags&flagDeleted != 0
	if r.Err() != nil {
		return p
	}
	check(r, flags <= allFlags && p.Version > 0 && !p.DefinedBy.IsZero() && p.Count.Validate() == nil &&
		CheckPath(p.Path) == nil, true)
	if flags&flagPlaced != 0 {
		readPlacement(r, &p, members)
	}
	check(r, flags == flagsOf(&p), true)
	return p
}

func readPlacement(r *wire.Reader, p *cluster.Partition, members []cluster.Member) {
	p.Epoch, p.Writer = readNumber(r, MaxEpoch), uint32(readNumber(r, maxWriter))
	p.Wanted, p.InForce = int(readNumber(r, cluster.MaxInstances)), readHandoff(r)
	p.Heeded = readNumber(r, MaxVersion)
	n := r.Count(1, cluster.MaxInstances)
	if n > 0 {
		p.Instances = make([]peer.ID, 0, n)
	}
	for range n {
		p.Instances = append(p.Instances, readMember(r, members))
	}
	check(r, n == 0 || r.Err() == nil && !p.Instances[n-1].IsZero(), true)
	last := -1
	for range r.Count(4, n) {
		c := cluster.PartitionChange{Path: p.Path, Slot: int(readNumber(r, cluster.MaxInstances-1))}
		c.To = readMember(r, members)
		age := r.Uvarint()
		c.Epoch, c.Complete, c.Writer = p.Epoch-age>>1, age&1 != 0, uint32(readNumber(r, maxWriter))
		check(r, age>>1 < p.Epoch && c.Slot < n, c.Slot > last)
		if r.Err() != nil {
			return
		}
		c.From, last = p.Instances[c.Slot], c.Slot
		check(r, !c.From.IsZero() && c.From != c.To, true)
		p.Changes = append(p.Changes, c)
	}
}

// maxWriter is the highest up-number.
const maxWriter = 1 << 31

func readHandoff(r *wire.Reader) cluster.Handoff {
	v := r.U8()
	h := cluster.Handoff{Old: cluster.OldOption(v & 3), New: cluster.NewOption(v >> 2 & 1)}
	h.Late = cluster.LateOption(v >> 3)
	check(r, h.Validate() == nil, true)
	return h
}

func readMember(r *wire.Reader, members []cluster.Member) peer.ID {
	switch v := readNumber(r, uint64(len(members))+1); {
	case v == 0:
		return peer.ID{}
	case v <= uint64(len(members)):
		return members[v-1].ID
	}
	id := peer.ReadID(r)
	check(r, !id.Addr.IsZero() && id.Inc != 0, true)
	return id
}
