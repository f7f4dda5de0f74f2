//go:build linux

// Tests of the engine: the suite against a real server, which is stopped as by a crash, too.

package postgres

import (
	"context"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

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

// TestEngine: the suite, each store with connections of its own, as other processes have them.
func TestEngine(t *testing.T) {
	s := need(t)
	storetest.Run(t, storetest.Engine{
		Open: func(t *testing.T) store.Store { return open(t, s) },
		Hold: func(t *testing.T, at store.Shard, f route.Fence, w ...store.Write) func() error {
			tx, err := open(t, s).pool.Begin(context.Background())
			require.NoError(t, err)
			require.NoError(t, commit(context.Background(), tx, at, f, w))
			return func() error { return tx.Commit(context.Background()) }
		},
		Again: func(t *testing.T) {
			s.stop(syscall.SIGQUIT)
			require.NoError(t, s.start())
		},
	})
}

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

// TestTablesOfEarlierBuilds: a database whose shards have no floor yet gets one, and keeps what it has (SHD-11).
func TestTablesOfEarlierBuilds(t *testing.T) {
	first, ctx, at := open(t, need(t)), context.Background(), store.Shard{Type: t.Name()}
	f, w := route.MakeFence(1, 1, 1), storetest.Put("a", 1, "x")
	_, err := first.pool.Exec(ctx, "create schema earlier; alter role kith set search_path = earlier")
	require.NoError(t, err)
	t.Cleanup(func() {
		_, err := first.pool.Exec(ctx, "alter role kith reset search_path")
		require.NoError(t, err)
	})
	s := open(t, need(t))
	_, err = s.Claim(ctx, at, f)
	require.NoError(t, err)
	require.NoError(t, s.Commit(ctx, at, f, w))
	_, err = s.pool.Exec(ctx, "alter table earlier.kith_shard drop column floor")
	require.NoError(t, err)
	for _, floor := range []uint64{0, 2} {
		s = open(t, need(t))
		c, err := s.Claim(ctx, at, f)
		require.NoError(t, err)
		require.Equal(t, floor, c.Floor)
		w.Version, w.Delete = 2, true
		require.NoError(t, s.Commit(ctx, at, f, w))
	}
}
