//go:build linux

// Tests of leases in PostgreSQL: the suite against a real server, which is killed, stands still, and has its clock set
// (MEM-10).

package postgres

import (
	"context"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/lab/leasestore"
	"github.com/kith-io/kith/lease"
	"github.com/kith-io/kith/sbr/leasetest"
)

func within(t testing.TB, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

func within2min(t testing.TB) context.Context { return within(t, 2*time.Minute) }

func open(t testing.TB, s *server, ttl time.Duration) *Lease {
	l, err := Open(context.Background(), s.url(), ttl)
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func acquires(t testing.TB, l *Lease, name, owner string, want bool) {
	t.Helper()
	ok, err := l.Acquire(within2min(t), name, owner)
	require.NoError(t, err)
	require.Equal(t, want, ok)
}

func TestLease(t *testing.T) {
	s := need(t)
	with := func(ttl time.Duration) func(t *testing.T) leasetest.Lease {
		return func(t *testing.T) leasetest.Lease { return open(t, s, ttl) }
	}
	leasetest.Run(t, with(0))
	leasetest.RunNames(t, with(0))
	leasetest.RunEnds(t, time.Second, with(time.Second))
	require.Equal(t, lease.DefaultTTL, open(t, s, 0).TTL())
}

// Nodes that begin together make the table once.
func TestFirstCallsAtOnce(t *testing.T) {
	s := need(t)
	done := make(chan error, 8)
	for range cap(done) {
		l := open(t, s, 0)
		go func() { done <- l.make(context.Background()) }()
	}
	for range cap(done) {
		require.NoError(t, <-done)
	}
}

// A server that is killed keeps the lease, and one that is away is an error of each call that changes nothing.
func TestServerIsKilled(t *testing.T) {
	s, name := need(t), t.Name()
	a, b := open(t, s, 0), open(t, s, 0)
	acquires(t, a, name, "a", true)
	s.Stop(syscall.SIGQUIT)
	for _, owner := range []string{"a", "b"} {
		ok, err := b.Acquire(within(t, 300*time.Millisecond), name, owner)
		require.Error(t, err)
		require.False(t, ok)
	}
	require.Error(t, a.Release(within(t, 300*time.Millisecond), name, "a"))
	require.NoError(t, s.Start())
	again := func(ask func() (bool, error)) bool { // connections of before are broken
		ok, err := ask()
		for err != nil && within2min(t).Err() == nil {
			ok, err = ask()
		}
		return ok
	}
	require.False(t, again(func() (bool, error) { return b.Acquire(within2min(t), name, "b") }))
	require.True(t, again(func() (bool, error) { return a.Acquire(within2min(t), name, "a") }))
	require.NoError(t, a.Release(within2min(t), name, "a"))
	acquires(t, b, name, "b", true)
}

// While the server stands still each call is an error, nobody gets the lease, and it ends early for nobody; what was
// under way comes to pass behind its time, and changes nothing.
func TestServerStandsStill(t *testing.T) {
	s, name := need(t), t.Name()
	a, b := open(t, s, 2*time.Second), open(t, s, 2*time.Second)
	begin := time.Now()
	acquires(t, a, name, "a", true)
	acquires(t, b, name, "b", false)
	require.NoError(t, s.Pause(true))
	t.Cleanup(func() { _ = s.Pause(false) })
	for _, l := range []*Lease{a, b} {
		ok, err := l.Acquire(within(t, 300*time.Millisecond), name, "late")
		require.Error(t, err)
		require.False(t, ok)
	}
	require.Error(t, a.Release(within(t, 300*time.Millisecond), name, "a"))
	require.NoError(t, s.Pause(false))
	comesToB(t, b, name)
	require.GreaterOrEqual(t, time.Since(begin), 2*time.Second)
	acquires(t, a, name, "a", false)
}

// comesToB waits until b gets the lease: that of a has to run out before.
func comesToB(t *testing.T, b *Lease, name string) {
	require.Eventually(t, func() bool {
		ok, err := b.Acquire(within2min(t), name, "b")
		return ok && err == nil // connections of before may be broken
	}, 2*time.Minute, 5*time.Millisecond)
}

// One that is cut off from the server has an error of each call, and loses its lease when that has run out: another one
// gets it. What was under way meanwhile comes when the cut is over, and takes nothing from that one.
func TestCutOffFromTheServer(t *testing.T) {
	s, name := need(t), t.Name()
	dir, err := os.MkdirTemp("", "kith-pg") // a short path
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	ln, err := net.Listen("unix", filepath.Join(dir, socket))
	require.NoError(t, err)
	gate := leasestore.NewGate(ln, func() (net.Conn, error) { return net.Dial("unix", filepath.Join(s.Dir, socket)) })
	t.Cleanup(func() { _ = gate.Close() })
	a, err := Open(within2min(t), strings.ReplaceAll(s.url(), s.Dir, dir), 2*time.Second)
	require.NoError(t, err)
	t.Cleanup(func() { _ = a.Close() })
	b := open(t, s, 2*time.Second)
	begin := time.Now()
	acquires(t, a, name, "a", true)
	gate.Set(false)
	for _, call := range []func(context.Context) error{
		func(ctx context.Context) error { _, err := a.Acquire(ctx, name, "a"); return err },
		func(ctx context.Context) error { return a.Release(ctx, name, "a") },
	} {
		require.Error(t, call(within(t, 300*time.Millisecond)))
	}
	comesToB(t, b, name)
	require.GreaterOrEqual(t, time.Since(begin), 2*time.Second)
	_, err = a.Acquire(within(t, 300*time.Millisecond), name, "a")
	require.Error(t, err)
	gate.Set(true)
	require.Eventually(t, func() bool { // connections of before may be broken
		ok, err := a.Acquire(within2min(t), name, "a")
		return !ok && err == nil
	}, 2*time.Minute, 5*time.Millisecond)
	acquires(t, b, name, "b", true)
}

// socket is the name of a server's in its folder.
const socket = ".s.PGSQL.5432"

// What had no answer in time, for somebody held the row, has no effect when it comes to pass: neither an Acquire nor a
// Release, which the next Acquire of its owner would miss.
func TestLateCalls(t *testing.T) {
	s, name := need(t), t.Name()
	a, b := open(t, s, 0), open(t, s, 0)
	acquires(t, a, name, "a", true)
	hold := func() (goOn func()) {
		tx, err := b.pool.Begin(within2min(t))
		require.NoError(t, err)
		_, err = tx.Exec(within2min(t), "select 1 from kith_lease where name = $1 for update", []byte(name))
		require.NoError(t, err)
		return func() { require.NoError(t, tx.Rollback(within2min(t))) }
	}
	now := func() (at time.Time) {
		require.NoError(t, b.pool.QueryRow(within2min(t), "select kith_lease_now()").Scan(&at))
		return at
	}
	for sql, args := range map[string][]any{
		"select kith_lease_take($1, $2, $3, $4)":         {[]byte(name), []byte("a"), int64(0)},
		"select kith_lease_give($1, $2, $3) is not null": {[]byte(name), []byte("a")},
	} {
		goOn, by := hold(), now().Add(50*time.Millisecond)
		done := make(chan error, 1)
		go func() {
			var ok bool
			done <- a.pool.QueryRow(context.Background(), sql, append(args, by)...).Scan(&ok)
		}()
		for now().Before(by) {
			require.NoError(t, within2min(t).Err())
		}
		goOn()
		require.ErrorIs(t, told(<-done), context.DeadlineExceeded)
	}
	acquires(t, b, name, "b", false)
	acquires(t, a, name, "a", true)
}

// A call ends with its context though somebody holds the row.
func TestCallsEnd(t *testing.T) {
	s, name := need(t), t.Name()
	a, b := open(t, s, 0), open(t, s, 0)
	acquires(t, a, name, "a", true)
	tx, err := b.pool.Begin(within2min(t))
	require.NoError(t, err)
	_, err = tx.Exec(within2min(t), "select 1 from kith_lease where name = $1 for update", []byte(name))
	require.NoError(t, err)
	ok, err := a.Acquire(within(t, 100*time.Millisecond), name, "a")
	require.Error(t, err)
	require.False(t, ok)
	require.Error(t, a.Release(within(t, 100*time.Millisecond), name, "a"))
	require.NoError(t, tx.Rollback(within2min(t)))
	acquires(t, b, name, "b", false)
}

// Only the server's clock counts: set back, a lease lasts longer; set forward by more than the TTL it ends, which the
// documentation says.
func TestClockOfTheServerIsSet(t *testing.T) {
	s, name := need(t), t.Name()
	a, b := open(t, s, time.Hour), open(t, s, time.Hour)
	acquires(t, a, name, "a", true)
	set := func(by string) {
		_, err := b.pool.Exec(within2min(t), "create or replace function kith_lease_now() returns timestamptz language sql "+
			"volatile as 'select clock_timestamp() + interval ''"+by+"'''")
		require.NoError(t, err)
	}
	t.Cleanup(func() { set("0") })
	set("-30 minutes")
	acquires(t, b, name, "b", false)
	set("59 minutes")
	acquires(t, b, name, "b", false)
	set("61 minutes")
	acquires(t, b, name, "b", true)
	acquires(t, a, name, "a", false)
}

// Rows of long ago are cleared away, others stay, also with commits that wait for no disk.
func TestRowsAreClearedAway(t *testing.T) {
	s := need(t)
	l, err := Open(context.Background(), s.url()+" synchronous_commit=off", 0)
	require.NoError(t, err)
	defer l.Close()
	acquires(t, l, "now", "a", true)
	_, err = l.pool.Exec(within2min(t), "insert into kith_lease select ('old ' || i)::bytea, 'a', now() - interval '2 days' "+
		"from generate_series(1, 20) i")
	require.NoError(t, err)
	for range 3 {
		acquires(t, l, "now", "a", true)
	}
	var old, kept int
	require.NoError(t, l.pool.QueryRow(within2min(t), "select count(*) filter (where until < now() - interval '1 day' and "+
		"name like 'old %'), count(*) filter (where name = 'now') from kith_lease").Scan(&old, &kept))
	require.Equal(t, []int{0, 1}, []int{old, kept})
}

// An address is that of PostgreSQL, and a fault of one is said without a server.
func TestAddresses(t *testing.T) {
	s := need(t)
	l, err := lease.Open(within2min(t), "postgres://kith@/postgres?host="+url.QueryEscape(s.Dir)+"&ttl=1m", Kind)
	require.NoError(t, err)
	leasetest.Run(t, func(*testing.T) leasetest.Lease { return l })
	require.Equal(t, time.Minute, l.TTL())
	require.NoError(t, l.Close())
	_, err = lease.Open(within2min(t), "postgres://h/d?sslmode=nonsense", Kind)
	require.ErrorIs(t, err, lease.ErrBadConfig)
	_, err = Open(within2min(t), "nonsense", 0)
	require.ErrorIs(t, err, lease.ErrBadConfig)
	away, err := Open(within2min(t), "host="+filepath.Join(os.TempDir(), "nobody")+" user=kith password=secret", 0)
	require.NoError(t, err)
	_, err = away.Acquire(within2min(t), "n", "a")
	require.ErrorContains(t, err, "lease: postgres: ")
	require.False(t, strings.Contains(err.Error(), "secret"))
}
