//go:build linux

// A PostgreSQL server of the tests' own.

package postgres

import (
	"bytes"
	"fmt"
	"os"
	"syscall"
	"testing"

	"github.com/kith-io/kith/internal/lab/pgserver"
)

// server is one that runs.
type server struct {
	*pgserver.Server
	log bytes.Buffer
}

// url is where it listens.
func (s *server) url() string { return s.URL() + " pool_max_conns=20" }

// shared is the server of all tests of this package; nil: none can be started, because of why.
var (
	shared *server
	why    error
)

func TestMain(m *testing.M) {
	shared, why = newServer()
	code := m.Run()
	if shared != nil {
		shared.Stop(syscall.SIGINT)
		_ = shared.Remove() // of the temporary directory
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

// newServer makes a database and starts its server.
func newServer() (s *server, err error) {
	s = &server{}
	if s.Server, err = pgserver.New(&s.log); err != nil {
		return nil, err
	}
	if err = s.Init(); err == nil {
		err = s.Start()
	}
	if err != nil {
		s.Stop(syscall.SIGQUIT)
		_ = s.Remove()
		return nil, fmt.Errorf("%w: %s", err, s.log.String())
	}
	return s, nil
}
