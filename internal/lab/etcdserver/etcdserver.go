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
	"syscall"
	"time"

	"github.com/kith-io/kith/internal/base/port"
)

// Server is an etcd server of a test's or a command's own. Its methods are called one at a time.
type Server struct {
	Process
	// Dir is the server's folder. It is temporary.
	Dir string
	// Program is the etcd that the next Start runs, Env what it has in its environment beside what this process has.
	Program string
	Env     []string

	client, peer string
	settings     []string
	log          io.Writer
	release      []func()
}

// New makes the folder of a server that writes its log to a writer and has settings as flags of etcd. It fails where
// none is installed: exec.ErrNotFound. Remove it.
func New(log io.Writer, settings ...string) (s *Server, err error) {
	if _, err := exec.LookPath("etcd"); err != nil {
		return nil, err
	}
	s = &Server{Program: "etcd", settings: settings, log: log}
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
func (s *Server) Start() error { return s.Process.Start("etcd", startTime, s.launch, s.healthy) }

// launch starts the process.
func (s *Server) launch() error {
	peer := "http://" + s.peer
	cmd := exec.Command(s.Program, append([]string{"--name=one", "--data-dir=" + s.Data(),
		"--listen-client-urls=" + s.URL(), "--advertise-client-urls=" + s.URL(), "--listen-peer-urls=" + peer,
		"--initial-advertise-peer-urls=" + peer, "--initial-cluster=one=" + peer}, s.settings...)...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = s.Dir, s.log, s.log
	cmd.Env = append(append(os.Environ(), "ETCD_UNSUPPORTED_ARCH=arm64"), s.Env...)
	return s.Launch(cmd)
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
