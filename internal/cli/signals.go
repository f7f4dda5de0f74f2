// Signals: what a process that runs a node for long is told by them (OPS-2).

package cli

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// Interruptible returns the context of a command, which ends with the first SIGINT or SIGTERM. After stop the next one
// ends the process.
func Interruptible() (ctx context.Context, stop context.CancelFunc) {
	return signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
}

// Signals are those of a process that runs a node: SIGINT and SIGTERM have it leave, SIGHUP has it reload, and SIGPIPE,
// which a write to a log that nobody reads any more brings, does nothing.
type Signals struct {
	told   context.Context
	leave  context.CancelFunc
	reload chan struct{}
	again  func(os.Signal)
	tty    bool // there was a terminal
}

// Heed takes the signals of this process from here on, for good. again is told of each SIGTERM that comes when the
// process has been told to leave, which changes nothing, and of a SIGINT then, which is to end it at once.
func Heed(again func(os.Signal)) *Signals {
	s := &Signals{reload: make(chan struct{}, 1), again: again, tty: hasTty()}
	s.told, s.leave = context.WithCancel(context.Background())
	// Notified, it does not end the process when a write to stdout or stderr meets a closed pipe.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	come := make(chan os.Signal, 16)
	signal.Notify(come, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	go func() {
		for sig := range come {
			s.heed(sig)
		}
	}()
	return s
}

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
