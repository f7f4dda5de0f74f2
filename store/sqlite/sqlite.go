// The engine: two tables in one file, one writer at a time.

// Package sqlite keeps the records of durable entities in one SQLite file, with a driver in pure Go. Processes of one
// machine share the file. A commit that has returned survives a crash of the process, and, since the file is written
// ahead with synchronous=FULL, a crash of the machine and a loss of power, as far as the disk keeps what it has
// confirmed. It does not survive the loss of the disk. Not for network file systems: their locks do not hold.
package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"net/url"
	"time"

	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/store"

	driver "modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"
)

// schema are the tables. wake says that a record has an outbox; due is in milliseconds. Both are null otherwise, and so
// stand in no index. Columns that came later are not here but in later.
const schema = `
create table if not exists kith_shard (
	key integer primary key, type text not null, shard integer not null, fence blob not null, before blob not null,
	unique (type, shard));
create table if not exists kith_entity (
	key integer not null, id blob not null, version integer not null, schema integer not null, state blob, outbox blob,
	due integer, wake integer, nonce blob not null, primary key (key, id));
drop index if exists kith_wake;
create index if not exists kith_unsent on kith_entity (key, wake, id) where wake is not null;
create index if not exists kith_due on kith_entity (key, due, id) where due is not null;
create table if not exists kith_mark (
	key integer not null, id blob not null, who blob not null, number integer not null, at integer not null, value blob,
	primary key (key, id, who)) without rowid;
create index if not exists kith_mark_at on kith_mark (key, at);`

// later are the columns that the tables of earlier builds do not have.
var later = []struct{ table, column, is string }{
	{"kith_shard", "floor", "integer not null default 0"}, {"kith_entity", "reminders", "blob"},
}

// busy is how long a call waits for another process that writes.
const busy = 10 * time.Second

// turn is how long one wait for the file is: SQLite does not hear of the end of a context while it waits.
const turn = 100 * time.Millisecond

// readers is how many connections of one Store read at once, at most. Each takes file descriptors and, while the disk
// is slow, a thread: a node that begins thousands of entities at once must not run out of either.
const readers = 16

// Store is a store.Store in a file. Close it.
type Store struct {
	write, read *sql.DB
}

// Open opens the store in a file, and makes it if it is not there.
func Open(file string) (*Store, error) {
	s := &Store{}
	for _, part := range []struct {
		db   **sql.DB
		txs  string
		wait time.Duration
	}{{&s.write, "immediate", turn}, {&s.read, "deferred", busy}} {
		q := url.Values{"_txlock": {part.txs}, "_pragma": {fmt.Sprintf("busy_timeout(%d)", part.wait.Milliseconds()),
			"journal_mode(wal)", "synchronous(full)"}}
		db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Opaque: url.PathEscape(file), RawQuery: q.Encode()}).String())
		if err != nil {
			return nil, errors.Join(err, s.Close())
		}
		*part.db = db
	}
	s.write.SetMaxOpenConns(1) // of this process one writes at a time: the others wait here, not in the file
	s.read.SetMaxOpenConns(readers)
	s.read.SetMaxIdleConns(readers)
	if err := s.begin(); err != nil {
		return nil, errors.Join(fmt.Errorf("store/sqlite: %s: %w", file, err), s.Close())
	}
	return s, nil
}

// begin makes the tables.
func (s *Store) begin() error {
	return patiently(context.Background(), func() error {
		var mode string
		if err := s.write.QueryRow("pragma journal_mode").Scan(&mode); err != nil {
			return err
		}
		if mode != "wal" {
			return fmt.Errorf("the journal is %q, must be wal", mode)
		}
		return s.within(context.Background(), s.write, makeTables)
	})
}

// makeTables makes the tables, and the columns that those of earlier builds do not have.
func makeTables(tx *sql.Tx) error {
	if _, err := tx.Exec(schema); err != nil {
		return err
	}
	for _, c := range later {
		var n int
		err := tx.QueryRow("select count(*) from pragma_table_info(?) where name = ?", c.table, c.column).Scan(&n)
		if err == nil && n == 0 {
			_, err = tx.Exec("alter table " + c.table + " add column " + c.column + " " + c.is)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Close closes the file. Calls under way end first.
func (s *Store) Close() (err error) {
	for _, db := range []*sql.DB{s.write, s.read} {
		if db != nil {
			err = errors.Join(err, db.Close())
		}
	}
	return err
}

// told returns an error as Store returns it: what is definite stays, all else is unknown.
func told(err error) error {
	var failed *driver.Error
	switch {
	case err == nil, errors.Is(err, store.ErrFenced), errors.Is(err, store.ErrVersion),
		errors.Is(err, store.ErrStoreWentBack):
		return err
	case errors.As(err, &failed) && failed.Code() == lib.SQLITE_TOOBIG:
		return fmt.Errorf("%w: %w", store.ErrTooLarge, err)
	}
	return fmt.Errorf("%w: %w", store.ErrUnknown, err)
}

// Claim implements store.Store.
func (s *Store) Claim(ctx context.Context, at store.Shard, f route.Fence) (c store.Claimed, err error) {
	if err := store.CheckShard(at, f); err != nil {
		return c, err
	}
	err = s.within(ctx, s.write, func(tx *sql.Tx) error {
		row, err := shardOf(ctx, tx, at)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			_, err = tx.ExecContext(ctx, "insert into kith_shard (type, shard, fence, before) values (?, ?, ?, ?)",
				at.Type, at.N, f[:], c.Last[:])
			return err
		case err != nil:
			return err
		}
		c = store.Claimed{Last: row.before, Floor: row.floor}
		switch row.fence.Compare(f) {
		case 1:
			return store.ErrFenced
		case 0:
			return nil
		}
		c.Last = row.fence
		_, err = tx.ExecContext(ctx, "update kith_shard set fence = ?, before = ? where key = ?", f[:], row.fence[:], row.key)
		return err
	})
	if err != nil {
		return store.Claimed{}, err
	}
	return c, nil
}

// patiently calls do until no other process that writes is in its way, ctx ends, or busy is over.
func patiently(ctx context.Context, do func() error) error {
	for end := time.Now().Add(busy); ; {
		err := do()
		var failed *driver.Error
		if !errors.As(err, &failed) || failed.Code()&0xff != lib.SQLITE_BUSY || ctx.Err() != nil || time.Now().After(end) {
			return err
		}
	}
}

// within runs do in a transaction, and ends that.
func (s *Store) within(ctx context.Context, db *sql.DB, do func(*sql.Tx) error) error {
	var tx *sql.Tx
	err := patiently(ctx, func() (err error) {
		tx, err = db.BeginTx(ctx, nil)
		return err
	})
	if err != nil {
		return told(err)
	}
	if err := do(tx); err != nil {
		_ = tx.Rollback() // the error of do says more
		return told(err)
	}
	return told(tx.Commit())
}

// row is that of a shard.
type row struct {
	key           int64
	fence, before route.Fence
	floor         uint64
}

// shardOf reads the row of a shard.
func shardOf(ctx context.Context, tx *sql.Tx, at store.Shard) (r row, err error) {
	var f, b []byte
	err = tx.QueryRowContext(ctx, "select key, fence, before, floor from kith_shard where type = ? and shard = ?", at.Type,
		at.N).Scan(&r.key, &f, &b, &r.floor)
	copy(r.fence[:], f)
	copy(r.before[:], b)
	return r, err
}

// held returns the row of a shard that is claimed under a fence.
func held(ctx context.Context, tx *sql.Tx, at store.Shard, f route.Fence) (row, error) {
	r, err := shardOf(ctx, tx, at)
	switch {
	case errors.Is(err, sql.ErrNoRows), err == nil && r.fence.Compare(f) < 0:
		return row{}, store.ErrStoreWentBack
	case err == nil && r.fence != f:
		return row{}, store.ErrFenced
	}
	return r, err
}

// Load implements store.Store.
func (s *Store) Load(ctx context.Context, at store.Shard, f route.Fence, ids ...string) (list []store.Record,
	err error) {
	if err := errors.Join(store.CheckShard(at, f), store.CheckIDs(ids)); err != nil {
		return nil, err
	}
	err = s.within(ctx, s.read, func(tx *sql.Tx) error {
		is, err := held(ctx, tx, at, f)
		for i := 0; i < len(ids) && err == nil; i++ {
			r := store.Record{ID: ids[i]}
			err = tx.QueryRowContext(ctx, "select version, schema, state, outbox, reminders, due, nonce from kith_entity "+
				"where key = ? and id = ?", is.key, []byte(ids[i])).Scan(&r.Version, &r.Schema, &r.State, &r.Outbox,
				&r.Reminders, (*millis)(&r.Due), (*nonce)(&r.Nonce))
			switch {
			case err == nil:
				list = append(list, r)
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

// millis is a column with a time, or null.
type millis time.Time

// Scan implements sql.Scanner.
func (m *millis) Scan(v any) error {
	if n, ok := v.(int64); ok {
		*m = millis(time.UnixMilli(n))
	}
	return nil
}

// nonce is a column with a nonce.
type nonce [16]byte

// Scan implements sql.Scanner.
func (n *nonce) Scan(v any) error {
	b, ok := v.([]byte)
	if !ok || len(b) != len(n) {
		return fmt.Errorf("a nonce of type %T, must be of %d bytes", v, len(n))
	}
	copy(n[:], b)
	return nil
}

// Commit implements store.Store.
func (s *Store) Commit(ctx context.Context, at store.Shard, f route.Fence, w ...store.Write) error {
	if err := errors.Join(store.CheckShard(at, f), store.Check(w)); err != nil {
		return err
	}
	return s.within(ctx, s.write, func(tx *sql.Tx) error { return commit(ctx, tx, at, f, w) })
}

// The statements of a commit.
const (
	insertNew = `insert into kith_entity (version, schema, state, outbox, due, wake, nonce, key, id, reminders)
		values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) on conflict (key, id)
		do update set nonce = excluded.nonce where version = excluded.version and nonce = excluded.nonce`
	updateOld = `update kith_entity set version = ?1, schema = ?2, state = ?3, outbox = ?4, due = ?5, wake = ?6, nonce = ?7,
		reminders = ?10
		where key = ?8 and id = ?9 and (version = ?1 - 1 or version = ?1 and nonce = ?7)`
	deleteOld = `delete from kith_entity where key = ? and id = ? and version = ?`
	anyOf     = `select count(*) from kith_entity where key = ? and id = ?`
	sameOf    = anyOf + ` and version = ? and nonce = ?`
	raise     = `update kith_shard set floor = ?2 where key = ?1 and floor < ?2`
)

// commit writes all or fails.
func commit(ctx context.Context, tx *sql.Tx, at store.Shard, f route.Fence, w []store.Write) error {
	is, err := held(ctx, tx, at, f)
	if err != nil {
		return err
	}
	floor := is.floor
	for i := range w {
		n, err := writeOne(ctx, tx, is, &w[i])
		if err != nil {
			return err
		}
		if n != 1 {
			return fmt.Errorf("%w: %.64q, of which %d was to be written", store.ErrVersion, w[i].ID, w[i].Version)
		}
		if w[i].Delete {
			floor = max(floor, w[i].Raises())
		}
		if err := remember(ctx, tx, is.key, &w[i]); err != nil {
			return err
		}
	}
	if floor > is.floor {
		_, err = tx.ExecContext(ctx, raise, is.key, int64(floor))
	}
	return err
}

// writeOne makes one write and returns for how many records it stands: 0 if it may not take place.
func writeOne(ctx context.Context, tx *sql.Tx, is row, w *store.Write) (n int64, err error) {
	id, key := []byte(w.ID), is.key
	if w.Delete {
		if n, err = changed(tx.ExecContext(ctx, deleteOld, key, id, w.Version-1)); n == 0 && err == nil {
			err = tx.QueryRowContext(ctx, anyOf, key, id).Scan(&n)
			n = 1 - n
		}
		return n, err
	}
	statement := updateOld
	if w.Makes() {
		statement = insertNew
		if w.Version <= is.floor { // a late copy, or a repeat of what is there
			err = tx.QueryRowContext(ctx, sameOf, key, id, int64(w.Version), w.Nonce[:]).Scan(&n)
			return n, err
		}
	}
	due, wake := times(&w.Record)
	return changed(tx.ExecContext(ctx, statement, int64(w.Version), w.Schema, w.State, w.Outbox, due, wake, w.Nonce[:],
		key, id, w.Reminders))
}

// changed returns how many rows a statement has changed.
func changed(r sql.Result, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	return r.RowsAffected()
}

// times returns when a record is due, and whether it has an outbox, as the columns have it.
func times(r *store.Record) (due, wake any) {
	if !r.Due.IsZero() {
		due = r.Due.UnixMilli()
	}
	if len(r.Outbox) > 0 {
		wake = int64(unsent)
	}
	return due, wake
}

// unsent is what wake is of a record with an outbox. Earlier builds have the time there where it is due.
const unsent = -1 << 63

// page is how many rows are read at once.
const page = 256

// Due implements store.Store.
func (s *Store) Due(ctx context.Context, at store.Shard, by time.Time) iter.Seq2[store.Alarm, error] {
	return func(yield func(store.Alarm, error) bool) {
		due, id := int64(-1<<63), []byte{}
		for {
			rows, err := s.read.QueryContext(ctx, "select due, id from kith_entity where due <= ? and (due, id) > (?, ?) and "+
				"key = (select key from kith_shard where type = ? and shard = ?) order by due, id limit ?",
				by.UnixMilli(), due, id, at.Type, at.N, page)
			n := 0
			for _, r := range readAll(rows, &err) {
				if n++; !yield(store.Alarm{ID: string(r.id), At: time.UnixMilli(r.n)}, nil) {
					return
				}
				due, id = r.n, r.id
			}
			if err != nil {
				yield(store.Alarm{}, told(err))
			}
			if err != nil || n < page {
				return
			}
		}
	}
}

// Unsent implements store.Store.
func (s *Store) Unsent(ctx context.Context, at store.Shard) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		id := []byte{}
		for {
			rows, err := s.read.QueryContext(ctx, "select wake, id from kith_entity where wake = ? and id > ? and "+
				"key = (select key from kith_shard where type = ? and shard = ?) order by id limit ?",
				int64(unsent), id, at.Type, at.N, page)
			n := 0
			for _, r := range readAll(rows, &err) {
				if n++; !yield(string(r.id), nil) {
					return
				}
				id = r.id
			}
			if err != nil {
				yield("", told(err))
			}
			if err != nil || n < page {
				return
			}
		}
	}
}

// numbered is a row of a number and an id.
type numbered struct {
	n  int64
	id []byte
}

// readAll reads rows and closes them: all, before one is given away, for its receiver may call the store.
func readAll(rows *sql.Rows, failed *error) (list []numbered) {
	if *failed != nil {
		return nil
	}
	err := error(nil)
	for err == nil && rows.Next() {
		r := numbered{}
		if err = rows.Scan(&r.n, &r.id); err == nil {
			list = append(list, r)
		}
	}
	*failed = errors.Join(err, rows.Err(), rows.Close())
	return list
}
