//go:build linux

// Tests of leases in etcd: the suite against a real server, which is killed and stands still (MEM-10).

package etcd

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/kith-io/kith/internal/lab/etcdserver"
	"github.com/kith-io/kith/internal/lab/leasestore"
	"github.com/kith-io/kith/lease"
	"github.com/kith-io/kith/sbr/leasetest"
)

// short is the time limit of a call that is to have no answer.
const short = 300 * time.Millisecond

func within(t testing.TB, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

func within2min(t testing.TB) context.Context { return within(t, 2*time.Minute) }

func acquires(t testing.TB, l *Lease, owner string, want bool) {
	t.Helper()
	ok, err := l.Acquire(within2min(t), "n", owner)
	require.NoError(t, err)
	require.Equal(t, want, ok)
}

func TestLease(t *testing.T) {
	s, at := need(t), prefix()
	with := func(ttl time.Duration) func(t *testing.T) leasetest.Lease {
		return func(t *testing.T) leasetest.Lease { return open(t, s, at, ttl) }
	}
	leasetest.Run(t, with(0))
	leasetest.RunNames(t, with(0))
	leasetest.RunEnds(t, 3*time.Second, with(3*time.Second))
	require.Equal(t, lease.DefaultTTL, open(t, s, at, 0).TTL())
	require.Equal(t, 3*time.Second, open(t, s, at, 2100*time.Millisecond).TTL())
}

// pause makes the server stand still until the function that it returns is called.
func pause(t testing.TB, s *etcdserver.Server) (goOn func()) {
	require.NoError(t, s.Signal(syscall.SIGSTOP))
	c := open(t, s, "", 0)
	await(t, func() bool { // a busy machine takes a moment to stop all threads
		_, err := c.get(within(t, short), "n")
		return err != nil
	})
	once := false
	goOn = func() {
		if !once {
			once = true
			require.NoError(t, s.Signal(syscall.SIGCONT))
		}
	}
	t.Cleanup(goOn)
	return goOn
}

// A server that is killed keeps the lease, and one that is away is an error of each call that changes nothing.
func TestServerIsKilled(t *testing.T) {
	s := own(t)
	a, b := open(t, s, "", 0), open(t, s, "", 0)
	acquires(t, a, "a", true)
	s.Stop(syscall.SIGKILL)
	for _, owner := range []string{"a", "b"} {
		ok, err := b.Acquire(within(t, short), "n", owner)
		require.Error(t, err)
		require.False(t, ok)
	}
	require.Error(t, a.Release(within(t, short), "n", "a"))
	require.NoError(t, s.Start())
	acquires(t, b, "b", false)
	acquires(t, a, "a", true)
	require.NoError(t, a.Release(within2min(t), "n", "a"))
	acquires(t, b, "b", true)
}

// An Acquire that had no answer, for the server stood still, has no effect behind the Release of its owner, however late
// it comes to pass; without a Release its owner may have it.
func TestLateAcquire(t *testing.T) {
	s := own(t)
	for range 5 {
		a, b := open(t, s, "", 0), open(t, s, "", 0)
		acquires(t, a, "x", true)
		require.NoError(t, a.Release(within2min(t), "n", "x"))
		id := grantThenPause(t, s, a, "a")
		require.NotZero(t, id)
		require.NoError(t, a.Release(within2min(t), "n", "a"))
		require.Empty(t, a.doubted(claim{"n", "a"}))
		_, err := a.client.Put(within2min(t), a.key("n"), "a", clientv3.WithLease(id)) // the write, once more
		require.Error(t, err)
		acquires(t, b, "b", true)
		acquires(t, a, "a", false)
		require.NoError(t, b.Release(within2min(t), "n", "b"))
	}
}

// grantThenPause leaves an owner's Acquire between its grant and its write, as a server does that stands still there.
func grantThenPause(t testing.TB, s *etcdserver.Server, l *Lease, owner string) clientv3.LeaseID {
	got, err := l.client.Grant(within2min(t), 120)
	require.NoError(t, err)
	l.doubts(claim{"n", owner}, got.ID, true)
	goOn := pause(t, s)
	_, err = l.client.Put(within(t, short), l.key("n"), owner, clientv3.WithLease(got.ID))
	require.Error(t, err)
	goOn()
	return got.ID
}

// A Release that had no answer does not take the lease from an owner that has acquired it again.
func TestLateRelease(t *testing.T) {
	s := own(t)
	a, b := open(t, s, "", 0), open(t, s, "", 0)
	acquires(t, a, "a", true)
	is, err := a.get(within2min(t), "n")
	require.NoError(t, err)
	acquires(t, b, "a", true)
	did, err := a.client.Txn(within2min(t)).If(clientv3.Compare(clientv3.ModRevision(a.key("n")), "=", is.rev)).
		Then(clientv3.OpDelete(a.key("n"))).Commit() // what was under way
	require.NoError(t, err)
	require.False(t, did.Succeeded)
	acquires(t, a, "b", false)
	goOn := pause(t, s)
	require.Error(t, a.Release(within(t, short), "n", "a"))
	goOn()
	acquires(t, a, "a", true)
}

// While the server stands still a lease does not end early, and nobody gets it meanwhile; one of an owner that has gone
// ends when it goes on. The clock of the server's process is the only one.
func TestServerStandsStill(t *testing.T) {
	s := own(t)
	a, b := open(t, s, "", 3*time.Second), open(t, s, "", 3*time.Second)
	begin := time.Now()
	acquires(t, a, "a", true)
	goOn := pause(t, s)
	ok, err := b.Acquire(within(t, short), "n", "b")
	require.Error(t, err)
	require.False(t, ok)
	goOn()
	ctx := within2min(t)
	for !ok {
		ok, err = b.Acquire(ctx, "n", "b")
		require.NoError(t, err)
	}
	require.GreaterOrEqual(t, time.Since(begin), 3*time.Second)
	acquires(t, a, "a", false)
}

// One that is cut off from the server has an error of each call, and loses its lease when that has run out: another one
// gets it. What was under way meanwhile comes when the cut is over, and takes nothing from that one.
func TestCutOffFromTheServer(t *testing.T) {
	need(t)
	s, err := leasestore.Open(leasestore.Config{Kind: leasestore.Etcd, Dir: t.TempDir(), Nodes: 2})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	var list []lease.Service
	for slot := range 2 {
		l, err := lease.Open(within2min(t), s.Address(slot)+"?ttl=3s", Kind)
		require.NoError(t, err)
		t.Cleanup(func() { _ = l.Close() })
		list = append(list, l)
	}
	acquire := func(slot int, limit time.Duration) (bool, error) {
		return list[slot].Acquire(within(t, limit), "n", string(rune('a'+slot)))
	}
	begin := time.Now()
	ok, err := acquire(0, 2*time.Minute)
	require.True(t, ok && err == nil, err)
	require.NoError(t, s.Cut([]int{0}))
	await(t, func() bool {
		ok, err := acquire(0, short)
		require.False(t, ok)
		require.Error(t, err)
		ok, err = acquire(1, 2*time.Minute)
		require.NoError(t, err)
		return ok
	})
	require.GreaterOrEqual(t, time.Since(begin), 3*time.Second)
	require.Error(t, list[0].Release(within(t, short), "n", "a"))
	require.NoError(t, s.Cut(nil))
	ok, err = acquire(0, 2*time.Minute)
	require.True(t, !ok && err == nil, err)
	ok, err = acquire(1, 2*time.Minute)
	require.True(t, ok && err == nil, err)
}

// Grants that led to nothing are bounded, and end by themselves.
func TestDoubtIsBounded(t *testing.T) {
	l := &Lease{doubt: map[claim]map[clientv3.LeaseID]struct{}{}}
	for i := range 3 * maxDoubt {
		l.doubts(claim{"n", string(rune('a' + i%26))}, clientv3.LeaseID(i), true)
	}
	require.Equal(t, maxDoubt, l.grants)
	for i := range 3 * maxDoubt {
		l.doubts(claim{"n", string(rune('a' + i%26))}, clientv3.LeaseID(i), false)
	}
	require.Zero(t, l.grants)
	require.Empty(t, l.doubt)
}

// An address is a configuration, and each fault of one is said without a server.
func TestAddresses(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "pw"), []byte("secret\n"), 0o600))
	s := need(t)
	l, err := lease.Open(within2min(t), "etcd://127.0.0.1:1,"+strings.TrimPrefix(s.URL(), "http://")+"/"+prefix()+"?ttl=1m", Kind)
	require.NoError(t, err)
	leasetest.Run(t, func(*testing.T) leasetest.Lease { return l })
	require.Equal(t, time.Minute, l.TTL())
	require.NoError(t, l.Close())
	for address, want := range map[string]string{
		"etcd:///x":                                "names no server",
		"etcd://h:1?nonsense=1":                    "no setting nonsense",
		"etcd://h:1?cert=x&key=y":                  "without TLS",
		"etcd://h:1?ca=" + dir + "/none":           "no such file",
		"etcd://h:1?password-file=" + dir + "/non": "no such file",
		"etcd://h:1/" + string(make([]byte, 257)):  "at most 256",
	} {
		_, err := lease.Open(within2min(t), address, Kind)
		require.ErrorIs(t, err, lease.ErrBadConfig, address)
		require.ErrorContains(t, err, want, address)
	}
}
