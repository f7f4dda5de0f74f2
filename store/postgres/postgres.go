// The engine: each call is one statement, a function of the schema.

// Package postgres keeps the records of durable entities in PostgreSQL, 13 or newer. A commit is one statement, one
// round trip and one flush of the server's log. What it survives is the server's affair: with fsync and
// synchronous_commit on, as they are by default, a crash of the server and of its machine; with synchronous standbys
// the loss of the machine as well. A failover to a standby that is not synchronous may lose what was acknowledged: that
// is noticed (store.ErrStoreWentBack), and not prevented. synchronous_commit off breaks the contract at each crash.
package postgres

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/store"
)

// Store is a store.Store in a database. Close it.
type Store struct {
	pool *pgxpool.Pool
}

// Open connects to a database, by a URL or a string of key=value pairs, and makes the tables if they are not there: the
// role may create tables and functions in the first schema of its search path. Parameters as pool_max_conns are
// pgxpool's: each call takes a connection as long as it runs.
func Open(ctx context.Context, url string) (*Store, error) {
	pool, err := pgxpool.New(ctx, url)
	if err != nil {
		return nil, fmt.Errorf("store/postgres: %w", err)
	}
	s := &Store{pool}
	if err := s.begin(ctx); err != nil {
		pool.Close()
		return nil, fmt.Errorf("store/postgres: %w", err)
	}
	return s, nil
}

// schemaLock is held while the tables are made: others that begin wait.
const schemaLock = 0x6b697468 // kith

// begin makes the tables.
func (s *Store) begin(ctx context.Context) error {
	tx, err := s.pool.Begin(ctx)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, "select pg_advisory_xact_lock($1)", schemaLock)
	if err == nil {
		_, err = tx.Exec(ctx, schema)
	}
	if err != nil {
		return errors.Join(err, tx.Rollback(ctx))
	}
	return tx.Commit(ctx)
}

// Close ends the connections. Calls under way end first.
func (s *Store) Close() { s.pool.Close() }

// told returns an error as Store returns it: what is definite stays, all else is unknown.
func told(err error) error {
	var failed *pgconn.PgError
	if errors.As(err, &failed) {
		switch failed.Code {
		case stateFenced:
			return store.ErrFenced
		case stateVersion:
			return store.ErrVersion
		case stateWentBack:
			return store.ErrStoreWentBack
		}
	}
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", store.ErrUnknown, err)
}

// Claim implements store.Store.
func (s *Store) Claim(ctx context.Context, at store.Shard, f route.Fence) (c store.Claimed, err error) {
	if err := store.CheckShard(at, f); err != nil {
		return c, err
	}
	var b []byte
	var low int64
	err = s.pool.QueryRow(ctx, "select last, low from kith_own($1, $2, $3)", at.Type, int64(at.N), f[:]).Scan(&b, &low)
	if err != nil {
		return c, told(err)
	}
	copy(c.Last[:], b)
	c.Floor = uint64(low)
	return c, nil
}

// Load implements store.Store.
func (s *Store) Load(ctx context.Context, at store.Shard, f route.Fence, ids ...string) (list []store.Record,
	err error) {
	if err := errors.Join(store.CheckShard(at, f), store.CheckIDs(ids)); err != nil {
		return nil, err
	}
	keys := make([][]byte, len(ids))
	for i, id := range ids {
		keys[i] = []byte(id)
	}
	rows, err := s.pool.Query(ctx, "select * from kith_read($1, $2, $3, $4)", at.Type, int64(at.N), f[:], keys)
	if err != nil {
		return nil, told(err)
	}
	list, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (r store.Record, err error) {
		var id, nonce []byte
		var due *int64
		var version int64
		var schema int32
		err = row.Scan(&id, &version, &schema, &r.State, &r.Outbox, &r.Reminders, &due, &nonce)
		r.ID, r.Version, r.Schema = string(id), uint64(version), uint32(schema)
		copy(r.Nonce[:], nonce)
		if due != nil {
			r.Due = time.UnixMilli(*due)
		}
		return r, err
	})
	if err != nil {
		return nil, told(err)
	}
	return list, nil
}

// columns are writes as the columns that kith_write takes.
type columns struct {
	ids, states, outboxes, reminders, nonces, gone [][]byte
	versions, were                                 []int64
	fresh                                          []bool
	schemas                                        []int32
	dues, wakes                                    []*int64
	raised                                         int64
}

// add adds a write.
func (c *columns) add(w *store.Write) {
	if w.Delete {
		c.gone, c.were = append(c.gone, []byte(w.ID)), append(c.were, int64(w.Version-1))
		c.raised = max(c.raised, int64(w.Raises()))
		return
	}
	c.ids, c.versions = append(c.ids, []byte(w.ID)), append(c.versions, int64(w.Version))
	c.fresh = append(c.fresh, w.Makes())
	c.schemas, c.states = append(c.schemas, int32(w.Schema)), append(c.states, w.State)
	c.outboxes, c.nonces = append(c.outboxes, w.Outbox), append(c.nonces, w.Nonce[:])
	c.reminders = append(c.reminders, w.Reminders)
	var due, wake *int64
	if !w.Due.IsZero() {
		at := w.Due.UnixMilli()
		due = &at
	}
	if len(w.Outbox) > 0 {
		unsent := int64(math.MinInt64)
		wake = &unsent
	}
	c.dues, c.wakes = append(c.dues, due), append(c.wakes, wake)
}

// execer is a pool, or a transaction of a test.
type execer interface {
	Exec(ctx context.Context, sql string, arguments ...any) (pgconn.CommandTag, error)
}

// Commit implements store.Store.
func (s *Store) Commit(ctx context.Context, at store.Shard, f route.Fence, w ...store.Write) error {
	if err := errors.Join(store.CheckShard(at, f), store.Check(w)); err != nil {
		return err
	}
	return told(commit(ctx, s.pool, at, f, w))
}

// commit is the statement.
func commit(ctx context.Context, on execer, at store.Shard, f route.Fence, w []store.Write) error {
	var c columns
	for i := range w {
		c.add(&w[i])
	}
	args := []any{at.Type, int64(at.N), f[:], c.ids, c.versions, c.fresh, c.schemas, c.states, c.outboxes, c.reminders,
		c.dues, c.wakes, c.nonces, c.gone, c.were, c.raised}
	if notes := marksOf(w); len(notes.ids) > 0 {
		_, err := on.Exec(ctx, "select kith_mark($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, "+
			"$18, $19, $20, $21)", append(args, notes.ids, notes.froms, notes.numbers, notes.ats, notes.values)...)
		return err
	}
	_, err := on.Exec(ctx, "select kith_write($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)",
		args...)
	return err
}

// page is how many rows are read at once.
const page = 256

// Due implements store.Store.
func (s *Store) Due(ctx context.Context, at store.Shard, by time.Time) iter.Seq2[store.Alarm, error] {
	return func(yield func(store.Alarm, error) bool) {
		last := numbered{N: math.MinInt64, ID: []byte{}}
		for {
			list, err := s.rows(ctx, "select due, id from kith_entity where due <= $1 and (due, id) > ($2, $3) and "+
				"key = (select key from kith_shard where type = $4 and shard = $5) order by due, id limit $6",
				by.UnixMilli(), last.N, last.ID, at.Type, int64(at.N), page)
			for _, last = range list {
				if !yield(store.Alarm{ID: string(last.ID), At: time.UnixMilli(last.N)}, nil) {
					return
				}
			}
			if err != nil {
				yield(store.Alarm{}, told(err))
			}
			if err != nil || len(list) < page {
				return
			}
		}
	}
}

// Unsent implements store.Store.
func (s *Store) Unsent(ctx context.Context, at store.Shard) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		last := numbered{ID: []byte{}}
		for {
			list, err := s.rows(ctx, "select wake, id from kith_entity where wake = $1 and id > $2 and "+
				"key = (select key from kith_shard where type = $3 and shard = $4) order by id limit $5",
				int64(math.MinInt64), last.ID, at.Type, int64(at.N), page)
			for _, last = range list {
				if !yield(string(last.ID), nil) {
					return
				}
			}
			if err != nil {
				yield("", told(err))
			}
			if err != nil || len(list) < page {
				return
			}
		}
	}
}

// numbered is a row of a number and an id.
type numbered struct {
	N  int64
	ID []byte
}

// rows reads all rows of a query, before one is given away: its receiver may call the store.
func (s *Store) rows(ctx context.Context, query string, args ...any) ([]numbered, error) {
	rows, err := s.pool.Query(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[numbered])
}
