//go:build linux

// The process of a server, which does not outlive the one that started it.

package etcdserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
)

// Process is the process of a server that comes and goes. The zero value runs nothing. Its methods are called one at a
// time.
type Process struct {
	cmd   *exec.Cmd
	ended chan struct{}
}

// Launch starts a command, which the kernel kills when this process ends. No other one of this Process runs.
func (p *Process) Launch(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	started, ended := make(chan error), make(chan struct{})
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
	p.cmd, p.ended = cmd, ended
	return nil
}

// errEnds and errMute say why a server does not start.
var (
	errEnds = errors.New("it ends when it is started: see its log")
	errMute = errors.New("it does not answer: see its log")
)

// Start launches it unless it runs, and returns when it is ready. One that is not within the time is killed. The error
// begins with its name.
func (p *Process) Start(name string, within time.Duration, launch func() error,
	ready func(context.Context) bool) error {
	if !p.Running() {
		if err := launch(); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	for p.Running() {
		if ready(ctx) {
			return nil
		}
		if ctx.Err() != nil {
			p.Stop(syscall.SIGKILL)
			return fmt.Errorf("%s: %w", name, errMute)
		}
		time.Sleep(20 * time.Millisecond)
	}
	return fmt.Errorf("%s: %w", name, errEnds)
}

// Running reports whether it runs.
func (p *Process) Running() bool {
	if p.ended == nil {
		return false
	}
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// Signal sends it a signal: SIGSTOP makes it stand still until SIGCONT, and returns when it does.
func (p *Process) Signal(how syscall.Signal) error {
	if p.cmd == nil {
		return os.ErrProcessDone
	}
	err := p.cmd.Process.Signal(how)
	for how == syscall.SIGSTOP && err == nil && p.Running() && !p.still() {
		time.Sleep(time.Millisecond)
	}
	return err
}

// still reports whether all its threads are stopped: the kernel stops each when it runs next.
func (p *Process) still() bool {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", p.cmd.Process.Pid))
	for _, name := range threads {
		text, gone := os.ReadFile(name)
		if at := bytes.LastIndexByte(text, ')'); gone == nil && (at+2 >= len(text) || text[at+2] != 'T') {
			return false
		}
	}
	return err == nil
}

// Stop ends it, if it runs, and waits: SIGTERM in order, SIGKILL as a crash does.
func (p *Process) Stop(how syscall.Signal) {
	if p.Signal(how) == nil || p.ended != nil {
		<-p.ended
	}
}
