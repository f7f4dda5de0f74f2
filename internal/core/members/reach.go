// Reachability: which observer holds which subject unreachable, one row per observer, changed by that observer alone
// (FD-3).

package members

import (
	"slices"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/peer"
)

// record says that a row's observer holds subject unreachable since that version of the row. Absence means reachable.
type record struct {
	subject peer.ID
	since   uint64
	kind    recordKind
}

// recordKind says how final a record is. Numbers stand on the wire.
type recordKind uint8

const (
	unreachable recordKind = 0 // silent; the observer may withdraw it
	quarantined recordKind = 1 // its state can no longer be trusted: final until one of both is removed (FD-4)
)

// row is all that one observer says, atomic: rows of one observer are never mixed, the higher version wins whole. A
// row without records keeps its version, so that what was withdrawn stays withdrawn.
type row struct {
	observer peer.ID
	version  uint64
	records  []record // sorted by subject
}

// Reachability is the table, sorted by observer. It is immutable: changes return a new table.
type Reachability []row

func (t Reachability) find(observer peer.ID) (int, bool) {
	return slices.BinarySearchFunc(t, observer, func(r row, id peer.ID) int { return r.observer.Compare(id) })
}

func (r row) find(subject peer.ID) (int, bool) {
	return slices.BinarySearchFunc(r.records, subject, func(c record, id peer.ID) int { return c.subject.Compare(id) })
}

// VersionOf returns the version of observer's row, 0 without one.
func (t Reachability) VersionOf(observer peer.ID) uint64 {
	if i, ok := t.find(observer); ok {
		return t[i].version
	}
	return 0
}

// Accuses reports whether observer holds subject unreachable.
func (t Reachability) Accuses(observer, subject peer.ID) bool {
	i, ok := t.find(observer)
	if ok {
		_, ok = t[i].find(subject)
	}
	return ok
}

// AccusedBy returns the subjects that observer holds unreachable, sorted.
func (t Reachability) AccusedBy(observer peer.ID) []peer.ID {
	i, ok := t.find(observer)
	if !ok || len(t[i].records) == 0 {
		return nil
	}
	out := make([]peer.ID, 0, len(t[i].records))
	for _, c := range t[i].records {
		out = append(out, c.subject)
	}
	return out
}

// Accusers returns the observers that hold subject unreachable, sorted.
func (t Reachability) Accusers(subject peer.ID) (out peer.Set) {
	for _, r := range t {
		if _, ok := r.find(subject); ok {
			out = append(out, r.observer)
		}
	}
	return out
}

// Quarantines reports whether observer holds subject quarantined.
func (t Reachability) Quarantines(observer, subject peer.ID) bool {
	if i, ok := t.find(observer); ok {
		if at, ok := t[i].find(subject); ok {
			return t[i].records[at].kind == quarantined
		}
	}
	return false
}

// With returns the table after observer judged subject. The same verdict again changes nothing, and none changes a
// quarantine.
func (t Reachability) With(observer, subject peer.ID, silent bool) Reachability {
	if t.Accuses(observer, subject) == silent || t.Quarantines(observer, subject) {
		return t
	}
	return t.put(observer, subject, unreachable, silent)
}

// Quarantine returns the table after observer put subject under quarantine.
func (t Reachability) Quarantine(observer, subject peer.ID) Reachability {
	if t.Quarantines(observer, subject) {
		return t
	}
	return t.put(observer, subject, quarantined, true)
}

// put makes a new version of observer's row, with or without a record about subject.
func (t Reachability) put(observer, subject peer.ID, kind recordKind, keep bool) Reachability {
	i, ok := t.find(observer)
	if !ok {
		return slices.Insert(slices.Clone(t), i, row{observer, 1, []record{{subject, 1, kind}}})
	}
	out := slices.Clone(t)
	r := &out[i]
	r.version++
	r.records = slices.Clone(r.records)
	at, known := r.find(subject)
	if known {
		r.records = slices.Delete(r.records, at, at+1)
	}
	if keep {
		r.records = slices.Insert(r.records, at, record{subject, r.version, kind})
	}
	return out
}

// joinRows joins two rows of one observer: the higher version wins whole. Under one version rows differ only by
// records about nodes that one side knows to be removed, so what both hold is right; and that rule has one outcome
// everywhere even for a faulty observer. A quarantine stays whichever side holds it; the observer never withdraws one.
func joinRows(a, b row) row {
	if a.version < b.version {
		a, b = b, a
	}
	if a.version > b.version && !b.hasQuarantine() ||
		a.version == b.version && slices.Equal(a.records, b.records) {
		return a
	}
	out := make([]record, 0, len(a.records)+len(b.records))
	for i, j := 0, 0; i < len(a.records) || j < len(b.records); {
		order := -1
		if i == len(a.records) {
			order = 1
		} else if j < len(b.records) {
			order = a.records[i].subject.Compare(b.records[j].subject)
		}
		var c record
		keep := false
		switch {
		case order < 0:
			c = a.records[i]
			keep = a.version > b.version || c.kind == quarantined
		case order > 0:
			c = b.records[j]
			keep = c.kind == quarantined
		default:
			c, keep = joinRecords(a.records[i], b.records[j], a.version == b.version), true
		}
		if order <= 0 {
			i++
		}
		if order >= 0 {
			j++
		}
		if keep {
			out = append(out, c)
		}
	}
	a.records = out
	return a
}

// joinRecords joins what two versions of a row, the first not the older, say of one subject.
func joinRecords(a, b record, sameVersion bool) record {
	switch {
	case a.kind > b.kind:
		return a
	case a.kind < b.kind:
		return b
	case sameVersion || a.kind == quarantined:
		a.since = max(a.since, b.since)
	}
	return a
}

func (r row) hasQuarantine() bool {
	return slices.ContainsFunc(r.records, func(c record) bool { return c.kind == quarantined })
}

func compareRows(x, y *row) int {
	if x.observer == y.observer {
		return 0
	}
	return x.observer.Compare(y.observer)
}

// sameRows says which of two rows of one observer is their join.
func sameRows(x, y *row) (isX, isY bool) {
	switch {
	case x.version > y.version:
		return !y.hasQuarantine(), false
	case x.version < y.version:
		return false, !x.hasQuarantine()
	}
	same := sameSlice(x.records, y.records) || slices.Equal(x.records, y.records)
	return same, same
}

// only returns the table without rows of, and records about, those that are no members; the table itself when it has
// none.
func (t Reachability) only(member func(peer.ID) bool) Reachability {
	stranger := func(c record) bool { return !member(c.subject) }
	if !slices.ContainsFunc(t, func(r row) bool {
		return !member(r.observer) || slices.ContainsFunc(r.records, stranger)
	}) {
		return t
	}
	out := make(Reachability, 0, len(t))
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

// subjectsInto returns the subjects that some observer that counts holds unreachable, sorted, in the memory of into.
func (t Reachability) subjectsInto(into peer.Set, counts func(observer peer.ID) bool) peer.Set {
	for _, r := range t {
		if len(r.records) > 0 && counts(r.observer) {
			for _, c := range r.records {
				into = append(into, c.subject)
			}
		}
	}
	if len(into) > 1 {
		slices.SortFunc(into, peer.ID.Compare)
		into = slices.Compact(into)
	}
	return into
}

// accusations lists all records, sorted by observer then subject; nil when there are none.
func (t Reachability) accusations() []cluster.Accusation {
	n := 0
	for _, r := range t {
		n += len(r.records)
	}
	if n == 0 {
		return nil
	}
	out := make([]cluster.Accusation, 0, n)
	for _, r := range t {
		for _, c := range r.records {
			out = append(out, cluster.Accusation{Observer: r.observer, Subject: c.subject, Quarantined: c.kind == quarantined})
		}
	}
	return out
}
