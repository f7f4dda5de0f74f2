// Table: which disks a store has, as one of them knows, and what their nodes say to one another of it.

package quorum

import (
	"slices"

	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// MaxDisks is the most disks of one store.
const MaxDisks = 256

// tableKey is where a disk has its table.
const tableKey = "t"

// table is what a disk knows of the others.
type table struct {
	id       peer.ID  // of this disk
	founders peer.Set // the disks with which the store began; empty: it has not, as far as this disk knows
	disks    peer.Set // of all members, this one among them
	removed  peer.Set // that were away for longer than ReplaceAfter, and have not come back; that leave, and may go
}

func (t *table) change() Change {
	b := appendSet(peer.AppendID(nil, t.id), t.founders)
	return Change{Key: []byte(tableKey), Value: appendSet(appendSet(b, t.disks), t.removed)}
}

func (t *table) read(b []byte) error {
	r := wire.NewReader(0, b)
	t.id = peer.ReadID(&r)
	t.founders, t.disks, t.removed = readSet(&r), readSet(&r), readSet(&r)
	return r.Done()
}

func appendSet(b []byte, set peer.Set) []byte {
	b = wire.AppendUvarint(b, uint64(len(set)))
	for _, id := range set {
		b = peer.AppendID(b, id)
	}
	return b
}

// readSet reads a set, which has to be in order.
func readSet(r *wire.Reader) (set peer.Set) {
	for range r.Count(peer.MinIDSize, MaxDisks) {
		id := peer.ReadID(r)
		if r.Err() == nil && (id.Addr.IsZero() || len(set) > 0 && set[len(set)-1].Compare(id) >= 0) {
			r.Fail(wire.ErrBadOrder)
		}
		if r.Err() != nil {
			return nil
		}
		set = append(set, id)
	}
	return set
}

// put has a disk in the table, in the place of another one of its address.
func (t *table) put(id peer.ID) (changed bool) {
	if t.disks.Has(id) || len(t.disks) >= MaxDisks || id.Addr == t.id.Addr && id != t.id {
		return false
	}
	for _, other := range slices.Clone(t.disks) {
		if other.Addr == id.Addr {
			t.disks.Remove(other)
		}
	}
	t.disks.Add(id)
	t.removed.Remove(id)
	return true
}

// drop takes a disk out of the table, and remembers that.
func (t *table) drop(id peer.ID) {
	t.disks.Remove(id)
	t.remove(id)
}

// remove notes that a disk is not needed any more, also one that is there still.
func (t *table) remove(id peer.ID) {
	if len(t.removed) >= MaxDisks {
		t.removed.Remove(t.removed[0])
	}
	t.removed.Add(id)
}

// What a frame between two nodes of a store begins with.
const (
	tagHello   = 1
	tagMessage = 2
	tagBeside  = 3 // a message of another machine on the same disk
)

// hello says which disk a node has. One that is in removed itself leaves; it may go when others have it there, too.
type hello struct {
	settings uint64 // a sum of those that have to be the same
	answer   bool   // say yours
	lacks    bool   // this disk knows that it was removed
	table
}

func (h *hello) append(b []byte) []byte {
	b = wire.AppendU64(append(b, tagHello), h.settings)
	b = wire.AppendBool(wire.AppendBool(b, h.answer), h.lacks)
	return append(b, h.change().Value...)
}

// leaves reports whether the disk of a hello does.
func (h *hello) leaves() bool { return h.disks.Has(h.id) && h.removed.Has(h.id) }

func readHello(body []byte) (h hello, err error) {
	r := wire.NewReader(0, body)
	h.settings, h.answer, h.lacks = r.U64(), r.Bool(), r.Bool()
	rest := r.Rest()
	if err = r.Done(); err == nil {
		err = h.read(rest)
	}
	return h, err
}

// appendMail appends a message of one disk to another.
func appendMail(b []byte, from, to peer.ID, body []byte) []byte {
	return append(peer.AppendID(peer.AppendID(b, from), to), body...)
}

func readMail(b []byte) (from, to peer.ID, body []byte, err error) {
	r := wire.NewReader(0, b)
	from, to = peer.ReadID(&r), peer.ReadID(&r)
	body = r.Rest()
	return from, to, body, r.Done()
}
