// Tests of the engine: the suite against a file, shared by several stores, and files that are none.

package sqlite

import (
	"bytes"
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/lab/queuetest"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/store"
	"github.com/kith-io/kith/store/storetest"
)

func open(t testing.TB, file string) *Store {
	s, err := Open(file)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// engine is what suites test: each store with connections of its own, as other processes of the machine have them.
func engine(t *testing.T) storetest.Engine {
	dir := t.TempDir()
	file := filepath.Join(dir, "a file?#%.db")
	return storetest.Engine{
		Open: func(t *testing.T) store.Store { return open(t, file) },
		Hold: func(t *testing.T, s store.Shard, f route.Fence, w ...store.Write) func() error {
			other := open(t, file)
			tx, err := other.write.Begin()
			require.NoError(t, err)
			require.NoError(t, commit(context.Background(), tx, s, f, w))
			return tx.Commit
		},
		Again: func(t *testing.T) { // a copy of both files is what a crash leaves
			for _, end := range []string{"", "-wal"} {
				is, err := os.ReadFile(file + end)
				require.NoError(t, err)
				require.NoError(t, os.WriteFile(filepath.Join(dir, "crashed.db"+end), is, 0o600))
			}
			file = filepath.Join(dir, "crashed.db")
		},
	}
}

// TestEngine: the suite.
func TestEngine(t *testing.T) { storetest.Run(t, engine(t)) }

// TestQueues: queues of package delivery keep their promises (SHD-10).
func TestQueues(t *testing.T) { queuetest.Run(t, engine(t)) }

// TestFilesThatAreNone: what is no store, or cannot be made, is an error that names it.
func TestFilesThatAreNone(t *testing.T) {
	text := filepath.Join(t.TempDir(), "text")
	require.NoError(t, os.WriteFile(text, bytes.Repeat([]byte("no database "), 100), 0o600))
	for _, file := range []string{text, t.TempDir(), filepath.Join(t.TempDir(), "none", "x.db")} {
		_, err := Open(file)
		require.ErrorContains(t, err, file)
	}
}

// TestSettings: what the promise rests on.
func TestSettings(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "x.db"))
	var mode string
	var sync int
	require.NoError(t, s.write.QueryRow("pragma journal_mode").Scan(&mode))
	require.NoError(t, s.write.QueryRow("pragma synchronous").Scan(&sync))
	require.Equal(t, "wal", mode)
	require.Equal(t, 2, sync, "FULL")
}

// TestWaitForAnotherProcessEnds: with the context of the call, however long the other one writes; then all goes on.
func TestWaitForAnotherProcessEnds(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.db")
	s, other, at := open(t, file), open(t, file), store.Shard{Type: "t"}
	tx, err := other.write.Begin()
	require.NoError(t, err)
	for range 2 { // the second one on a connection of its own
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
		began := time.Now()
		_, err = s.Claim(ctx, at, route.MakeFence(1, 1, 1))
		cancel()
		require.ErrorIs(t, err, store.ErrUnknown)
		require.Less(t, time.Since(began), busy/2)
	}
	done := make(chan error)
	go func() {
		_, err := s.Claim(context.Background(), at, route.MakeFence(1, 1, 1))
		done <- err
	}()
	require.NoError(t, tx.Rollback())
	require.NoError(t, <-done)
}

// TestReadersAreBounded: as many entities as there are may begin at once, on few connections; a walk through Unsent
// holds none, so that it may call the store.
func TestReadersAreBounded(t *testing.T) {
	s, at, f := open(t, filepath.Join(t.TempDir(), "x.db")), store.Shard{Type: "t"}, route.MakeFence(1, 1, 1)
	require.Equal(t, readers, s.read.Stats().MaxOpenConnections)
	s.read.SetMaxOpenConns(1)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	_, err := s.Claim(ctx, at, f)
	require.NoError(t, err)
	for _, id := range []string{"a", "b"} {
		w := store.Write{Record: store.Record{ID: id, Version: 1, Outbox: []byte("x"), Nonce: [16]byte{1}}}
		require.NoError(t, s.Commit(ctx, at, f, w))
	}
	var got []string
	for id, err := range s.Unsent(ctx, at) {
		require.NoError(t, err)
		list, err := s.Load(ctx, at, f, id)
		require.NoError(t, err)
		require.Len(t, list, 1)
		got = append(got, id)
	}
	require.ElementsMatch(t, []string{"a", "b"}, got)
}

// earlier are tables as builds have made them that knew no floor.
const earlier = `
create table kith_shard (
	key integer primary key, type text not null, shard integer not null, fence blob not null, before blob not null,
	unique (type, shard));
create table kith_entity (
	key integer not null, id blob not null, version integer not null, schema integer not null, state blob, outbox blob,
	due integer, wake integer, nonce blob not null, primary key (key, id));
create index kith_wake on kith_entity (key, wake) where wake is not null;
insert into kith_shard values (1, 't', 0, x'00000000000000010000000100000001', x'00000000000000000000000000000000');
insert into kith_entity values (1, x'61', 1, 0, x'78', null, 7, 7, x'01000000000000000000000000000000');`

// TestTablesOfEarlierBuilds: what such tables have is kept, and all that came later works (SHD-11).
func TestTablesOfEarlierBuilds(t *testing.T) {
	file, ctx, f := filepath.Join(t.TempDir(), "x.db"), context.Background(), route.MakeFence(1, 1, 1)
	db, err := sql.Open("sqlite", file)
	require.NoError(t, err)
	_, err = db.Exec(earlier)
	require.NoError(t, err)
	require.NoError(t, db.Close())
	storetest.Run(t, storetest.Engine{Open: func(t *testing.T) store.Store { return open(t, file) }})
	s := open(t, file)
	c, err := s.Claim(ctx, store.Shard{Type: "t"}, f)
	require.NoError(t, err)
	require.Zero(t, c)
	list, err := s.Load(ctx, store.Shard{Type: "t"}, f, "a")
	require.NoError(t, err)
	require.Equal(t, []store.Record{{ID: "a", Version: 1, State: []byte("x"), Due: time.UnixMilli(7), Nonce: [16]byte{1}}},
		list)
}
