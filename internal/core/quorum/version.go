// Versions: what a value was written on top of, which of two replaces the other, and both as bytes.

package quorum

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/cespare/xxhash/v2"

	"github.com/kith-io/kith/gossip"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// MaxClock is the most replicas that the past of a value names.
const MaxClock = 64

// Versioned is a value with its version (DYN-2). It is immutable.
type Versioned struct {
	Hash    uint64       // of all that follows; shows a damaged one
	By      peer.ID      // the replica with the broker that made the change: the id of a disk, not of a process
	Seq     uint64       // the number of the change among those of By, never 0 and never used again
	Past    gossip.Clock // of Siblings: the changes that its writer had read
	Counter uint64       // of Register: one above what its writer had read
	Deleted bool         // there is no value any more; Data is empty
	At      int64        // when it was deleted, in milliseconds of the writer's wall clock
	Data    []byte
}

// Version returns the vector clock of the value: its past and its own change.
func (v *Versioned) Version() gossip.Clock { return v.Past.BumpTo(v.By, v.Seq) }

// knows reports whether v was written on top of o, or is o.
func (v *Versioned) knows(o *Versioned) bool {
	return v.Past.Of(o.By) >= o.Seq || v.By == o.By && v.Seq == o.Seq
}

// Compare says how v stands to o, by their clocks in Siblings and by counter and writer in Register.
func (v *Versioned) Compare(o *Versioned, m Mode) gossip.Order {
	if v.By == o.By && v.Seq == o.Seq {
		return gossip.Same
	}
	if m == Register {
		if cmp.Or(cmp.Compare(v.Counter, o.Counter), v.By.Compare(o.By), cmp.Compare(v.Seq, o.Seq)) < 0 {
			return gossip.Before
		}
		return gossip.After
	}
	switch {
	case o.knows(v):
		return gossip.Before
	case v.knows(o):
		return gossip.After
	}
	return gossip.Concurrent
}

// Entry is what a key has: values of which none replaces another, by writer and number. Register has one at most.
type Entry []Versioned

// Merge returns e with o taken in, and whether that is another one than e.
func (e Entry) Merge(o Entry, m Mode) (Entry, bool) {
	out, changed := e, false
	for i := range o {
		var added bool
		out, added = out.add(&o[i], m)
		changed = changed || added
	}
	return out, changed
}

// add takes one value in.
func (e Entry) add(v *Versioned, m Mode) (Entry, bool) {
	for i := range e {
		if order := v.Compare(&e[i], m); order == gossip.Same || order == gossip.Before {
			return e, false
		}
	}
	out := make(Entry, 0, len(e)+1)
	for i := range e {
		if v.Compare(&e[i], m) != gossip.After {
			out = append(out, e[i])
		}
	}
	at, _ := slices.BinarySearchFunc(out, v, func(a Versioned, v *Versioned) int {
		return cmp.Or(a.By.Compare(v.By), cmp.Compare(a.Seq, v.Seq))
	})
	return slices.Insert(out, at, *v), true
}

// lacks reports whether something of e is missing in o. Then o gets all of e, never a part: a clock that names a change
// covers those of the same replica before it, so what has one of them has to have them all.
func (e Entry) lacks(o Entry, m Mode) bool {
	for i := range e {
		if _, changed := o.add(&e[i], m); changed {
			return true
		}
	}
	return false
}

// Context returns the clock of all values together, by which a write says that it replaces them.
func (e Entry) Context() (c gossip.Clock) {
	for i := range e {
		c = c.Merge(e[i].Version())
	}
	return c
}

// Live returns the values that are not deletions.
func (e Entry) Live() (live Entry) {
	for i := range e {
		if !e[i].Deleted {
			live = append(live, e[i])
		}
	}
	return live
}

// digest returns a number that two entries share when their versions are the same.
func (e Entry) digest(key []byte) uint64 {
	if len(e) == 0 {
		return 0
	}
	b := slices.Clone(key)
	for i := range e {
		b = wire.AppendU64(peer.AppendID(b, e[i].By), e[i].Seq)
	}
	return xxhash.Sum64(b)
}

// seal sets the hash of v.
func (v *Versioned) seal() { v.Hash = v.sum() }

func (v *Versioned) sum() uint64 { return xxhash.Sum64(v.appendBody(nil)) }

func (v *Versioned) appendBody(b []byte) []byte {
	b = wire.AppendUvarint(peer.AppendID(b, v.By), v.Seq)
	b = wire.AppendUvarint(gossip.AppendClock(b, v.Past), v.Counter)
	b = wire.AppendU64(wire.AppendBool(b, v.Deleted), uint64(v.At))
	return wire.AppendBytes(b, v.Data)
}

// AppendEntry appends the bytes of an entry, as disks and messages have it.
func AppendEntry(b []byte, e Entry) []byte {
	b = wire.AppendUvarint(b, uint64(len(e)))
	for i := range e {
		b = e[i].appendBody(wire.AppendU64(b, e[i].Hash))
	}
	return b
}

// leastVersioned is the fewest bytes of a value.
const leastVersioned = 8 + peer.MinIDSize + 1 + 1 + 1 + 1 + 8 + 1

// ReadEntry reads what AppendEntry wrote: at most limit values, sorted, none of which was damaged. Data lies in the
// reader's bytes. Errors stay in r.
func ReadEntry(r *wire.Reader, limit, maxValue int) Entry {
	n := r.Count(leastVersioned, limit)
	e := make(Entry, 0, n)
	for range n {
		v := Versioned{Hash: r.U64(), By: peer.ReadID(r), Seq: r.Uvarint(), Past: gossip.ReadClock(r, MaxClock)}
		v.Counter, v.Deleted, v.At, v.Data = r.Uvarint(), r.Bool(), int64(r.U64()), r.Bytes(maxValue)
		if len(v.Past) == 0 {
			v.Past = nil
		}
		if len(v.Data) == 0 {
			v.Data = nil
		}
		if r.Err() != nil {
			return nil
		}
		if v.Seq == 0 || v.Seq > gossip.MaxChanges || v.Counter > gossip.MaxChanges || v.By.Addr.IsZero() ||
			v.Past.Of(v.By) >= v.Seq || v.Deleted && len(v.Data) > 0 || v.Hash != v.sum() {
			r.Fail(wire.ErrBadValue)
			return nil
		}
		if k := len(e); k > 0 && cmp.Or(e[k-1].By.Compare(v.By), cmp.Compare(e[k-1].Seq, v.Seq)) >= 0 {
			r.Fail(wire.ErrBadOrder)
			return nil
		}
		e = append(e, v)
	}
	return e
}

// own returns an entry that shares no bytes with what it was read from.
func (e Entry) own() Entry {
	for i := range e {
		e[i].Data = bytes.Clone(e[i].Data)
	}
	return e
}

// size returns for how many bytes an entry counts.
func (e Entry) size() (n int) {
	for i := range e {
		n += len(e[i].Data) + 16*len(e[i].Past) + 64
	}
	return n
}

// Groups is how many groups of replicas a store has; each key belongs to one.
const Groups = 64

// leaves is how many leaves the hash tree of a group has.
const leaves = 32

// place returns the group of a key and its leaf in the tree of that.
func place(key []byte) (group, leaf uint8) {
	h := xxhash.Sum64(key)
	return uint8(h % Groups), uint8(h >> 8 % leaves)
}

// diskKey is where the entry of a key lies on a disk.
func diskKey(key []byte) []byte {
	group, leaf := place(key)
	return append([]byte{'v', group, leaf}, key...)
}
