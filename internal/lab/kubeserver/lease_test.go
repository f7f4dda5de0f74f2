//go:build linux

// Leases in a real Kubernetes: the suite, a server that is killed, stands still and is out of reach, what the role of
// the manifests allows, and tokens that are replaced (MEM-10).

package kubeserver_test

import (
	"context"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/lab/kubeserver"
	"github.com/kith-io/kith/internal/lab/leasestore"
	"github.com/kith-io/kith/lease"
	"github.com/kith-io/kith/sbr/leasetest"
)

// leases opens those of an account at a server.
func leases(t *testing.T, at, dir string, ttl time.Duration) *lease.Kubernetes {
	t.Helper()
	l, err := lease.OpenKubernetes(lease.KubernetesConfig{APIServer: at, Directory: dir, TTL: ttl})
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func acquires(t *testing.T, l *lease.Kubernetes, owner string, want bool) {
	t.Helper()
	ok, err := l.Acquire(within2min(t), "n", owner)
	require.NoError(t, err)
	require.Equal(t, want, ok)
}

// fails demands that an Acquire has an error.
func fails(t *testing.T, l *lease.Kubernetes, owner string) error {
	t.Helper()
	ok, err := l.Acquire(within(t, short), "n", owner)
	require.Error(t, err)
	require.False(t, ok)
	return err
}

// The role of the manifests is enough for all that a lease does.
func TestLease(t *testing.T) {
	s := need(t)
	_, dir := namespace(t, s, manifest(t, "rbac.yaml"))
	with := func(ttl time.Duration) func(t *testing.T) leasetest.Lease {
		return func(t *testing.T) leasetest.Lease { return leases(t, s.URL(), dir, ttl) }
	}
	leasetest.Run(t, with(0))
	leasetest.RunNames(t, with(0))
	leasetest.RunEnds(t, 2*time.Second, with(1500*time.Millisecond))
}

// A server that is killed keeps the lease, and one that is away is an error of each call that changes nothing.
func TestServerIsKilled(t *testing.T) {
	s := need(t)
	_, dir := namespace(t, s, manifest(t, "rbac.yaml"))
	a, b := leases(t, s.URL(), dir, 0), leases(t, s.URL(), dir, 0)
	acquires(t, a, "a", true)
	s.Stop(syscall.SIGKILL)
	fails(t, a, "a")
	fails(t, b, "b")
	require.Error(t, a.Release(within(t, short), "n", "a"))
	require.NoError(t, s.Start())
	acquires(t, b, "b", false)
	acquires(t, a, "a", true)
	require.NoError(t, a.Release(within2min(t), "n", "a"))
	acquires(t, b, "b", true)
}

// While the server, or the etcd behind it, stands still nobody gets a lease that another has, and one that has run out
// meanwhile has ended when it goes on.
func TestServerStandsStill(t *testing.T) {
	s := need(t)
	_, dir := namespace(t, s, manifest(t, "rbac.yaml"))
	for name, signal := range map[string]func(syscall.Signal) error{"server": s.Signal, "etcd": s.Etcd.Signal} {
		a, b := leases(t, s.URL(), dir, 3*time.Second), leases(t, s.URL(), dir, 3*time.Second)
		begin := time.Now()
		acquires(t, a, "a", true)
		goOn := pause(t, signal)
		fails(t, b, "b")
		require.Error(t, a.Release(within(t, short), "n", "x"), name)
		goOn()
		await(t, func() bool {
			ok, err := b.Acquire(within2min(t), "n", "b")
			return err == nil && ok
		})
		require.GreaterOrEqual(t, time.Since(begin), 3*time.Second, name)
		acquires(t, a, "a", false)
		require.NoError(t, b.Release(within2min(t), "n", "b"))
	}
}

// An Acquire with a write that comes to the server behind the Release of its owner has no effect; nor has a Release
// with one that comes behind the next Acquire.
func TestLateWrites(t *testing.T) {
	s := need(t)
	_, dir := namespace(t, s, manifest(t, "rbac.yaml"))
	type held struct{ came, goOn, through chan struct{} }
	var hold atomic.Pointer[held]
	at, to := front(t, s, dir, func(q *http.Request) func() {
		h := hold.Load()
		if q.Method != http.MethodPut || h == nil || !hold.CompareAndSwap(h, nil) {
			return nothing
		}
		close(h.came)
		<-h.goOn
		return func() { close(h.through) }
	})
	a, b := leases(t, at, to, 0), leases(t, s.URL(), dir, 0)
	late := func(call func(context.Context) error, then func()) {
		h := &held{make(chan struct{}), make(chan struct{}), make(chan struct{})}
		hold.Store(h)
		ctx, cancel := context.WithCancel(within2min(t))
		go func() { <-h.came; cancel() }()
		require.Error(t, call(ctx))
		then()
		close(h.goOn)
		<-h.through
	}
	free := func(ctx context.Context) error { return a.Release(ctx, "n", "a") }
	acquires(t, a, "x", true)
	require.NoError(t, a.Release(within2min(t), "n", "x"))
	for range 5 {
		late(func(ctx context.Context) error { _, err := a.Acquire(ctx, "n", "a"); return err },
			func() { require.NoError(t, free(within2min(t))) })
		acquires(t, b, "b", true)
		acquires(t, a, "a", false)
		require.NoError(t, b.Release(within2min(t), "n", "b"))

		acquires(t, a, "a", true)
		late(free, func() { acquires(t, a, "a", true) })
		acquires(t, b, "b", false)
		acquires(t, a, "a", true)
		require.NoError(t, free(within2min(t)))
	}
}

// One that is cut off from the server has an error of each call, and loses its lease when that has run out: another one
// gets it. What was under way meanwhile comes when the cut is over, and takes nothing from that one.
func TestCutOffFromTheServer(t *testing.T) {
	s := need(t)
	_, dir := namespace(t, s, manifest(t, "rbac.yaml"))
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server := strings.TrimPrefix(s.URL(), "https://")
	gate := leasestore.NewGate(ln, func() (net.Conn, error) { return net.Dial("tcp", server) })
	t.Cleanup(func() { require.NoError(t, gate.Close()) })
	a, b := leases(t, "https://"+ln.Addr().String(), dir, 3*time.Second), leases(t, s.URL(), dir, 3*time.Second)
	begin := time.Now()
	acquires(t, a, "a", true)
	gate.Set(false)
	await(t, func() bool {
		fails(t, a, "a")
		ok, err := b.Acquire(within2min(t), "n", "b")
		require.NoError(t, err)
		return ok
	})
	require.GreaterOrEqual(t, time.Since(begin), 3*time.Second)
	require.Error(t, a.Release(within(t, short), "n", "a"))
	gate.Set(true)
	acquires(t, a, "a", false)
	acquires(t, b, "b", true)
}

// What others write into the object stays, and a hand that deletes it gives the lease to the next one that asks: also
// where an owner has seen the object before.
func TestOtherHands(t *testing.T) {
	s := need(t)
	name, dir := namespace(t, s, manifest(t, "rbac.yaml"))
	at := "/apis/coordination.k8s.io/v1/namespaces/" + name + "/leases"
	remove := func() { require.NoError(t, s.Delete(within2min(t), at)) }
	var gone atomic.Bool
	by, to := front(t, s, dir, func(q *http.Request) func() {
		if q.Method == http.MethodPut && gone.CompareAndSwap(true, false) {
			remove()
		}
		return nothing
	})
	a, b := leases(t, by, to, 0), leases(t, s.URL(), dir, 0)
	acquires(t, a, "a", true)
	body, err := s.Must(within2min(t), kubeserver.Request{Path: at})
	require.NoError(t, err)
	object := between(t, string(body), `"name":"`, `"`)
	_, err = s.Must(within2min(t), kubeserver.Request{Method: http.MethodPatch, Path: at + "/" + object,
		Type: "application/merge-patch+json", Body: []byte(`{"metadata":{"labels":{"app":"orders"}}}`)})
	require.NoError(t, err)
	acquires(t, a, "a", true)
	body, err = s.Must(within2min(t), kubeserver.Request{Path: at + "/" + object})
	require.NoError(t, err)
	require.Contains(t, string(body), `"app":"orders"`)
	remove()
	acquires(t, b, "b", true)
	acquires(t, a, "a", false)
	require.NoError(t, b.Release(within2min(t), "n", "b"))
	gone.Store(true)
	acquires(t, a, "a", true) // its write finds no object any more
	acquires(t, b, "b", false)
	require.False(t, gone.Load())
}

func between(t *testing.T, text, from, to string) string {
	t.Helper()
	_, rest, ok := strings.Cut(text, from)
	require.True(t, ok, text)
	is, _, _ := strings.Cut(rest, to)
	return is
}

// Each verb that the role of the manifests has is needed: without one a lease says which verbs those are. So it does in
// a namespace in which the account may nothing, there or not.
func TestRoleOfLeases(t *testing.T) {
	s := need(t)
	role := manifest(t, "rbac.yaml")
	verbs := []string{"get", "create", "update"}
	for i, verb := range verbs {
		t.Run(verb, func(t *testing.T) {
			others := strings.Join(slices.Delete(slices.Clone(verbs), i, i+1), ", ")
			less := strings.Replace(role, "[get, create, update]", "["+others+"]", 1)
			require.NotEqual(t, role, less)
			_, dir := namespace(t, s, less)
			l := leases(t, s.URL(), dir, 0)
			await(t, func() bool { // the server learns of a role a moment later
				_, err := l.Acquire(within2min(t), "n", "a")
				require.ErrorContains(t, err, "may the service account get, create and update leases here?")
				return strings.Contains(err.Error(), "cannot "+verb+" resource")
			})
		})
	}
	_, dir := namespace(t, s, role)
	for _, name := range []string{"default", "none"} {
		l, err := lease.OpenKubernetes(lease.KubernetesConfig{APIServer: s.URL(), Directory: dir, Namespace: name})
		require.NoError(t, err)
		_, err = l.Acquire(within2min(t), "n", "a")
		require.ErrorContains(t, err, "may the service account get, create and update leases here?")
	}
}

// The token is read with each request: one that counts no more is an error, and the next one is taken as soon as the
// kubelet has put it there, on connections that are open already.
func TestTokenIsReplaced(t *testing.T) {
	s := need(t)
	name, dir := namespace(t, s, manifest(t, "rbac.yaml"))
	l := leases(t, s.URL(), dir, 0)
	acquires(t, l, "a", true)
	put := func(account, token string) { require.NoError(t, s.Mount(within2min(t), dir, name, account, token)) }
	put("", "none")
	_, err := l.Acquire(within2min(t), "n", "a")
	require.ErrorContains(t, err, "401")
	require.ErrorContains(t, err, "may the service account")
	put("default", "") // another account, which may nothing: it is that of the next request at once
	_, err = l.Acquire(within2min(t), "n", "a")
	require.ErrorContains(t, err, "system:serviceaccount:"+name+":default")
	put(account, "")
	acquires(t, l, "a", true)
	require.NoError(t, s.Delete(within2min(t), "/api/v1/namespaces/"+name+"/serviceaccounts/"+account))
	await(t, func() bool { // the server keeps in mind for ten seconds that a token is good
		_, err := l.Acquire(within2min(t), "n", "a")
		return err != nil && strings.Contains(err.Error(), "401")
	})
}
