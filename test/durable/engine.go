// The engines: how a process opens one, how the harness reads what is stored without it, and its way past the fence.

package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver pgx

	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/store"
	"github.com/kith-io/kith/store/etcd"
	"github.com/kith-io/kith/store/postgres"
	"github.com/kith-io/kith/store/sqlite"
)

// The engines.
const (
	sqliteEngine   = "sqlite"
	postgresEngine = "postgres"
	etcdEngine     = "etcd"
	quorumEngine   = "quorum" // the disks of the nodes themselves
)

// served reports whether an engine is a server, which can be killed.
func served(engine string) bool { return engine == postgresEngine || engine == etcdEngine }

// poolOf is how many connections of a process PostgreSQL gets; it has 100 for all.
const poolOf = " pool_max_conns=8"

// records are the records of a store, read and written without the engine.
type records interface {
	forcer
	all(ctx context.Context) ([]stored, error)                    // all records
	waiting(ctx context.Context) (unsent, unfired int, err error) // records with an outbox, and with a reminder
	Close() error
}

// openStore opens the store of a process.
func openStore(ctx context.Context, engine, source string) (s store.Store, by forcer, shut func() error, err error) {
	bare, err := openBare(engine, source)
	if err != nil {
		return nil, nil, nil, err
	}
	switch engine {
	case sqliteEngine:
		var db *sqlite.Store
		if db, err = sqlite.Open(source); err == nil {
			return db, bare, func() error { return errors.Join(db.Close(), bare.Close()) }, nil
		}
	case etcdEngine:
		var db *etcd.Store
		if db, err = etcd.Open(ctx, etcdAt(source), ""); err == nil {
			return db, bare, func() error { return errors.Join(db.Close(), bare.Close()) }, nil
		}
	default:
		var db *postgres.Store
		if db, err = postgres.Open(ctx, source+poolOf); err == nil {
			return db, bare, func() error { db.Close(); return bare.Close() }, nil
		}
	}
	return nil, nil, nil, errors.Join(err, bare.Close())
}

// openBare connects when it is used first.
func openBare(engine, source string) (records, error) {
	if engine == etcdEngine {
		return openKeys(source)
	}
	return openTables(engine, source)
}

// tables are a database without the engine.
type tables struct {
	*sql.DB
	engine string
}

// openTables connects when it is used first.
func openTables(engine, source string) (*tables, error) {
	driver := "pgx"
	if engine == sqliteEngine {
		driver = "sqlite"
		source = (&url.URL{Scheme: "file", Opaque: url.PathEscape(source),
			RawQuery: url.Values{"_pragma": {"busy_timeout(10000)"}}.Encode()}).String()
	}
	db, err := sql.Open(driver, source)
	if err != nil {
		return nil, err
	}
	return &tables{db, engine}, nil
}

// stored is a record as it lies there.
type stored struct {
	store.Record
	Type  string
	Shard route.ShardID
	Fence route.Fence // of the shard
}

// all implements records.
func (b *tables) all(ctx context.Context) (list []stored, err error) {
	rows, err := b.QueryContext(ctx, "select s.type, s.shard, s.fence, e.id, e.version, e.state, e.outbox, e.nonce "+
		"from kith_entity e join kith_shard s on e.key = s.key")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var r stored
		var shard int64
		var fence, id, nonce []byte
		if err := rows.Scan(&r.Type, &shard, &fence, &id, &r.Version, &r.State, &r.Outbox, &nonce); err != nil {
			return nil, err
		}
		r.ID, r.Shard = string(id), route.ShardID(shard)
		copy(r.Fence[:], fence)
		copy(r.Nonce[:], nonce)
		list = append(list, r)
	}
	return list, rows.Err()
}

// waiting implements records.
func (b *tables) waiting(ctx context.Context) (unsent, unfired int, err error) {
	return unsent, unfired, b.QueryRowContext(ctx, "select count(case when length(outbox) > 0 then 1 end), "+
		"count(case when length(reminders) > 0 then 1 end) from kith_entity").Scan(&unsent, &unfired)
}

// mark returns the n-th parameter of a statement.
func (b *tables) mark(n int) string {
	if b.engine == sqliteEngine {
		return fmt.Sprintf("?%d", n)
	}
	return fmt.Sprintf("$%d", n)
}

// force writes whatever the fence and the versions say.
func (b *tables) force(ctx context.Context, s store.Shard, w []store.Write) error {
	text := fmt.Sprintf("update kith_entity set state = %s, version = %s, nonce = %s where id = %s and key = "+
		"(select key from kith_shard where type = %s and shard = %s)", b.mark(1), b.mark(2), b.mark(3), b.mark(4),
		b.mark(5), b.mark(6))
	for i := range w {
		_, err := b.ExecContext(ctx, text, w[i].State, int64(w[i].Version), w[i].Nonce[:], []byte(w[i].ID), s.Type,
			int64(s.N))
		if err != nil {
			return fmt.Errorf("%w: %w", store.ErrUnknown, err)
		}
	}
	return nil
}
