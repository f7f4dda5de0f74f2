// A store in memory, for tests: it answers as a real one does, late, twice or not at all.

package store

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/kith-io/kith/route"
)

// Call is one call of a MemoryStore that is about to begin.
type Call struct {
	Do     string // "claim", "load", "commit", "due", "unsent", "marks", "count" or "forget"
	Shard  Shard
	Fence  route.Fence
	Writes []Write // of a commit
}

// Fate is what becomes of a call. The zero value is that it goes well. What ends with an error ends with ErrUnknown.
type Fate struct {
	// Before and After are waited for, if they are not nil, before the call takes effect and before its answer comes,
	// until they are closed or the context of the call ends.
	Before, After <-chan struct{}
	// Lost calls have no effect and end with an error.
	Lost bool
	// Blind calls have their effect and end with an error.
	Blind bool
}

// MemoryStore is a Store in memory. Its methods are safe for concurrent use.
type MemoryStore struct {
	mu     sync.Mutex
	shards map[Shard]*memoryShard
	fate   func(Call) Fate
}

// memoryShard is one shard of it.
type memoryShard struct {
	fence, before route.Fence
	floor         uint64
	records       map[string]Record
	marks         map[markKey]Mark
}

// Memory returns an empty store in memory. It survives nothing.
func Memory() *MemoryStore { return &MemoryStore{shards: map[Shard]*memoryShard{}} }

// Fail has f decide what becomes of each call from now on; nil: all go well. f may be called by several goroutines at
// once.
func (m *MemoryStore) Fail(f func(Call) Fate) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fate = f
}

// Copy returns a store that holds what m does now, as a replica that hears of nothing later.
func (m *MemoryStore) Copy() *MemoryStore {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := Memory()
	for s, at := range m.shards { // a map in, a map out: no order
		n.shards[s] = &memoryShard{at.fence, at.before, at.floor, maps.Clone(at.records), maps.Clone(at.marks)}
	}
	return n
}

// Become has m hold what other does, as a store that fails over to a replica.
func (m *MemoryStore) Become(other *MemoryStore) {
	of := other.Copy()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.shards = of.shards
}

// call runs do under the lock, as the call's fate has it.
func (m *MemoryStore) call(ctx context.Context, c Call, do func(*memoryShard) error) error {
	m.mu.Lock()
	decide := m.fate
	m.mu.Unlock()
	fate := Fate{}
	if decide != nil {
		fate = decide(c)
	}
	if err := waits(ctx, fate.Before); err != nil {
		return err
	}
	if fate.Lost {
		return fmt.Errorf("%w: it was lost on the way", ErrUnknown)
	}
	m.mu.Lock()
	at := m.shards[c.Shard]
	if at == nil {
		at = &memoryShard{records: map[string]Record{}, marks: map[markKey]Mark{}}
		m.shards[c.Shard] = at
	}
	failed := do(at)
	m.mu.Unlock()
	if err := waits(ctx, fate.After); err != nil {
		return err
	}
	if fate.Blind {
		return fmt.Errorf("%w: the answer was lost on the way", ErrUnknown)
	}
	return failed
}

// waits waits for ch, if it is not nil, or the end of ctx.
func waits(ctx context.Context, ch <-chan struct{}) error {
	if ch != nil {
		select {
		case <-ctx.Done():
		case <-ch:
		}
	}
	if ctx.Err() != nil {
		return fmt.Errorf("%w: %w", ErrUnknown, context.Cause(ctx))
	}
	return nil
}

// held says whether a shard is that of an owner.
func (at *memoryShard) held(f route.Fence) error {
	switch at.fence.Compare(f) {
	case 1:
		return ErrFenced
	case -1:
		return ErrStoreWentBack
	}
	return nil
}

// Claim implements Store.
func (m *MemoryStore) Claim(ctx context.Context, s Shard, f route.Fence) (c Claimed, err error) {
	if err := CheckShard(s, f); err != nil {
		return Claimed{}, err
	}
	err = m.call(ctx, Call{Do: "claim", Shard: s, Fence: f}, func(at *memoryShard) error {
		switch at.fence.Compare(f) {
		case 1:
			return ErrFenced
		case -1:
			at.before, at.fence = at.fence, f
		}
		c = Claimed{at.before, at.floor}
		return nil
	})
	if err != nil {
		return Claimed{}, err
	}
	return c, nil
}

// Load implements Store.
func (m *MemoryStore) Load(ctx context.Context, s Shard, f route.Fence, ids ...string) (list []Record, err error) {
	if err := errors.Join(CheckShard(s, f), CheckIDs(ids)); err != nil {
		return nil, err
	}
	err = m.call(ctx, Call{Do: "load", Shard: s, Fence: f}, func(at *memoryShard) error {
		if err := at.held(f); err != nil {
			return err
		}
		for _, id := range ids {
			if r, ok := at.records[id]; ok {
				list = append(list, copyOf(r))
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}

// copyOf returns a record that shares nothing with r.
func copyOf(r Record) Record {
	r.State, r.Outbox, r.Reminders = bytes.Clone(r.State), bytes.Clone(r.Outbox), bytes.Clone(r.Reminders)
	if !r.Due.IsZero() {
		r.Due = time.UnixMilli(r.Due.UnixMilli())
	}
	return r
}

// Commit implements Store.
func (m *MemoryStore) Commit(ctx context.Context, s Shard, f route.Fence, w ...Write) error {
	if err := errors.Join(CheckShard(s, f), Check(w)); err != nil {
		return err
	}
	return m.call(ctx, Call{Do: "commit", Shard: s, Fence: f, Writes: w}, func(at *memoryShard) error {
		if err := at.held(f); err != nil {
			return err
		}
		for i := range w {
			if !at.follows(&w[i]) {
				return fmt.Errorf("%w: %.64q has %d", ErrVersion, w[i].ID, at.records[w[i].ID].Version)
			}
		}
		for i := range w {
			at.remember(&w[i])
			if w[i].Delete {
				delete(at.records, w[i].ID)
				at.floor = max(at.floor, w[i].Raises())
			} else {
				at.records[w[i].ID] = copyOf(w[i].Record)
			}
		}
		return nil
	})
}

// follows reports whether a write may take place, or has.
func (at *memoryShard) follows(w *Write) bool {
	is, ok := at.records[w.ID]
	switch {
	case w.Delete:
		return !ok || is.Version == w.Version-1
	case ok && is.Version == w.Version && is.Nonce == w.Nonce:
		return true
	case w.Makes():
		return !ok && w.Version > at.floor
	}
	return ok && is.Version == w.Version-1
}

// Due implements Store. It reads all at once.
func (m *MemoryStore) Due(ctx context.Context, s Shard, by time.Time) iter.Seq2[Alarm, error] {
	return func(yield func(Alarm, error) bool) {
		var list []Alarm
		err := m.call(ctx, Call{Do: "due", Shard: s}, func(at *memoryShard) error {
			for id, r := range at.records { // sorted below
				if !r.Due.IsZero() && !r.Due.After(by) {
					list = append(list, Alarm{id, r.Due})
				}
			}
			return nil
		})
		slices.SortFunc(list, func(a, b Alarm) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.ID, b.ID)) })
		yields(list, err, yield)
	}
}

// Unsent implements Store. It reads all at once.
func (m *MemoryStore) Unsent(ctx context.Context, s Shard) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		var ids []string
		err := m.call(ctx, Call{Do: "unsent", Shard: s}, func(at *memoryShard) error {
			for id, r := range at.records { // sorted below
				if len(r.Outbox) > 0 {
					ids = append(ids, id)
				}
			}
			return nil
		})
		slices.Sort(ids)
		yields(ids, err, yield)
	}
}

// yields yields what was read, and then the error.
func yields[T any](list []T, err error, yield func(T, error) bool) {
	for _, v := range list {
		if !yield(v, nil) {
			return
		}
	}
	if err != nil {
		var none T
		yield(none, err)
	}
}
