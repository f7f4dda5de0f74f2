// Reachability: who holds whom unreachable, one row per observer, changed by that observer alone (FD-3).

package membership

import (
	"slices"

	"github.com/kith-io/kith/peer"
)

// record says that a row's observer holds subject unreachable since that version of the row. Absence means reachable.
type record struct {
	subject peer.ID
	since   uint64
}

// row is all that one observer says, atomic: rows of one observer are never mixed, the higher version wins whole. A
// row without records keeps its version, so that what was withdrawn stays withdrawn.
type row struct {
	observer peer.ID
	version  uint64
	records  []record // sorted by subject
}

// reachability is the table, sorted by observer. It is immutable: changes return a new table.
type reachability []row

func (t reachability) find(observer peer.ID) (int, bool) {
	return slices.BinarySearchFunc(t, observer, func(r row, id peer.ID) int { return r.observer.Compare(id) })
}

func (r row) find(subject peer.ID) (int, bool) {
	return slices.BinarySearchFunc(r.records, subject, func(c record, id peer.ID) int { return c.subject.Compare(id) })
}

// versionOf returns the version of observer's row, 0 without one.
func (t reachability) versionOf(observer peer.ID) uint64 {
	if i, ok := t.find(observer); ok {
		return t[i].version
	}
	return 0
}

// accuses reports whether observer holds subject unreachable.
func (t reachability) accuses(observer, subject peer.ID) bool {
	i, ok := t.find(observer)
	if ok {
		_, ok = t[i].find(subject)
	}
	return ok
}

// with returns the table after observer judged subject. The same verdict again changes nothing.
func (t reachability) with(observer, subject peer.ID, unreachable bool) reachability {
	if t.accuses(observer, subject) == unreachable {
		return t
	}
	i, ok := t.find(observer)
	if !ok {
		return slices.Insert(slices.Clone(t), i, row{observer, 1, []record{{subject, 1}}})
	}
	out := slices.Clone(t)
	r := &out[i]
	r.version++
	r.records = slices.Clone(r.records)
	at, _ := r.find(subject)
	if unreachable {
		r.records = slices.Insert(r.records, at, record{subject, r.version})
	} else {
		r.records = slices.Delete(r.records, at, at+1)
	}
	return out
}

// joinRows joins two rows of one observer: the higher version wins whole. Under one version rows differ only by
// records about nodes that one side knows to be removed, so what both hold is right; and that rule has one outcome
// everywhere even for a faulty observer.
func joinRows(a, b row) row {
	switch {
	case a.version > b.version:
		return a
	case a.version < b.version:
		return b
	case len(a.records) == len(b.records) && slices.Equal(a.records, b.records):
		return a
	}
	both := make([]record, 0, min(len(a.records), len(b.records)))
	for _, c := range a.records {
		if i, ok := b.find(c.subject); ok {
			both = append(both, record{c.subject, max(c.since, b.records[i].since)})
		}
	}
	a.records = both
	return a
}

// merge takes each observer's row from the side that has the higher version of it, then keeps what is about members.
func (t reachability) merge(o reachability, member func(peer.ID) bool) reachability {
	out := mergeSorted(t, o, func(r row) peer.ID { return r.observer }, joinRows)
	return reachability(out).only(member)
}

// only returns the table without rows of, and records about, those who are no members.
func (t reachability) only(member func(peer.ID) bool) reachability {
	out := make(reachability, 0, len(t))
	for _, r := range t {
		if !member(r.observer) {
			continue
		}
		if slices.ContainsFunc(r.records, func(c record) bool { return !member(c.subject) }) {
			r.records = slices.DeleteFunc(slices.Clone(r.records), func(c record) bool { return !member(c.subject) })
		}
		out = append(out, r)
	}
	return out
}

// subjects returns those whom some observer that counts holds unreachable, sorted.
func (t reachability) subjects(counts func(observer peer.ID) bool) peer.Set {
	var all []peer.ID
	for _, r := range t {
		if len(r.records) > 0 && counts(r.observer) {
			for _, c := range r.records {
				all = append(all, c.subject)
			}
		}
	}
	if len(all) == 0 {
		return nil
	}
	return peer.SetOf(all...)
}
