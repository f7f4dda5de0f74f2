//go:build linux

// Tests of the engine: the suite against a real server, which is stopped as by a crash, too.

package postgres

import (
	"context"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/lab/queuetest"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/store"
	"github.com/kith-io/kith/store/storetest"
)

func open(t testing.TB, s *server) *Store {
	st, err := Open(context.Background(), s.url())
	require.NoError(t, err)
	t.Cleanup(st.Close)
	return st
}

// engine is what suites test: each store with connections of its own, as other processes have them.
func engine(t *testing.T) storetest.Engine {
	s := need(t)
	return storetest.Engine{
		Open: func(t *testing.T) store.Store { return open(t, s) },
		Hold: func(t *testing.T, at store.Shard, f route.Fence, w ...store.Write) func() error {
			tx, err := open(t, s).pool.Begin(context.Background())
			require.NoError(t, err)
			require.NoError(t, commit(context.Background(), tx, at, f, w))
			return func() error { return tx.Commit(context.Background()) }
		},
		Again: func(t *testing.T) {
			s.Stop(syscall.SIGQUIT)
			require.NoError(t, s.Start())
		},
	}
}

// TestEngine: the suite.
func TestEngine(t *testing.T) { storetest.Run(t, engine(t)) }

// TestQueues: queues of package delivery keep their promises (SHD-10).
func TestQueues(t *testing.T) { queuetest.Run(t, engine(t)) }

// TestOpenTwiceAtOnce: processes that begin together make the tables once.
func TestOpenTwiceAtOnce(t *testing.T) {
	s := need(t)
	done := make(chan error, 8)
	for range cap(done) {
		go func() {
			st, err := Open(context.Background(), s.url())
			if err == nil {
				st.Close()
			}
			done <- err
		}()
	}
	for range cap(done) {
		require.NoError(t, <-done)
	}
}

// TestNoServer: an address at which nobody answers is an error, and no string of settings another.
func TestNoServer(t *testing.T) {
	for _, url := range []string{"host=" + t.TempDir() + " user=kith connect_timeout=2", "nonsense"} {
		_, err := Open(context.Background(), url)
		require.ErrorContains(t, err, "store/postgres: ")
	}
}

// earlier are tables as builds have made them that knew no floor.
const earlier = `
create table kith_shard (
	key bigint generated always as identity primary key,
	type text not null, shard bigint not null, fence bytea not null, before bytea not null, unique (type, shard));
create table kith_entity (
	key bigint not null, id bytea not null, version bigint not null, schema integer not null, state bytea, outbox bytea,
	due bigint, wake bigint, nonce bytea not null, primary key (key, id));
create index kith_wake on kith_entity (key, wake) where wake is not null;
insert into kith_shard (type, shard, fence, before) values ('t', 0, '\x00000000000000010000000100000001',
	decode(repeat('00', 16), 'hex'));
insert into kith_entity values (1, 'a', 1, 0, 'x', null, 7, 7, '\x01000000000000000000000000000000');`

// TestTablesOfEarlierBuilds: what such tables have is kept, and all that came later works (SHD-11).
func TestTablesOfEarlierBuilds(t *testing.T) {
	s, ctx := need(t), context.Background()
	conn, err := pgx.Connect(ctx, "host="+s.Dir+" user=kith dbname=postgres")
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close(ctx)) }()
	_, err = conn.Exec(ctx, "create schema earlier; alter role kith set search_path = earlier; set search_path = earlier; "+
		earlier)
	require.NoError(t, err)
	defer func() {
		_, err := conn.Exec(ctx, "alter role kith reset search_path")
		require.NoError(t, err)
	}()
	storetest.Run(t, storetest.Engine{Open: func(t *testing.T) store.Store { return open(t, s) }})
	st, f := open(t, s), route.MakeFence(1, 1, 1)
	c, err := st.Claim(ctx, store.Shard{Type: "t"}, f)
	require.NoError(t, err)
	require.Zero(t, c)
	list, err := st.Load(ctx, store.Shard{Type: "t"}, f, "a")
	require.NoError(t, err)
	require.Equal(t, []store.Record{{ID: "a", Version: 1, State: []byte("x"), Due: time.UnixMilli(7), Nonce: [16]byte{1}}},
		list)
}
