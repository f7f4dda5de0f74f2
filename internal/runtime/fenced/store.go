// Store: a node as a store of durable entities.

package fenced

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/kith-io/kith/internal/core/quorum/records"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/store"
)

// Store is a store.Store on the disks of the replicas that n knows. It is n's: it ends with it. A commit that was
// acknowledged is on the disks of a majority. Claim, Load, Marks and CountMarks ask a majority too.
type Store struct{ n *Node }

// Store returns n as a store.
func (n *Node) Store() Store { return Store{n} }

var _ store.Store = Store{}

// page is how many alarms or ids are read at once.
const page = 200

// meant returns an error of the machine as package store says it. Others say that the store does not answer.
func meant(err error) error {
	for _, x := range []struct{ is, says error }{{records.ErrFenced, store.ErrFenced},
		{records.ErrUnclaimed, store.ErrStoreWentBack}, {records.ErrVersion, store.ErrVersion},
		{records.ErrTooLarge, store.ErrTooLarge}} {
		if errors.Is(err, x.is) {
			return fmt.Errorf("%w: %w", x.says, err)
		}
	}
	return err
}

func shardOf(s store.Shard) records.Shard { return records.Shard{Type: s.Type, N: uint32(s.N)} }

// Claim implements store.Store.
func (s Store) Claim(ctx context.Context, sh store.Shard, f route.Fence) (store.Claimed, error) {
	if err := store.CheckShard(sh, f); err != nil {
		return store.Claimed{}, err
	}
	out, err := s.n.call(ctx, func(number uint64) records.Command {
		return records.ClaimCommand{Number: number, Shard: shardOf(sh), Fence: f}
	})
	if err != nil {
		return store.Claimed{}, meant(err)
	}
	return store.Claimed{Last: out.Last, Floor: out.Answer.Floor}, nil
}

// ask asks the state of a shard, under a fence or under none.
func (s Store) ask(ctx context.Context, sh store.Shard, f route.Fence, q records.Query) (records.Answer, error) {
	out, err := s.n.call(ctx, func(number uint64) records.Command {
		return records.ReadCommand{Number: number, Shard: shardOf(sh), Fence: f, Query: q}
	})
	return out.Answer, meant(err)
}

// Load implements store.Store.
func (s Store) Load(ctx context.Context, sh store.Shard, f route.Fence, ids ...string) (list []store.Record,
	err error) {
	if err := errors.Join(store.CheckShard(sh, f), store.CheckIDs(ids)); err != nil {
		return nil, err
	}
	for first := true; first || len(ids) > 0; first = false {
		a, err := s.ask(ctx, sh, f, records.Query{Ask: records.AskRecords, IDs: ids})
		if err != nil {
			return nil, err
		}
		for i := range a.Records {
			list = append(list, recordOf(&a.Records[i]))
		}
		ids = ids[min(a.Done, len(ids)):]
	}
	return list, nil
}

// Commit implements store.Store.
func (s Store) Commit(ctx context.Context, sh store.Shard, f route.Fence, w ...store.Write) error {
	if err := errors.Join(store.CheckShard(sh, f), store.Check(w)); err != nil {
		return err
	}
	writes := make([]records.Write, len(w))
	for i := range w {
		writes[i] = writeOf(&w[i])
	}
	_, err := s.n.call(ctx, func(number uint64) records.Command {
		return records.CommitCommand{Number: number, Shard: shardOf(sh), Fence: f, Writes: writes}
	})
	switch meaning := meant(err); {
	case err == nil:
		return nil
	case errors.Is(meaning, store.ErrFenced), errors.Is(meaning, store.ErrVersion),
		errors.Is(meaning, store.ErrStoreWentBack), errors.Is(meaning, store.ErrTooLarge):
		return meaning
	}
	return fmt.Errorf("%w: %w", store.ErrUnknown, err)
}

// Due implements store.Store.
func (s Store) Due(ctx context.Context, sh store.Shard, by time.Time) iter.Seq2[store.Alarm, error] {
	return func(yield func(store.Alarm, error) bool) {
		q := records.Query{Ask: records.AskDue, By: by.UnixMilli(), First: true, Most: page}
		for more := true; more; {
			a, err := s.ask(ctx, sh, route.Fence{}, q)
			if err != nil {
				yield(store.Alarm{}, err)
				return
			}
			for _, x := range a.Alarms {
				if !yield(store.Alarm{ID: x.ID, At: time.UnixMilli(x.At)}, nil) {
					return
				}
				q.First, q.After, q.ID = false, x.At, x.ID
			}
			more = a.More
		}
	}
}

// Unsent implements store.Store.
func (s Store) Unsent(ctx context.Context, sh store.Shard) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		q := records.Query{Ask: records.AskUnsent, Most: page}
		for more := true; more; {
			a, err := s.ask(ctx, sh, route.Fence{}, q)
			if err != nil {
				yield("", err)
				return
			}
			for _, id := range a.IDs {
				if !yield(id, nil) {
					return
				}
				q.ID = id
			}
			more = a.More
		}
	}
}

// Marks implements store.Store.
func (s Store) Marks(ctx context.Context, sh store.Shard, f route.Fence, id string, from ...string) (
	list []store.Mark, err error) {
	if err := errors.Join(store.CheckShard(sh, f), store.CheckFroms(id, from...)); err != nil {
		return nil, err
	}
	for first := true; first || len(from) > 0; first = false {
		a, err := s.ask(ctx, sh, f, records.Query{Ask: records.AskMarks, ID: id, IDs: from})
		if err != nil {
			return nil, err
		}
		for i := range a.Marks {
			m := &a.Marks[i]
			list = append(list, store.Mark{From: m.From, Number: m.Number, At: time.UnixMilli(m.At), Value: m.Value})
		}
		from = from[min(a.Done, len(from)):]
	}
	return list, nil
}

// CountMarks implements store.Store.
func (s Store) CountMarks(ctx context.Context, sh store.Shard, f route.Fence, id, prefix string) (int, error) {
	if err := errors.Join(store.CheckShard(sh, f), store.CheckFroms(id, prefix)); err != nil {
		return 0, err
	}
	a, err := s.ask(ctx, sh, f, records.Query{Ask: records.AskCount, ID: id, From: prefix})
	return a.Count, err
}

// ForgetMarks implements store.Store.
func (s Store) ForgetMarks(ctx context.Context, sh store.Shard, f route.Fence, by time.Time, most int) (int, error) {
	if err := errors.Join(store.CheckShard(sh, f), store.CheckForget(most)); err != nil {
		return 0, err
	}
	out, err := s.n.call(ctx, func(number uint64) records.Command {
		return records.ForgetCommand{Number: number, Shard: shardOf(sh), Fence: f, By: by.UnixMilli(), Most: most}
	})
	return out.Count, meant(err)
}

// writeOf returns a write as the machine has it. Bytes are copied: the store keeps nothing of its caller's.
func writeOf(w *store.Write) records.Write {
	x := records.Write{New: w.New, Delete: w.Delete}
	x.ID, x.Version, x.Nonce = w.ID, w.Version, w.Nonce
	if w.Delete {
		x.Floor = w.Floor
	} else {
		x.Schema, x.State, x.Outbox, x.Reminders = w.Schema, w.State, w.Outbox, w.Reminders
		if !w.Due.IsZero() {
			x.Alarm, x.Due = true, w.Due.UnixMilli()
		}
	}
	for i := range w.Marks {
		m := &w.Marks[i]
		x.Marks = append(x.Marks, records.Mark{From: m.From, Number: m.Number, At: m.At.UnixMilli(), Value: m.Value})
	}
	return x
}

// recordOf is the reverse for a record.
func recordOf(r *records.Record) store.Record {
	x := store.Record{ID: r.ID, Version: r.Version, Schema: r.Schema, State: r.State, Outbox: r.Outbox,
		Reminders: r.Reminders, Nonce: r.Nonce}
	if r.Alarm {
		x.Due = time.UnixMilli(r.Due)
	}
	return x
}
