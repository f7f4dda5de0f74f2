//go:build linux

// Servers of the tests' own.

package etcd

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/kith-io/kith/internal/lab/etcdserver"
)

// shared is the server of most tests of this package; nil: none can be started, because of why.
var (
	shared *etcdserver.Server
	why    error
)

func TestMain(m *testing.M) {
	shared, why = newServer()
	code := m.Run()
	if shared != nil {
		_ = shared.Remove()
	}
	os.Exit(code)
}

// need returns the server, or skips the test where no etcd is installed.
func need(t testing.TB) *etcdserver.Server {
	t.Helper()
	if errors.Is(why, exec.ErrNotFound) {
		t.Skipf("no etcd: %v (Debian: apt-get install etcd-server)", why)
	}
	require.NoError(t, why)
	return shared
}

// own returns a server of a test's own, or skips the test.
func own(t testing.TB) *etcdserver.Server {
	t.Helper()
	need(t)
	s, err := newServer()
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Remove() })
	return s
}

// newServer starts one.
func newServer() (*etcdserver.Server, error) {
	s, err := etcdserver.New(io.Discard)
	if err != nil {
		return nil, err
	}
	if err := s.Start(); err != nil {
		return nil, errors.Join(err, s.Remove())
	}
	return s, nil
}

// prefixes counts those that tests have had: one that runs again finds nothing of before.
var prefixes int

// prefix returns one of a test's own.
func prefix() string {
	prefixes++
	return fmt.Sprintf("test/%d/", prefixes)
}

// open opens leases on a server.
func open(t testing.TB, s *etcdserver.Server, prefix string, ttl time.Duration) *Lease {
	t.Helper()
	l, err := Open(Config{Client: clientv3.Config{Endpoints: []string{s.URL()}}, Prefix: prefix, TTL: ttl})
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() }) // it may be closed already
	return l
}
