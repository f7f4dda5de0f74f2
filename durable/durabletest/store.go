// Stores: one in memory behind a bad line, in virtual time.

package durabletest

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/kith-io/kith/internal/base/ground"
	"github.com/kith-io/kith/internal/sim/world"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/store"
)

// Faults say how bad the way to a store is. Chances are 0 to 1. The zero value is a good one.
type Faults struct {
	// Delay is how long a call takes to arrive at most, and as long its answer. Zero means 2 ms.
	Delay time.Duration
	// LostCalls and LostAnswers are the chances that one gets lost. In half of the cases the caller hears of it, by
	// store.ErrUnknown; in the other half it hears nothing.
	LostCalls, LostAnswers float64
	// Again is the chance that a copy of a commit arrives a second time, within CopyWithin of the first.
	Again float64
	// Away: no call arrives.
	Away bool
}

// CopyWithin is how late a copy of a commit arrives, at most.
const CopyWithin = 30 * time.Second

// Counts are what became of calls.
type Counts struct{ Calls, Lost, Unanswered, Again uint64 }

// Store is a store of a simulated cluster. What it holds survives all processes. Calls that do not come from a node's
// coroutines, as those of a test, are answered at once.
type Store struct {
	k      *Kit
	mem    *store.MemoryStore
	faults Faults
	counts Counts
	kept   *store.MemoryStore
	watch  func(store.Call, error)
}

func newStore(k *Kit) *Store { return &Store{k: k, mem: store.Memory(), kept: store.Memory()} }

// Fail sets how bad the way is from now on.
func (s *Store) Fail(f Faults) { s.faults = f }

// Counts returns what became of calls.
func (s *Store) Counts() Counts { return s.counts }

// Watch calls f with each claim and each commit when the store has carried it out or refused it, copies that come again
// included, and of what it said, which the caller may never hear. f must not keep what the call's Writes hold, nor call
// the store; nil: nothing is called.
func (s *Store) Watch(f func(store.Call, error)) { s.watch = f }

// tells calls the watcher.
func (s *Store) tells(c store.Call, said error) {
	if s.watch != nil {
		s.watch(c, said)
	}
}

// Copy returns what the store holds.
func (s *Store) Copy() *store.MemoryStore { return s.mem.Copy() }

// Keep keeps what the store holds, for GoBack.
func (s *Store) Keep() { s.kept = s.mem.Copy() }

// GoBack makes the store hold again what it did at the last Keep, nothing without one: as one that fails over to a
// replica that was behind.
func (s *Store) GoBack() { s.mem.Become(s.kept) }

func (s *Store) hits(chance float64) bool { return chance > 0 && s.k.rand.Float64() < chance }

// later has run called when a call, or an answer, has arrived.
func (s *Store) later(run func()) {
	most := s.faults.Delay
	if most <= 0 {
		most = 2 * time.Millisecond
	}
	s.k.w.After(time.Duration(s.k.rand.Int64N(int64(most))), run)
}

// call has do take effect when the call has arrived, if it does, and waits for the answer. again, if not nil, is what a
// copy does.
func (s *Store) call(ctx context.Context, do, again func()) error {
	p := s.k.w.Acting
	if guest := (world.Guest{Process: p}); p == nil || !guest.Rests() {
		do()
		return nil
	}
	n, f := s.k.node(p), s.faults
	s.counts.Calls++
	bell, failed, heard := make(chan struct{}, 1), error(nil), s.hits(0.5)
	answer := func(err error) {
		if err == nil || heard {
			s.later(func() {
				failed = err
				n.Ring(bell)
			})
		}
	}
	if f.Away || s.hits(f.LostCalls) {
		s.counts.Lost++
		answer(fmt.Errorf("%w: the call was lost", store.ErrUnknown))
	} else {
		s.later(func() {
			do()
			if !s.hits(f.LostAnswers) {
				answer(nil)
				return
			}
			s.counts.Unanswered++
			answer(fmt.Errorf("%w: the answer was lost", store.ErrUnknown))
		})
		if again != nil && s.hits(f.Again) {
			s.k.w.After(time.Duration(s.k.rand.Int64N(int64(CopyWithin))), func() {
				s.counts.Again++
				again()
			})
		}
	}
	if !n.Wait(ctx, ground.Forever, bell) {
		return fmt.Errorf("%w: %w", store.ErrUnknown, ctx.Err())
	}
	return failed
}

// result is what a call brings back: its own, as the call may take effect when nobody waits for it any more.
type result[T any] struct {
	v   T
	err error
}

// asks makes a call that brings back a T.
func asks[T any](ctx context.Context, s *Store, do func(context.Context, *store.MemoryStore) (T, error)) (T, error) {
	r := &result[T]{}
	if err := s.call(ctx, func() { r.v, r.err = do(context.Background(), s.mem) }, nil); err != nil {
		var none T
		return none, err
	}
	return r.v, r.err
}

// Claim implements store.Store.
func (s *Store) Claim(ctx context.Context, at store.Shard, f route.Fence) (store.Claimed, error) {
	return asks(ctx, s, func(ctx context.Context, m *store.MemoryStore) (store.Claimed, error) {
		c, err := m.Claim(ctx, at, f)
		s.tells(store.Call{Do: "claim", Shard: at, Fence: f}, err)
		return c, err
	})
}

// Load implements store.Store.
func (s *Store) Load(ctx context.Context, at store.Shard, f route.Fence, ids ...string) ([]store.Record, error) {
	return asks(ctx, s, func(ctx context.Context, m *store.MemoryStore) ([]store.Record, error) {
		return m.Load(ctx, at, f, ids...)
	})
}

// Commit implements store.Store.
func (s *Store) Commit(ctx context.Context, at store.Shard, f route.Fence, w ...store.Write) error {
	w = slices.Clone(w) // it may arrive when the caller has given up
	for i := range w {
		r := &w[i]
		r.State, r.Outbox, r.Reminders = bytes.Clone(r.State), bytes.Clone(r.Outbox), bytes.Clone(r.Reminders)
		r.Marks = slices.Clone(r.Marks)
	}
	r := &result[struct{}]{}
	commit := func() error {
		err := s.mem.Commit(context.Background(), at, f, w...)
		s.tells(store.Call{Do: "commit", Shard: at, Fence: f, Writes: w}, err)
		return err
	}
	unheard := func() { _ = commit() } // what a copy says is heard by nobody
	if err := s.call(ctx, func() { r.err = commit() }, unheard); err != nil {
		return err
	}
	return r.err
}

// Due implements store.Store.
func (s *Store) Due(ctx context.Context, at store.Shard, by time.Time) iter.Seq2[store.Alarm, error] {
	return list(ctx, s, func(m *store.MemoryStore) iter.Seq2[store.Alarm, error] {
		return m.Due(context.Background(), at, by)
	})
}

// Unsent implements store.Store.
func (s *Store) Unsent(ctx context.Context, at store.Shard) iter.Seq2[string, error] {
	return list(ctx, s, func(m *store.MemoryStore) iter.Seq2[string, error] {
		return m.Unsent(context.Background(), at)
	})
}

// list reads a whole list by one call.
func list[T any](ctx context.Context, s *Store, of func(*store.MemoryStore) iter.Seq2[T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		all, err := asks(ctx, s, func(_ context.Context, m *store.MemoryStore) (all []T, err error) {
			for v, e := range of(m) {
				if e != nil {
					return all, e
				}
				all = append(all, v)
			}
			return all, nil
		})
		for _, v := range all {
			if !yield(v, nil) {
				return
			}
		}
		if err != nil {
			var none T
			yield(none, err)
		}
	}
}

// Marks implements store.Store.
func (s *Store) Marks(ctx context.Context, at store.Shard, f route.Fence, id string,
	from ...string) ([]store.Mark, error) {
	return asks(ctx, s, func(ctx context.Context, m *store.MemoryStore) ([]store.Mark, error) {
		return m.Marks(ctx, at, f, id, from...)
	})
}

// CountMarks implements store.Store.
func (s *Store) CountMarks(ctx context.Context, at store.Shard, f route.Fence, id, prefix string) (int, error) {
	return asks(ctx, s, func(ctx context.Context, m *store.MemoryStore) (int, error) {
		return m.CountMarks(ctx, at, f, id, prefix)
	})
}

// ForgetMarks implements store.Store.
func (s *Store) ForgetMarks(ctx context.Context, at store.Shard, f route.Fence, by time.Time, most int) (int, error) {
	return asks(ctx, s, func(ctx context.Context, m *store.MemoryStore) (int, error) {
		return m.ForgetMarks(ctx, at, f, by, most)
	})
}
