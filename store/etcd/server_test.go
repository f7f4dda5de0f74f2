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
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/kith-io/kith/internal/base/port"
)

// startTime bounds a start, also on a busy machine.
const startTime = 2 * time.Minute

// server is an etcd of one member.
type server struct {
	dir, client, peer string
	settings          []string
	prefix            string // of the stores of the test that runs, the longest there may be
	release           []func()
	log               bytes.Buffer // of the process that runs: read it when that has ended
	cmd               *exec.Cmd
	ended             chan error
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
		shared.remove()
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
	t.Cleanup(s.remove)
	return s
}

// newServer starts one.
func newServer(settings ...string) (s *server, err error) {
	if _, err := exec.LookPath("etcd"); err != nil {
		return nil, err
	}
	s = &server{settings: settings}
	for _, to := range []*string{&s.client, &s.peer} {
		at, release, err := port.Hold()
		if err != nil {
			s.remove()
			return nil, err
		}
		*to, s.release = at, append(s.release, release)
	}
	if s.dir, err = os.MkdirTemp("", "kith-etcd"); err == nil {
		err = s.start()
	}
	if err != nil {
		s.remove()
		return nil, err
	}
	return s, nil
}

func (s *server) data() string { return filepath.Join(s.dir, "data") }

// start starts the process and returns when it answers.
func (s *server) start() error {
	client, peer := "http://"+s.client, "http://"+s.peer
	s.log.Reset()
	s.cmd = exec.Command("etcd", append([]string{"--name=one", "--data-dir=" + s.data(), "--listen-client-urls=" + client,
		"--advertise-client-urls=" + client, "--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer,
		"--initial-cluster=one=" + peer}, s.settings...)...)
	s.cmd.Dir, s.cmd.Stdout, s.cmd.Stderr = s.dir, &s.log, &s.log
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	s.cmd.Env = append(os.Environ(), "ETCD_UNSUPPORTED_ARCH=arm64")
	ended := make(chan error, 1)
	if err := s.cmd.Start(); err != nil {
		return err
	}
	s.ended = ended
	go func() { ended <- s.cmd.Wait() }()
	ctx, cancel := context.WithTimeout(context.Background(), startTime)
	defer cancel()
	up := make(chan error, 1)
	go func() {
		c, err := clientv3.New(clientv3.Config{Endpoints: []string{client}, Logger: zap.NewNop()})
		for err == nil {
			if _, err = c.Get(ctx, "x"); err == nil {
				break
			}
			if ctx.Err() == nil {
				err = nil // it does not answer yet
			}
		}
		if c != nil {
			_ = c.Close()
		}
		up <- err
	}()
	select {
	case err := <-up:
		if err != nil {
			s.stop(syscall.SIGKILL)
			return fmt.Errorf("etcd does not answer: %w: %s", err, s.log.Bytes())
		}
		return nil
	case err := <-ended:
		s.ended = nil
		cancel()
		<-up
		return fmt.Errorf("etcd ended: %w: %s", err, s.log.Bytes())
	}
}

// stop ends the process, if it runs, and waits: SIGKILL as a crash does.
func (s *server) stop(how syscall.Signal) {
	if s.ended != nil {
		_ = s.cmd.Process.Signal(how) // it may have ended by itself
		<-s.ended
		s.ended = nil
	}
}

// remove ends it for good.
func (s *server) remove() {
	s.stop(syscall.SIGKILL)
	for _, release := range s.release {
		release()
	}
	if s.dir != "" {
		_ = os.RemoveAll(s.dir)
	}
}

// config is how a client reaches it.
func (s *server) config() clientv3.Config {
	return clientv3.Config{Endpoints: []string{"http://" + s.client}}
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
