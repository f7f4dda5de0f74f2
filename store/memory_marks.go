// Marks in memory.

package store

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/kith-io/kith/route"
)

// markKey names one mark of a shard.
type markKey struct{ id, from string }

// remember writes the marks of a write, but for those that are there with as high a number.
func (at *memoryShard) remember(w *Write) {
	for _, m := range w.Marks {
		key := markKey{w.ID, m.From}
		if is, ok := at.marks[key]; !ok || is.Number < m.Number {
			at.marks[key] = copyOfMark(m)
		}
	}
}

// copyOfMark returns a mark that shares nothing with m.
func copyOfMark(m Mark) Mark {
	m.Value, m.At = bytes.Clone(m.Value), time.UnixMilli(m.At.UnixMilli())
	return m
}

// Marks implements Store.
func (m *MemoryStore) Marks(ctx context.Context, s Shard, f route.Fence, id string, from ...string) (list []Mark,
	err error) {
	if err := errors.Join(CheckShard(s, f), CheckFroms(id, from...)); err != nil {
		return nil, err
	}
	err = m.call(ctx, Call{Do: "marks", Shard: s, Fence: f}, func(at *memoryShard) error {
		for _, who := range from {
			if is, ok := at.marks[markKey{id, who}]; ok {
				list = append(list, copyOfMark(is))
			}
		}
		return at.held(f)
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}

// CountMarks implements Store.
func (m *MemoryStore) CountMarks(ctx context.Context, s Shard, f route.Fence, id, prefix string) (n int, err error) {
	if err := errors.Join(CheckShard(s, f), CheckFroms(id, prefix)); err != nil {
		return 0, err
	}
	err = m.call(ctx, Call{Do: "count", Shard: s, Fence: f}, func(at *memoryShard) error {
		for key := range at.marks { // they are counted
			if key.id == id && strings.HasPrefix(key.from, prefix) {
				n++
			}
		}
		return at.held(f)
	})
	if err != nil {
		return 0, err
	}
	return n, nil
}

// ForgetMarks implements Store.
func (m *MemoryStore) ForgetMarks(ctx context.Context, s Shard, f route.Fence, by time.Time, most int) (n int,
	err error) {
	if err := errors.Join(CheckShard(s, f), CheckForget(most)); err != nil {
		return 0, err
	}
	err = m.call(ctx, Call{Do: "forget", Shard: s, Fence: f}, func(at *memoryShard) error {
		if err := at.held(f); err != nil {
			return err
		}
		var old []markKey
		for key, is := range at.marks { // sorted below
			if is.At.UnixMilli() < by.UnixMilli() {
				old = append(old, key)
			}
		}
		slices.SortFunc(old, func(a, b markKey) int {
			return cmp.Or(at.marks[a].At.Compare(at.marks[b].At), cmp.Compare(a.id, b.id), cmp.Compare(a.from, b.from))
		})
		n = min(len(old), most)
		for _, key := range old[:n] {
			delete(at.marks, key)
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	return n, nil
}
