//go:build linux

// A server: in a temporary directory, at a socket, as a user that is not root.

package pgserver

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Server is a PostgreSQL server of a test's or a command's own. Its methods are called one at a time, but for Running.
type Server struct {
	// Dir is the server's folder, where its socket is. It is temporary, and its path short: that of a socket has to be.
	Dir string

	bin      string
	as       *syscall.SysProcAttr
	settings []string
	log      io.Writer

	mu    sync.Mutex
	cmd   *exec.Cmd
	ended chan struct{}
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

// New makes the folder of a server that writes its log to a writer and has settings as name=value. It fails where none
// is installed. Remove it.
func New(log io.Writer, settings ...string) (s *Server, err error) {
	s = &Server{as: &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}, settings: settings, log: log}
	if s.bin, err = binaries(); err != nil {
		return nil, err
	}
	if s.Dir, err = os.MkdirTemp("", "kith-pg"); err != nil {
		return nil, err
	}
	if os.Getuid() == 0 {
		err = s.lowly()
	}
	if err == nil {
		err = os.Mkdir(s.Disk(), 0o755)
	}
	if err != nil {
		return nil, errors.Join(err, s.Remove())
	}
	return s, nil
}

// lowly makes the server run as another user: it refuses to be root's.
func (s *Server) lowly() error {
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err1 := strconv.Atoi(u.Uid)
		gid, err2 := strconv.Atoi(u.Gid)
		s.as.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		return errors.Join(err1, err2, os.Chown(s.Dir, uid, gid))
	}
	return errors.New("neither a user postgres nor nobody")
}

// Disk is the folder in which Init puts the data: a file system of its own may be mounted there before.
func (s *Server) Disk() string { return filepath.Join(s.Dir, "disk") }

func (s *Server) data() string { return filepath.Join(s.Disk(), "data") }

// Init makes a database.
func (s *Server) Init() error {
	if c := s.as.Credential; c != nil {
		if err := os.Chown(s.Disk(), int(c.Uid), int(c.Gid)); err != nil {
			return err
		}
	}
	initdb := s.command("initdb", "-D", s.data(), "-U", "kith", "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync")
	if out, err := initdb.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w: %s", err, out)
	}
	return nil
}

// URL is where it listens, as pgx takes it.
func (s *Server) URL() string { return "host=" + s.Dir + " user=kith dbname=postgres" }

func (s *Server) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(s.bin, name), args...)
	cmd.Dir, cmd.SysProcAttr = s.Dir, s.as
	return cmd
}

// startTime bounds a start: one behind a crash works off the log first.
const startTime = time.Minute

// Start starts it if it does not run, and returns when it answers. One that ends is started again for a while: behind a
// crash, processes of the one before may still be about to end.
func (s *Server) Start() error {
	for end := time.Now().Add(startTime); ; {
		if !s.Running() {
			if err := s.launch(); err != nil {
				return err
			}
		}
		for s.Running() {
			if s.command("pg_isready", "-q", "-h", s.Dir, "-U", "kith", "-d", "postgres").Run() == nil {
				return nil
			}
			if time.Now().After(end) {
				s.Stop(syscall.SIGQUIT)
				return errors.New("PostgreSQL does not answer: see its log")
			}
			time.Sleep(20 * time.Millisecond)
		}
		if time.Now().After(end) {
			return errors.New("PostgreSQL ends when it is started: see its log")
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// launch starts the process.
func (s *Server) launch() error {
	args := []string{"-D", s.data(), "-k", s.Dir, "-c", "listen_addresses="}
	for _, x := range s.settings {
		args = append(args, "-c", x)
	}
	cmd, ended := s.command("postgres", args...), make(chan struct{})
	cmd.Stdout, cmd.Stderr = s.log, s.log
	cmd.WaitDelay = time.Second // processes of it that end later keep its log open
	if err := cmd.Start(); err != nil {
		return err
	}
	go func() {
		_ = cmd.Wait() // the log says why
		close(ended)
	}()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cmd, s.ended = cmd, ended
	return nil
}

// Running reports whether its process runs.
func (s *Server) Running() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended == nil {
		return false
	}
	select {
	case <-s.ended:
		return false
	default:
		return true
	}
}

// Stop ends it, if it runs, and waits: SIGINT in order, SIGQUIT and SIGKILL as a crash does.
func (s *Server) Stop(how syscall.Signal) {
	s.mu.Lock()
	cmd, ended := s.cmd, s.ended
	s.mu.Unlock()
	if cmd != nil {
		_ = cmd.Process.Signal(how) // it may have ended by itself
		<-ended
	}
}

// Pause has all its processes stand still, or go on.
func (s *Server) Pause(on bool) error {
	s.mu.Lock()
	cmd := s.cmd
	s.mu.Unlock()
	if cmd == nil {
		return os.ErrProcessDone
	}
	how := syscall.SIGCONT
	if on {
		how = syscall.SIGSTOP
	}
	err := cmd.Process.Signal(how) // it starts no further ones from now on
	children, bad := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", cmd.Process.Pid, cmd.Process.Pid))
	for _, child := range strings.Fields(string(children)) {
		pid, wrong := strconv.Atoi(child)
		if err = errors.Join(err, wrong); wrong == nil {
			_ = syscall.Kill(pid, how) // it may have ended
		}
	}
	return errors.Join(err, bad)
}

// Remove removes the folder of one that does not run.
func (s *Server) Remove() error { return os.RemoveAll(s.Dir) }
