//go:build linux

// A PostgreSQL server of the tests' own: in a temporary directory, at a socket, as a user that is not root.

package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// server is one that runs.
type server struct {
	bin, dir string
	as       *syscall.SysProcAttr
	cmd      *exec.Cmd
	log      bytes.Buffer
}

// url is where it listens.
func (s *server) url() string {
	return "host=" + s.dir + " user=kith dbname=postgres pool_max_conns=40"
}

// shared is the server of all tests of this package; nil: none can be started, because of why.
var (
	shared *server
	why    error
)

func TestMain(m *testing.M) {
	shared, why = newServer()
	code := m.Run()
	if shared != nil {
		shared.stop(syscall.SIGINT)
		_ = os.RemoveAll(shared.dir) // of the temporary directory
	}
	os.Exit(code)
}

// need returns the server, or skips the test.
func need(t testing.TB) *server {
	t.Helper()
	if shared == nil {
		t.Skipf("no PostgreSQL server: %v (Debian: apt-get install postgresql)", why)
	}
	return shared
}

// binaries returns the folder with those of the newest server that is installed.
func binaries() (string, error) {
	if list, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb"); len(list) > 0 {
		slices.SortFunc(list, func(a, b string) int { return len(a) - len(b) })
		return filepath.Dir(list[len(list)-1]), nil
	}
	file, err := exec.LookPath("initdb")
	if err != nil {
		return "", err
	}
	if file, err = filepath.EvalSymlinks(file); err != nil {
		return "", err
	}
	return filepath.Dir(file), nil
}

// newServer makes a database and starts its server.
func newServer() (s *server, err error) {
	s = &server{as: &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}}
	if s.bin, err = binaries(); err != nil {
		return nil, err
	}
	if s.dir, err = os.MkdirTemp("", "kith-pg"); err != nil { // short: the path of a socket is
		return nil, err
	}
	if os.Getuid() == 0 {
		if err := s.lowly(); err != nil {
			return nil, err
		}
	}
	initdb := s.command("initdb", "-D", s.data(), "-U", "kith", "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync")
	if out, err := initdb.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("initdb: %w: %s", err, out)
	}
	return s, s.start()
}

// lowly has the server run as another user: it refuses to be root's.
func (s *server) lowly() error {
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err1 := strconv.Atoi(u.Uid)
		gid, err2 := strconv.Atoi(u.Gid)
		s.as.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		return errors.Join(err1, err2, os.Chown(s.dir, uid, gid))
	}
	return errors.New("neither a user postgres nor nobody")
}

func (s *server) data() string { return filepath.Join(s.dir, "data") }

func (s *server) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(s.bin, name), args...)
	cmd.Dir, cmd.SysProcAttr = s.dir, s.as
	return cmd
}

// start starts it, and returns when it answers.
func (s *server) start() error {
	s.cmd = s.command("postgres", "-D", s.data(), "-k", s.dir, "-c", "listen_addresses=")
	s.cmd.Stdout, s.cmd.Stderr = &s.log, &s.log
	if err := s.cmd.Start(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for {
		conn, err := pgx.Connect(ctx, "host="+s.dir+" user=kith dbname=postgres")
		if err == nil {
			return conn.Close(ctx)
		}
		select {
		case <-ctx.Done():
			s.stop(syscall.SIGQUIT)
			return fmt.Errorf("it does not answer: %w: %s", err, s.log.String())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// stop ends it: SIGINT in order, SIGQUIT as a crash does.
func (s *server) stop(how syscall.Signal) {
	_ = s.cmd.Process.Signal(how) // it may have ended by itself
	_ = s.cmd.Wait()
}
