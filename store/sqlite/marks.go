// Marks: what entities remember of messages that they have had, in a table of its own.

package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/store"
)

// The statements of marks.
const (
	putMark = `insert into kith_mark (key, id, who, number, at, value) values (?, ?, ?, ?, ?, ?) on conflict (key, id, who)
		do update set number = excluded.number, at = excluded.at, value = excluded.value where number < excluded.number`
	getMark    = `select number, at, value from kith_mark where key = ? and id = ? and who = ?`
	countMarks = `select count(*) from kith_mark where key = ? and id = ? and substr(who, 1, ?) = ?`
	forgetOld  = `delete from kith_mark where key = ?1 and (id, who) in
		(select id, who from kith_mark where key = ?1 and at < ?2 order by at limit ?3)`
)

// remember writes the marks of a write.
func remember(ctx context.Context, tx *sql.Tx, key int64, w *store.Write) error {
	for _, m := range w.Marks {
		if _, err := tx.ExecContext(ctx, putMark, key, []byte(w.ID), []byte(m.From), int64(m.Number), m.At.UnixMilli(),
			m.Value); err != nil {
			return err
		}
	}
	return nil
}

// Marks implements store.Store.
func (s *Store) Marks(ctx context.Context, at store.Shard, f route.Fence, id string, from ...string) (list []store.Mark,
	err error) {
	if err := errors.Join(store.CheckShard(at, f), store.CheckFroms(id, from...)); err != nil {
		return nil, err
	}
	err = s.within(ctx, s.read, func(tx *sql.Tx) error {
		is, err := held(ctx, tx, at, f)
		for i := 0; i < len(from) && err == nil; i++ {
			m := store.Mark{From: from[i]}
			err = tx.QueryRowContext(ctx, getMark, is.key, []byte(id), []byte(from[i])).Scan(&m.Number, (*millis)(&m.At),
				&m.Value)
			switch {
			case err == nil:
				list = append(list, m)
			case errors.Is(err, sql.ErrNoRows):
				err = nil
			}
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}

// CountMarks implements store.Store.
func (s *Store) CountMarks(ctx context.Context, at store.Shard, f route.Fence, id, prefix string) (n int, err error) {
	if err := errors.Join(store.CheckShard(at, f), store.CheckFroms(id, prefix)); err != nil {
		return 0, err
	}
	err = s.within(ctx, s.read, func(tx *sql.Tx) error {
		is, err := held(ctx, tx, at, f)
		if err != nil {
			return err
		}
		return tx.QueryRowContext(ctx, countMarks, is.key, []byte(id), len(prefix), []byte(prefix)).Scan(&n)
	})
	if err != nil {
		return 0, err
	}
	return n, nil
}

// ForgetMarks implements store.Store.
func (s *Store) ForgetMarks(ctx context.Context, at store.Shard, f route.Fence, by time.Time, most int) (n int,
	err error) {
	if err := errors.Join(store.CheckShard(at, f), store.CheckForget(most)); err != nil {
		return 0, err
	}
	err = s.within(ctx, s.write, func(tx *sql.Tx) error {
		is, err := held(ctx, tx, at, f)
		if err != nil {
			return err
		}
		gone, err := changed(tx.ExecContext(ctx, forgetOld, is.key, by.UnixMilli(), most))
		n = int(gone)
		return err
	})
	if err != nil {
		return 0, err
	}
	return n, nil
}
