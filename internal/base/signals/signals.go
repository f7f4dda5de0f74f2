// Package signals is what the system tells a process that runs a node: to leave, to reload, to end at once (OPS-2).
package signals

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// Signals are those of a process that runs a node: SIGINT and SIGTERM have it leave, SIGHUP has it reload, and SIGPIPE,
// which a write to a log that nobody reads any more brings, does nothing.
type Signals struct {
	told   context.Context
	leave  context.CancelFunc
	reload chan struct{}
	again  func(os.Signal)
	tty    bool // there was a terminal
	come   chan os.Signal
	over   chan struct{}
	once   sync.Once
}

// Heed takes the signals of this process from here on, until Stop. again gets each SIGTERM that comes when the process
// already leaves, which changes nothing, and a SIGINT then, which is to end it at once.
func Heed(again func(os.Signal)) *Signals {
	s := &Signals{reload: make(chan struct{}, 1), again: again, tty: hasTty(), come: make(chan os.Signal, 16),
		over: make(chan struct{})}
	s.told, s.leave = context.WithCancel(context.Background())
	Outlive(syscall.SIGPIPE)
	signal.Notify(s.come, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	go func() {
		for {
			select {
			case sig := <-s.come:
				s.heed(sig)
			case <-s.over:
				return
			}
		}
	}()
	return s
}

// Outlive keeps these signals from ending this process, for good: a SIGPIPE, when a write to stdout or stderr meets a
// closed pipe, or the SIGTERM that an orchestrator sends again while the process ends already.
func Outlive(of ...os.Signal) { signal.Notify(make(chan os.Signal, 1), of...) }

func (s *Signals) heed(sig os.Signal) {
	if sig == syscall.SIGHUP && (!s.tty || hasTty()) {
		select {
		case s.reload <- struct{}{}:
		default:
		}
		return
	}
	if s.told.Err() == nil {
		s.leave()
		return
	}
	s.again(sig)
}

// Stop heeds no signal any more: they do what they did before, but for SIGPIPE.
func (s *Signals) Stop() {
	s.once.Do(func() {
		signal.Stop(s.come)
		close(s.over)
	})
}

// Told ends with the first SIGINT or SIGTERM, and with the SIGHUP of a terminal that is gone.
func (s *Signals) Told() context.Context { return s.told }

// Reload gets a value for one SIGHUP or several.
func (s *Signals) Reload() <-chan struct{} { return s.reload }

// hasTty reports whether the process has a terminal that it can talk to.
func hasTty() bool {
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		return false
	}
	_ = tty.Close()
	return true
}
