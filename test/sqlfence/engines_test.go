//go:build linux

// The databases of the tests: SQLite in a file, and servers of the tests' own in temporary directories, at sockets.

package sqlfence

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite"

	"github.com/kith-io/kith/internal/lab/pgserver"
	"github.com/kith-io/kith/sqlfence"
)

// engine is a database: source opens one that is empty.
type engine struct {
	name    string
	dialect sqlfence.Dialect
	driver  string
	source  func(t *testing.T) string
	// waiting reports whether a transaction waits for a lock; nil: the engine cannot say
	waiting string
}

// engines are all; the servers start with the first test that needs them.
var engines = []engine{
	{"sqlite", sqlfence.SQLite, "sqlite", func(t *testing.T) string {
		q := url.Values{"_pragma": {"busy_timeout(60000)", "journal_mode(wal)", "synchronous(off)"}}
		return "file:" + filepath.Join(t.TempDir(), "db") + "?" + q.Encode()
	}, ""},
	{"postgresql", sqlfence.PostgreSQL, "pgx", func(t *testing.T) string {
		s := postgres.need(t)
		return "host=" + s.dir + " user=kith dbname=" + s.database(t, "pgx", "host="+s.dir+" user=kith dbname=postgres")
	}, "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()"},
	{"mysql", sqlfence.MySQL, "mysql", func(t *testing.T) string {
		s := maria.need(t)
		at := "root@unix(" + filepath.Join(s.dir, "s") + ")/"
		return at + s.database(t, "mysql", at)
	}, "select count(*) from information_schema.innodb_trx where trx_state = 'LOCK WAIT'"},
}

// each runs a test against each engine, on an empty database.
func each(t *testing.T, f func(t *testing.T, e engine, source string)) {
	t.Helper()
	for _, e := range engines {
		t.Run(e.name, func(t *testing.T) { f(t, e, e.source(t)) })
	}
}

// open opens a database and its store.
func (e engine) open(t *testing.T, source string) (*sql.DB, *sqlfence.Store) {
	t.Helper()
	db, err := sql.Open(e.driver, source)
	require.NoError(t, err)
	t.Cleanup(func() { _ = db.Close() })
	s, err := sqlfence.Open(context.Background(), db, e.dialect)
	require.NoError(t, err)
	return db, s
}

// awaitWaiter returns when a transaction waits for another one, or done is closed. SQLite's cannot be seen.
func (e engine) awaitWaiter(t *testing.T, db *sql.DB, done <-chan error) {
	t.Helper()
	if e.waiting == "" {
		return
	}
	for n := 0; n == 0; {
		require.NoError(t, db.QueryRow(e.waiting).Scan(&n))
		select {
		case <-done:
			require.Fail(t, "it waits for nobody")
		case <-time.After(150 * time.Millisecond): // MariaDB looks anew when nobody has asked for 100
		}
	}
}

// server is one that runs, or cannot.
type server struct {
	once           sync.Once
	begin          func(s *server) error
	dir, name, apt string
	failed         error
	stop           func() // nil: it has not begun
	log            bytes.Buffer
	databases      int
}

var (
	postgres = &server{begin: beginPostgres, name: "PostgreSQL", apt: "postgresql"}
	maria    = &server{begin: beginMaria, name: "MariaDB", apt: "mariadb-server"}
)

func TestMain(m *testing.M) {
	code := m.Run()
	for _, s := range []*server{postgres, maria} {
		if s.stop != nil {
			s.stop()
		}
	}
	os.Exit(code)
}

// need returns the server, or skips the test.
func (s *server) need(t *testing.T) *server {
	t.Helper()
	s.once.Do(func() { s.failed = s.begin(s) })
	if s.failed != nil {
		t.Skipf("no %s server: %v (Debian: apt-get install %s)", s.name, s.failed, s.apt)
	}
	return s
}

// database makes an empty one, and returns its name.
func (s *server) database(t *testing.T, driver, source string) string {
	t.Helper()
	db, err := sql.Open(driver, source)
	require.NoError(t, err)
	defer db.Close()
	s.databases++
	name := fmt.Sprint("kith", s.databases)
	_, err = db.Exec("create database " + name)
	require.NoError(t, err)
	return name
}

// beginPostgres starts PostgreSQL.
func beginPostgres(s *server) error {
	p, err := pgserver.New(&s.log, "fsync=off", "deadlock_timeout=100ms")
	if err != nil {
		return err
	}
	s.dir, s.stop = p.Dir, func() {
		p.Stop(syscall.SIGQUIT)
		_ = p.Remove() // of the temporary directory
	}
	if err := p.Init(); err != nil {
		return err
	}
	return p.Start()
}

// beginMaria starts MariaDB, which has MySQL's dialect.
func beginMaria(s *server) error {
	install, err1 := exec.LookPath("mariadb-install-db")
	serve, err2 := exec.LookPath("mariadbd")
	who, err3 := user.Current()
	if err := errors.Join(err1, err2, err3); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "kith-sf") // short: the path of a socket is
	if err != nil {
		return err
	}
	at, data := filepath.Join(dir, "s"), filepath.Join(dir, "data")
	cmd := exec.Command(serve, "--no-defaults", "--datadir="+data, "--socket="+at, "--skip-networking",
		"--user="+who.Username, "--innodb-flush-log-at-trx-commit=0", "--pid-file="+filepath.Join(dir, "pid"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.Stdout, cmd.Stderr = &s.log, &s.log
	s.dir, s.stop = dir, func() {
		if cmd.Process != nil {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
		_ = os.RemoveAll(dir)
	}
	out, err := exec.Command(install, "--no-defaults", "--datadir="+data, "--auth-root-authentication-method=normal",
		"--user="+who.Username, "--skip-test-db").CombinedOutput()
	if err != nil {
		return fmt.Errorf("mariadb-install-db: %w: %s", err, out)
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	db, err := sql.Open("mysql", "root@unix("+at+")/")
	if err != nil {
		return err
	}
	defer db.Close()
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if err := db.Ping(); err == nil || time.Now().After(end) {
			return err
		}
	}
}
