//go:build linux

// A server: a cluster of one member in a temporary directory, on loopback.

package etcdserver

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"github.com/kith-io/kith/internal/base/port"
)

// Server is an etcd server of a test's or a command's own. Its methods are called one at a time.
type Server struct {
	// Dir is the server's folder. It is temporary.
	Dir string

	client, peer string
	settings     []string
	log          io.Writer
	release      []func()
	cmd          *exec.Cmd
	ended        chan struct{}
}

// New makes the folder of a server that writes its log to a writer and has settings as flags of etcd. It fails where
// none is installed: exec.ErrNotFound. Remove it.
func New(log io.Writer, settings ...string) (s *Server, err error) {
	if _, err := exec.LookPath("etcd"); err != nil {
		return nil, err
	}
	s = &Server{settings: settings, log: log}
	for _, to := range []*string{&s.client, &s.peer} {
		at, release, err := port.Hold()
		if err != nil {
			return nil, errors.Join(err, s.Remove())
		}
		*to, s.release = at, append(s.release, release)
	}
	if s.Dir, err = os.MkdirTemp("", "kith-etcd"); err == nil {
		err = os.Mkdir(s.Disk(), 0o700)
	}
	if err != nil {
		return nil, errors.Join(err, s.Remove())
	}
	return s, nil
}

// Disk is the folder in which its data lie: a file system of its own may be mounted there before the first Start.
func (s *Server) Disk() string { return filepath.Join(s.Dir, "disk") }

// Data is the folder of its data below Disk.
func (s *Server) Data() string { return filepath.Join(s.Disk(), "data") }

// URL is where it listens for clients.
func (s *Server) URL() string { return "http://" + s.client }

// startTime bounds a start, also on a busy machine.
const startTime = 2 * time.Minute

// Start starts it if it does not run, and returns when it answers, with its data of before.
func (s *Server) Start() error {
	if !s.Running() {
		if err := s.launch(); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTime)
	defer cancel()
	for s.Running() {
		if s.healthy(ctx) {
			return nil
		}
		if ctx.Err() != nil {
			s.Stop(syscall.SIGKILL)
			return errors.New("etcd does not answer: see its log")
		}
		time.Sleep(20 * time.Millisecond)
	}
	return errors.New("etcd ends when it is started: see its log")
}

// launch starts the process.
func (s *Server) launch() error {
	peer := "http://" + s.peer
	cmd, ended := exec.Command("etcd", append([]string{"--name=one", "--data-dir=" + s.Data(),
		"--listen-client-urls=" + s.URL(), "--advertise-client-urls=" + s.URL(), "--listen-peer-urls=" + peer,
		"--initial-advertise-peer-urls=" + peer, "--initial-cluster=one=" + peer}, s.settings...)...), make(chan struct{})
	cmd.Dir, cmd.Stdout, cmd.Stderr = s.Dir, s.log, s.log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.Env = append(os.Environ(), "ETCD_UNSUPPORTED_ARCH=arm64")
	started := make(chan error)
	go func() { // Pdeathsig comes with the end of the thread that started it: one that is kept until then
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		if started <- err; err == nil {
			_ = cmd.Wait() // the log says why
			close(ended)
		}
	}()
	if err := <-started; err != nil {
		return err
	}
	s.cmd, s.ended = cmd, ended
	return nil
}

// healthy reports whether it serves reads and writes.
func (s *Server) healthy(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	ask, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL()+"/health", nil)
	if err != nil {
		return false
	}
	answer, err := http.DefaultClient.Do(ask)
	if err != nil {
		return false
	}
	_ = answer.Body.Close()
	return answer.StatusCode == http.StatusOK
}

// Running reports whether its process runs.
func (s *Server) Running() bool {
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

// Signal sends its process a signal: SIGSTOP has it stand still until SIGCONT.
func (s *Server) Signal(how syscall.Signal) error {
	if s.cmd == nil {
		return os.ErrProcessDone
	}
	return s.cmd.Process.Signal(how)
}

// Stop ends it, if it runs, and waits: SIGTERM in order, SIGKILL as a crash does.
func (s *Server) Stop(how syscall.Signal) {
	if s.Signal(how) == nil || s.ended != nil {
		<-s.ended
	}
}

// Remove ends it, if it runs, and removes its folder.
func (s *Server) Remove() error {
	s.Stop(syscall.SIGKILL)
	for _, release := range s.release {
		release()
	}
	s.release = nil
	if s.Dir == "" {
		return nil
	}
	return os.RemoveAll(s.Dir)
}
