// What is due, and what is unsent: the indexes, in pages.

package etcd

import (
	"context"
	"iter"
	"math"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/kith-io/kith/store"
)

// page is how many keys are read at once.
const page = 256

// walk yields the keys of a range, in their order, in pages.
func (s *Store) walk(ctx context.Context, from, to string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for {
			got, err := s.kv.Get(ctx, from, clientv3.WithRange(to), clientv3.WithKeysOnly(), clientv3.WithLimit(page))
			if err != nil {
				yield("", told(err))
				return
			}
			for _, kv := range got.Kvs {
				if !yield(string(kv.Key), nil) {
					return
				}
				from = string(kv.Key) + "\x00"
			}
			if !got.More {
				return
			}
		}
	}
}

// Due implements store.Store.
func (s *Store) Due(ctx context.Context, at store.Shard, by time.Time) iter.Seq2[store.Alarm, error] {
	k := s.keys(at)
	from, to := k.dues(), clientv3.GetPrefixRangeEnd(k.dues())
	if ms := by.UnixMilli(); ms < math.MaxInt64 {
		to = k.due(ms+1, "")
	}
	return func(yield func(store.Alarm, error) bool) {
		for key, err := range s.walk(ctx, from, to) {
			if err != nil {
				yield(store.Alarm{}, err)
				return
			}
			rest := key[len(from):]
			if !yield(store.Alarm{ID: rest[8:], At: time.UnixMilli(number([]byte(rest)))}, nil) {
				return
			}
		}
	}
}

// Unsent implements store.Store.
func (s *Store) Unsent(ctx context.Context, at store.Shard) iter.Seq2[string, error] {
	from := s.keys(at).unsents()
	return func(yield func(string, error) bool) {
		for key, err := range s.walk(ctx, from, clientv3.GetPrefixRangeEnd(from)) {
			if err != nil {
				yield("", err)
				return
			}
			if !yield(key[len(from):], nil) {
				return
			}
		}
	}
}
