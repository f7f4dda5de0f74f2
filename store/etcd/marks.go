// Marks: what entities remember of messages that they have had, a key each, and the index of which entities have old
// ones.

package etcd

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/store"
)

// span numbers stretches of 2^22 ms, about 70 minutes. The index of ages has, for each entity with marks, a key of the
// span of its oldest mark, or of an earlier one: so a sender that is heard of all day costs few keys.
func span(ms int64) int64 { return ms >> 22 }

// remember are what a write does with its marks.
func (c *change) remember(i int) (ops []clientv3.Op) {
	w, oldest := &c.w[i], int64(math.MaxInt64)
	for j := range w.Marks {
		if m := &w.Marks[j]; c.numbers[i][m.From] < m.Number {
			ops = append(ops, clientv3.OpPut(c.k.mark(w.ID, m.From), valueOfMark(m)))
			oldest = min(oldest, m.At.UnixMilli())
		}
	}
	if len(ops) > 0 {
		ops = append(ops, clientv3.OpPut(c.k.age(span(oldest), hash(w.ID)), ""))
	}
	return ops
}

// Marks implements store.Store.
func (s *Store) Marks(ctx context.Context, at store.Shard, f route.Fence, id string, from ...string) (list []store.Mark,
	err error) {
	if err := errors.Join(store.CheckShard(at, f), store.CheckFroms(id, from...)); err != nil {
		return nil, err
	}
	k := s.keys(at)
	ops := []clientv3.Op{clientv3.OpGet(k.record(id), clientv3.WithKeysOnly())}
	for _, who := range from {
		ops = append(ops, clientv3.OpGet(k.mark(id, who)))
	}
	got, err := s.reads(ctx, k, f, ops...)
	if err != nil {
		return nil, err
	}
	numbers := make(map[string]uint64, len(from))
	for i, who := range from {
		numbers[who] = 0
		if kvs := got[i+1]; len(kvs) > 0 {
			m, err := markOf(who, kvs[0].Value)
			if err != nil {
				return nil, err
			}
			numbers[who], list = m.Number, append(list, m)
		}
	}
	if len(got[0]) > 0 {
		s.known.add(k.record(id), got[0][0].ModRevision, numbers)
	}
	return list, nil
}

// CountMarks implements store.Store.
func (s *Store) CountMarks(ctx context.Context, at store.Shard, f route.Fence, id, prefix string) (n int, err error) {
	if err := errors.Join(store.CheckShard(at, f), store.CheckFroms(id, prefix)); err != nil {
		return 0, err
	}
	k := s.keys(at)
	first := k.mark(id, prefix)
	did, err := s.under(ctx, k, f, nil, clientv3.OpGet(first, end(first), clientv3.WithCountOnly()))
	if err != nil {
		return 0, err
	}
	if did == nil {
		return 0, errForm
	}
	return int(did.Responses[0].GetResponseRange().Count), nil
}

// marksAtOnce is how many marks are read at once, or forgotten.
const marksAtOnce = 64

// aged is a mark that is old.
type aged struct {
	key string
	rev int64
	at  int64
	of  *entity
}

// entity is one with old marks, or with a key in the index that says so.
type entity struct {
	hash   string // of its id
	ages   []*kv  // its keys in the index
	left   int    // old marks that are not taken away
	rest   bool   // others are left
	oldest int64  // of these
}

// ForgetMarks implements store.Store.
func (s *Store) ForgetMarks(ctx context.Context, at store.Shard, f route.Fence, by time.Time, most int) (n int,
	err error) {
	if err := errors.Join(store.CheckShard(at, f), store.CheckForget(most)); err != nil {
		return 0, err
	}
	k := s.keys(at)
	old, all, err := s.old(ctx, k, f, by.UnixMilli(), most)
	if err != nil {
		return 0, err
	}
	for part := range slices.Chunk(old, marksAtOnce) {
		took, err := s.take(ctx, k, f, part)
		if err != nil {
			return 0, err
		}
		n += took
	}
	for _, e := range all {
		s.known.drop(k.hashed(e.hash))
		if e.left > 0 {
			continue
		}
		if err := s.settle(ctx, k, f, e); err != nil {
			return 0, err
		}
	}
	return n, nil
}

// old finds the oldest marks that are older than by, at most most, and the entities of the keys that it has come by.
func (s *Store) old(ctx context.Context, k keys, f route.Fence, by int64, most int) (old []aged, all []*entity,
	err error) {
	from, to := k.ages(), k.age(span(by)+1, "")
	byHash := map[string]*entity{}
	for {
		got, err := s.reads(ctx, k, f, clientv3.OpGet(from, clientv3.WithRange(to), clientv3.WithLimit(page)))
		if err != nil {
			return nil, nil, err
		}
		for _, age := range got[0] {
			name := string(age.Key[len(k.ages()):])
			if full(old, most, number([]byte(name))) {
				return pruned(old, most), all, nil
			}
			e := byHash[name[8:]]
			if e == nil {
				e = &entity{hash: name[8:], oldest: math.MaxInt64}
				byHash[name[8:]], all = e, append(all, e)
				if old, err = s.oldOf(ctx, k, f, e, by, old); err != nil {
					return nil, nil, err
				}
				if len(old) > 2*most+page {
					old = pruned(old, most)
				}
			}
			e.ages = append(e.ages, age)
			from = string(age.Key) + "\x00"
		}
		if len(got[0]) < page {
			return pruned(old, most), all, nil
		}
	}
}

// full reports whether so many old marks are of earlier spans that no mark of this one is among the oldest.
func full(old []aged, most int, at int64) bool {
	if len(old) < most {
		return false
	}
	n := 0
	for i := range old {
		if span(old[i].at) < at {
			n++
		}
	}
	return n >= most
}

// pruned keeps the oldest.
func pruned(old []aged, most int) []aged {
	slices.SortFunc(old, func(a, b aged) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.key, b.key)) })
	if len(old) > most {
		for i := range old[most:] {
			old[most+i].of.left++
		}
		old = old[:most]
	}
	return old
}

// oldOf adds the marks of an entity that are older than by.
func (s *Store) oldOf(ctx context.Context, k keys, f route.Fence, e *entity, by int64, old []aged) ([]aged, error) {
	from, to := k.marks(e.hash), clientv3.GetPrefixRangeEnd(k.marks(e.hash))
	for {
		got, err := s.reads(ctx, k, f, clientv3.OpGet(from, clientv3.WithRange(to), clientv3.WithLimit(marksAtOnce)))
		if err != nil {
			return nil, err
		}
		for _, is := range got[0] {
			m, err := markOf("", is.Value)
			if err != nil {
				return nil, err
			}
			if ms := m.At.UnixMilli(); ms < by {
				old = append(old, aged{string(is.Key), is.ModRevision, ms, e})
			} else {
				e.rest, e.oldest = true, min(e.oldest, ms)
			}
			from = string(is.Key) + "\x00"
		}
		if len(got[0]) < marksAtOnce {
			return old, nil
		}
	}
}

// take takes marks away that have not changed meanwhile, and returns how many.
func (s *Store) take(ctx context.Context, k keys, f route.Fence, old []aged) (n int, err error) {
	ops := make([]clientv3.Op, len(old))
	for i, m := range old {
		ops[i] = clientv3.OpTxn([]clientv3.Cmp{revision(m.key, m.rev)}, []clientv3.Op{clientv3.OpDelete(m.key)}, nil)
	}
	did, err := s.under(ctx, k, f, nil, ops...)
	if err != nil {
		return 0, err
	}
	if did == nil {
		return 0, errForm
	}
	for i, r := range did.Responses {
		if r.GetResponseTxn().Succeeded {
			n++
		} else { // it was written anew: what its key in the index says is not known
			old[i].of.left++
		}
	}
	return n, nil
}

// settle replaces the keys of an entity in the index by one of its oldest mark, if it has any, unless they have
// changed.
func (s *Store) settle(ctx context.Context, k keys, f route.Fence, e *entity) error {
	now := ""
	if e.rest {
		now = k.age(span(e.oldest), e.hash)
	}
	for _, age := range e.ages {
		if string(age.Key) == now {
			continue
		}
		ops := []clientv3.Op{clientv3.OpDelete(string(age.Key))}
		if now != "" {
			ops = append(ops, clientv3.OpPut(now, ""))
		}
		if _, err := s.under(ctx, k, f, []clientv3.Cmp{revision(string(age.Key), age.ModRevision)}, ops...); err != nil {
			return err
		}
	}
	return nil
}
