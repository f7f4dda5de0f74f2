// A commit: one transaction, which compares the shard's fence and the revision of each record, and the indexes of
// alarms, outboxes and marks within it.

package etcd

import (
	"context"
	"errors"
	"fmt"
	"slices"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/store"
)

const (
	// attempts is how often one Commit begins anew because a record changed meanwhile: late copies do that, no owner.
	attempts = 16
	// across and within split operations of a transaction into transactions within it. Servers count the longest list
	// of each level (comparisons, or operations) and demand that the sum of all levels is at most maxOps: 103
	// comparisons of a commit of store.MaxWrites, and within twice.
	across, within = 100, 12
)

// change is a commit that is being made.
//
// What is read before and compared guards marks, too, though they are not compared: whatever writes marks of an entity
// writes its record or deletes it; and each deletion writes the shard's floor, which commits that make or delete
// records compare. So if a record is of the same revision, or there is none and the floor is of the same one, its marks
// have not been written meanwhile.
type change struct {
	s       *Store
	k       keys
	f       route.Fence
	w       []store.Write
	fresh   bool   // are and low were read by one transaction
	are     []seen // the records, by write
	numbers []map[string]uint64
	low     low
	floors  bool // low is compared
}

// Commit implements store.Store.
func (s *Store) Commit(ctx context.Context, at store.Shard, f route.Fence, w ...store.Write) error {
	if err := errors.Join(store.CheckShard(at, f), store.Check(w)); err != nil {
		return err
	}
	c := &change{s: s, k: s.keys(at), f: f, w: w}
	c.floors = slices.ContainsFunc(w, func(w store.Write) bool { return w.Delete || w.Makes() })
	for try := range attempts {
		if err := c.look(ctx, try > 0); err != nil {
			return err
		}
		if err := c.follow(); err != nil {
			if c.fresh {
				return err
			}
			continue
		}
		cmps, ops := c.operations()
		did, err := s.under(ctx, c.k, f, cmps, packed(ops)...)
		if err != nil {
			c.forget()
			return err
		}
		if did != nil {
			c.wrote(did.Header.Revision)
			return nil
		}
	}
	c.forget()
	return fmt.Errorf("%w: its records changed %d times meanwhile", store.ErrUnknown, attempts)
}

// look finds out what is stored: what the store knows is believed unless all is to be fresh, the rest is read. Records
// and floor are read before, or with, the marks.
func (c *change) look(ctx context.Context, fresh bool) error {
	var ops []clientv3.Op
	var take []func([]*kv) error
	read := func(key string, f func([]*kv) error) {
		ops, take = append(ops, clientv3.OpGet(key)), append(take, f)
	}
	c.fresh, c.are, c.numbers = true, make([]seen, len(c.w)), make([]map[string]uint64, len(c.w))
	believed := func(key string) (is seen, ok bool) {
		if !fresh {
			is, ok = c.s.known.get(key)
			c.fresh = c.fresh && !ok
		}
		return is, ok
	}
	if c.floors {
		if is, ok := believed(c.k.floor()); ok {
			c.low = low{is.version, is.rev}
		} else {
			read(c.k.floor(), func(kvs []*kv) (err error) { c.low, err = floorOf(kvs); return err })
		}
	}
	for i := range c.w {
		id := c.w[i].ID
		if is, ok := believed(c.k.record(id)); ok {
			c.are[i] = is
			continue
		}
		read(c.k.record(id), func(kvs []*kv) error {
			r, rev, err := recordOf(id, kvs)
			c.are[i] = seenOf(&r, rev)
			return err
		})
	}
	for i := range c.w {
		c.numbers[i] = make(map[string]uint64, len(c.w[i].Marks))
		for _, m := range c.w[i].Marks {
			if n, ok := c.are[i].numbers[m.From]; ok {
				c.numbers[i][m.From] = n
				continue
			}
			read(c.k.mark(c.w[i].ID, m.From), func(kvs []*kv) error {
				if len(kvs) == 0 {
					c.numbers[i][m.From] = 0
					return nil
				}
				is, err := markOf(m.From, kvs[0].Value)
				c.numbers[i][m.From] = is.Number
				return err
			})
		}
	}
	got, err := c.s.reads(ctx, c.k, c.f, ops...)
	if err != nil {
		return err
	}
	for i, kvs := range got {
		if err := take[i](kvs); err != nil {
			return err
		}
	}
	return nil
}

// follow says whether all writes may take place, or have.
func (c *change) follow() error {
	for i := range c.w {
		w, is := &c.w[i], &c.are[i]
		ok := is.rev != 0
		switch {
		case w.Delete:
			ok = !ok || is.version == w.Version-1
		case ok && is.version == w.Version && is.nonce == w.Nonce:
		case w.Makes():
			ok = !ok && w.Version > c.low.is
		default:
			ok = ok && is.version == w.Version-1
		}
		if !ok {
			return fmt.Errorf("%w: %.64q has %d", store.ErrVersion, w.ID, is.version)
		}
	}
	return nil
}

// operations are what the commit compares beside the fence, and what it does.
func (c *change) operations() (cmps []clientv3.Cmp, ops []clientv3.Op) {
	low, gone := c.low.is, false
	for i := range c.w {
		w, is := &c.w[i], &c.are[i]
		key, next := c.k.record(w.ID), seen{}
		cmps = append(cmps, revision(key, is.rev))
		if w.Delete {
			gone, low = true, max(low, w.Raises())
			if is.rev != 0 {
				ops = append(ops, clientv3.OpDelete(key))
			}
		} else {
			next = seenOf(&w.Record, 1)
			ops = append(ops, clientv3.OpPut(key, valueOf(&w.Record)))
		}
		ops = append(ops, c.indexes(w.ID, is, &next)...)
		ops = append(ops, c.remember(i)...)
	}
	if c.floors {
		cmps = append(cmps, revision(c.k.floor(), c.low.rev))
	}
	if gone { // also where it is as high already: see change
		ops = append(ops, clientv3.OpPut(c.k.floor(), valueOfFloor(low)))
	}
	return cmps, ops
}

// indexes are what changes in the indexes of alarms and outboxes.
func (c *change) indexes(id string, is, next *seen) (ops []clientv3.Op) {
	if same := is.isDue && next.isDue && is.due == next.due; !same {
		if is.isDue {
			ops = append(ops, clientv3.OpDelete(c.k.due(is.due, id)))
		}
		if next.isDue {
			ops = append(ops, clientv3.OpPut(c.k.due(next.due, id), ""))
		}
	}
	switch {
	case is.unsent && !next.unsent:
		ops = append(ops, clientv3.OpDelete(c.k.unsent(id)))
	case !is.unsent && next.unsent:
		ops = append(ops, clientv3.OpPut(c.k.unsent(id), ""))
	}
	return ops
}

// packed splits operations into transactions within the transaction where they are too many for one list.
func packed(ops []clientv3.Op) []clientv3.Op {
	for len(ops) > across {
		var outer []clientv3.Op
		for part := range slices.Chunk(ops, within) {
			outer = append(outer, clientv3.OpTxn(nil, part, nil))
		}
		ops = outer
	}
	return ops
}

// wrote notes in the store what the commit wrote.
func (c *change) wrote(rev int64) {
	low, gone := c.low.is, false
	for i := range c.w {
		w := &c.w[i]
		if w.Delete {
			gone, low = true, max(low, w.Raises())
			c.s.known.put(c.k.record(w.ID), seen{})
			continue
		}
		for _, m := range w.Marks {
			c.numbers[i][m.From] = max(c.numbers[i][m.From], m.Number)
		}
		next := seenOf(&w.Record, rev)
		next.numbers = merged(c.are[i].numbers, c.numbers[i])
		c.s.known.put(c.k.record(w.ID), next)
	}
	switch {
	case gone:
		c.s.known.put(c.k.floor(), seen{rev: rev, version: low})
	case c.floors:
		c.s.known.put(c.k.floor(), seen{rev: c.low.rev, version: c.low.is})
	}
}

// forget drops what the store knows of the records and the floor.
func (c *change) forget() {
	c.s.known.drop(c.k.floor())
	for i := range c.w {
		c.s.known.drop(c.k.record(c.w[i].ID))
	}
}
