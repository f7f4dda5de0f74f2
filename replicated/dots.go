// Dots: which node added what, and which additions have been seen: what sets, maps and registers are made of.

package replicated

import (
	"bytes"
	"cmp"
	"maps"
	"slices"

	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// dot is one addition: the n-th of a node, from 1.
type dot struct {
	id peer.ID
	n  uint64
}

func (d dot) compare(o dot) int {
	if c := d.id.Compare(o.id); c != 0 {
		return c
	}
	return cmp.Compare(d.n, o.n)
}

// seen is a set of additions: all of a node up to a number, and single ones beyond. Deltas have single ones, so that
// they claim nothing that they have not.
type seen struct {
	upTo  map[peer.ID]uint64
	loose map[dot]struct{}
}

func (s seen) has(d dot) bool {
	if d.n <= s.upTo[d.id] {
		return true
	}
	_, ok := s.loose[d]
	return ok
}

// next returns the next addition of a node.
func (s seen) next(me peer.ID) dot {
	n := s.upTo[me]
	for d := range s.loose { // in any order: the highest
		if d.id == me {
			n = max(n, d.n)
		}
	}
	return dot{me, n + 1}
}

func (s seen) clone() seen {
	c := seen{make(map[peer.ID]uint64, len(s.upTo)+1), make(map[dot]struct{}, len(s.loose))}
	maps.Copy(c.upTo, s.upTo)
	maps.Copy(c.loose, s.loose)
	return c
}

// add adds to a set that was cloned. pack has to follow.
func (s seen) add(d dot) {
	if d.n > s.upTo[d.id] {
		s.loose[d] = struct{}{}
	}
}

// pack makes runs of single additions, so that equal sets have one form.
func (s seen) pack() {
	for _, d := range slices.SortedFunc(maps.Keys(s.loose), dot.compare) {
		if d.n == s.upTo[d.id]+1 {
			s.upTo[d.id] = d.n
		}
		if d.n <= s.upTo[d.id] {
			delete(s.loose, d)
		}
	}
}

func (s seen) union(o seen) seen {
	c := s.clone()
	for id, n := range o.upTo { // in any order: each by itself
		c.upTo[id] = max(c.upTo[id], n)
	}
	for d := range o.loose { // in any order: each by itself
		c.add(d)
	}
	c.pack()
	return c
}

// dotted is what one addition brought.
type dotted[P any] struct {
	dot
	p P
}

// kernel has, by key, the additions that are there, and all that have been seen: whatever was seen and is not there was
// removed. Values of it are immutable.
type kernel[K comparable, P any] struct {
	live map[K][]dotted[P] // each list sorted, never empty
	seen seen
}

func (k kernel[K, P]) clone(keys int) kernel[K, P] {
	live := make(map[K][]dotted[P], len(k.live)+keys)
	maps.Copy(live, k.live)
	return kernel[K, P]{live, k.seen.clone()}
}

// put adds p under keys, in place of what is there.
func (k kernel[K, P]) put(me peer.ID, p P, keys ...K) kernel[K, P] {
	c := k.clone(len(keys))
	at := k.seen.next(me)
	for _, key := range keys {
		c.live[key] = []dotted[P]{{at, p}}
		c.seen.add(at)
		at.n++
	}
	c.seen.pack()
	return c
}

// drop removes keys.
func (k kernel[K, P]) drop(keys ...K) kernel[K, P] {
	c := k.clone(0)
	for _, key := range keys {
		delete(c.live, key)
	}
	return c
}

func (k kernel[K, P]) merge(o kernel[K, P]) kernel[K, P] {
	c := kernel[K, P]{make(map[K][]dotted[P], max(len(k.live), len(o.live))), k.seen.union(o.seen)}
	for key, list := range k.live { // in any order: each key by itself
		if left := survive(list, o.live[key], k.seen, o.seen); len(left) > 0 {
			c.live[key] = left
		}
	}
	for key, list := range o.live { // in any order: each key by itself
		if _, both := k.live[key]; both {
			continue
		}
		if left := survive(list, nil, o.seen, k.seen); len(left) > 0 {
			c.live[key] = left
		}
	}
	return c
}

// survive returns what is on both sides, or on one and unknown to the other. It may be one of the lists itself.
func survive[P any](a, b []dotted[P], seenA, seenB seen) []dotted[P] {
	if len(a) == 1 && (len(b) == 1 && b[0].dot == a[0].dot || len(b) == 0 && !seenB.has(a[0].dot)) {
		return a
	}
	var left []dotted[P]
	for _, d := range a {
		if has(b, d.dot) || !seenB.has(d.dot) {
			left = append(left, d)
		}
	}
	for _, d := range b {
		if !has(a, d.dot) && !seenA.has(d.dot) {
			left = append(left, d)
		}
	}
	slices.SortFunc(left, func(x, y dotted[P]) int { return x.compare(y.dot) })
	return left
}

func has[P any](list []dotted[P], d dot) bool {
	return slices.ContainsFunc(list, func(x dotted[P]) bool { return x.dot == d })
}

// since returns what is here and was not there in old, and what was seen or removed since.
func (k kernel[K, P]) since(old kernel[K, P]) kernel[K, P] {
	d := kernel[K, P]{map[K][]dotted[P]{}, seen{}.clone()}
	for key, list := range k.live { // in any order: each key by itself
		was := old.live[key]
		var fresh []dotted[P]
		for _, x := range list {
			if !has(was, x.dot) && !old.seen.has(x.dot) {
				fresh = append(fresh, x)
				d.seen.add(x.dot)
			}
		}
		if len(fresh) > 0 {
			d.live[key] = fresh
		}
	}
	for key, list := range old.live { // in any order: each key by itself
		for _, x := range list {
			if !has(k.live[key], x.dot) && k.seen.has(x.dot) {
				d.seen.add(x.dot)
			}
		}
	}
	for id, n := range k.seen.upTo { // in any order: each by itself
		for at := old.seen.upTo[id] + 1; at <= n; at++ {
			if x := (dot{id, at}); !old.seen.has(x) {
				d.seen.add(x)
			}
		}
	}
	for x := range k.seen.loose { // in any order: each by itself
		if !old.seen.has(x) {
			d.seen.add(x)
		}
	}
	d.seen.pack()
	return d
}

// fold gives the additions of gone to the zero identity, behind those that it has.
func (k kernel[K, P]) fold(gone peer.ID) kernel[K, P] {
	all := k.seen.upTo[gone]
	if all == 0 || gone.IsZero() {
		return k
	}
	c := k.clone(0)
	base := c.seen.upTo[peer.ID{}]
	delete(c.seen.upTo, gone)
	c.seen.upTo[peer.ID{}] = base + all
	for key, list := range k.live { // in any order: each key by itself
		if !slices.ContainsFunc(list, func(d dotted[P]) bool { return d.id == gone }) {
			continue
		}
		list = slices.Clone(list)
		for i := range list {
			if list[i].id == gone {
				list[i].dot = dot{peer.ID{}, base + list[i].n}
			}
		}
		slices.SortFunc(list, func(x, y dotted[P]) int { return x.compare(y.dot) })
		c.live[key] = list
	}
	return c
}

// append appends: the identities; for each the number up to which all is seen; the single ones; then by key, in the
// order of their bytes, its additions.
func (k kernel[K, P]) append(b []byte, part func([]byte, P) ([]byte, error)) ([]byte, error) {
	ids := peer.SetOf(sortedIDs(k.seen.upTo)...)
	for d := range k.seen.loose { // in any order: into a set
		ids.Add(d.id)
	}
	b = wire.AppendUvarint(b, uint64(len(ids)))
	for _, id := range ids {
		b = wire.AppendUvarint(peer.AppendID(b, id), k.seen.upTo[id])
	}
	point := func(b []byte, d dot) []byte {
		return wire.AppendUvarint(wire.AppendUvarint(b, uint64(ids.Index(d.id))), d.n)
	}
	b = wire.AppendUvarint(b, uint64(len(k.seen.loose)))
	for _, d := range slices.SortedFunc(maps.Keys(k.seen.loose), dot.compare) {
		b = point(b, d)
	}
	type row struct {
		name []byte
		key  K
	}
	rows := make([]row, 0, len(k.live))
	for key := range k.live { // in any order: sorted below
		name, err := appendOne(nil, key)
		if err != nil {
			return b, err
		}
		rows = append(rows, row{name, key})
	}
	slices.SortFunc(rows, func(x, y row) int { return bytes.Compare(x.name, y.name) })
	b = wire.AppendUvarint(b, uint64(len(rows)))
	for _, r := range rows {
		list := k.live[r.key]
		b = wire.AppendUvarint(wire.AppendBytes(b, r.name), uint64(len(list)))
		for _, d := range list {
			var err error
			if b, err = part(point(b, d.dot), d.p); err != nil {
				return b, err
			}
		}
	}
	return b, nil
}

// read reads what append appended.
func (k kernel[K, P]) read(r *wire.Reader, part func(*wire.Reader) P) kernel[K, P] {
	c := kernel[K, P]{map[K][]dotted[P]{}, seen{}.clone()}
	var ids []peer.ID
	for i := range r.Count(peer.MinIDSize+1, maxCount) {
		id, n := peer.ReadID(r), r.Uvarint()
		if r.Err() != nil || i > 0 && !ids[i-1].Less(id) {
			r.Fail(wire.ErrBadValue)
			return c
		}
		if ids = append(ids, id); n > 0 {
			c.seen.upTo[id] = n
		}
	}
	point := func() (d dot) {
		if i := r.Uvarint(); r.Err() == nil && i < uint64(len(ids)) {
			d = dot{ids[i], r.Uvarint()}
		}
		if d.n == 0 {
			r.Fail(wire.ErrBadValue)
		}
		return d
	}
	for range r.Count(2, maxCount) {
		c.seen.add(point())
	}
	c.seen.pack()
	for range r.Count(4, maxCount) {
		key := readPart[K](r)
		n := r.Count(2, maxCount)
		for range n {
			d := dotted[P]{point(), part(r)}
			list := c.live[key]
			if r.Err() != nil || !c.seen.has(d.dot) || len(list) > 0 && list[len(list)-1].compare(d.dot) >= 0 {
				r.Fail(wire.ErrBadValue)
				return c
			}
			c.live[key] = append(list, d)
		}
		if r.Err() != nil || n == 0 {
			r.Fail(wire.ErrBadValue)
			return c
		}
	}
	return c
}
