//go:build linux

// Servers of the tests' own: processes of etcd in temporary folders, on loopback.

package etcd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/kith-io/kith/internal/lab/etcdserver"
)

// startTime bounds a start, also on a busy machine.
const startTime = 2 * time.Minute

// server is an etcd of one member.
type server struct {
	*etcdserver.Server
	prefix string       // of the stores of the test that runs, the longest there may be
	log    bytes.Buffer // of the process that runs: read it when that has ended
}

// shared is the server of most tests of this package; nil: none can be started, because of why.
var (
	shared *server
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

// prefixes counts those that tests have had: one that runs again finds nothing of before.
var prefixes int

// need returns the server, with a prefix of the test's own, or skips the test where no etcd is installed.
func need(t testing.TB) *server {
	t.Helper()
	if errors.Is(why, exec.ErrNotFound) {
		t.Skipf("no etcd: %v (Debian: apt-get install etcd-server)", why)
	}
	require.NoError(t, why)
	prefixes++
	shared.prefix = fmt.Sprintf("%0*d/", MaxPrefix-1, prefixes)
	return shared
}

// own returns a server of a test's own with further settings, or skips the test.
func own(t testing.TB, settings ...string) *server {
	t.Helper()
	need(t)
	s, err := newServer(settings...)
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Remove() })
	return s
}

// newServer starts one.
func newServer(settings ...string) (s *server, err error) {
	s = &server{}
	if s.Server, err = etcdserver.New(&s.log, settings...); err != nil {
		return nil, err
	}
	if err := s.Start(); err != nil {
		return nil, fmt.Errorf("%w: %s", errors.Join(err, s.Remove()), s.log.Bytes())
	}
	return s, nil
}

// crash kills the process and starts it again.
func (s *server) crash(t testing.TB) {
	t.Helper()
	s.Stop(syscall.SIGKILL)
	require.NoError(t, s.Start())
}

// config is how a client reaches it.
func (s *server) config() clientv3.Config {
	return clientv3.Config{Endpoints: []string{s.URL()}}
}

// open opens a store on it.
func open(t testing.TB, s *server) *Store {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), startTime)
	defer cancel()
	st, err := Open(ctx, s.config(), s.prefix)
	require.NoError(t, err)
	t.Cleanup(func() { _ = st.Close() }) // it may be closed already
	return st
}
