// A slot: the place of one node, with its disk, the process that runs there now, and what starts it again.

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/kith-io/kith/internal/cli"
	"github.com/kith-io/kith/internal/cli/fleet"
)

// life is one process of a slot.
type life struct {
	child *cli.Child
	log   *os.File
	startReply
}

// slot is the place of one node.
type slot struct {
	h      *harness
	number int
	lives  int
	disks  int // that have left for good

	mu      sync.Mutex
	now     *life
	rest    time.Duration // what is waited before the next start
	between func()        // what is done between two processes
	damaged bool          // its disk may not open
	at      int           // its address, of two: a new disk may come to another one
	forms   bool          // its next process forms the cluster, for no other one runs
	held    sync.Mutex    // held while it must not start
	before  status        // sums of what earlier processes have counted
	last    status        // what this one has
	counts  *life
}

// The pauses before a process is started again, and bounds.
const (
	restLeast = 200 * time.Millisecond
	startTime = 60 * time.Second
	closeTime = 20 * time.Second
)

func (s *slot) name() string { return fleet.Name(s.number) }

func (s *slot) disk() string { return filepath.Join(s.h.dir, s.name()) }

// place returns which of the proxies is that of the node.
func (s *slot) place() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.number + s.at*nodes
}

// current returns the process that runs in the slot, nil between two.
func (s *slot) current() *life {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

// door returns where the node answers callers, nothing between two.
func (s *slot) door() string {
	if l := s.current(); l != nil {
		return l.Door
	}
	return ""
}

// counted keeps the counts of a process, which begin anew with the next one.
func (s *slot) counted(l *life, x *status) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.counts != l {
		for _, p := range []struct{ to, of *status }{{&s.before, &s.last}} {
			p.to.Siblings.Conflicted += p.of.Siblings.Conflicted
			p.to.Siblings.Repairs += p.of.Siblings.Repairs
			p.to.Siblings.Exchanged += p.of.Siblings.Exchanged
			p.to.Registers.Repairs += p.of.Registers.Repairs
			p.to.Registers.Exchanged += p.of.Registers.Exchanged
			p.to.Registers.Entries += p.of.Registers.Entries
			p.to.Registers.Copied += p.of.Registers.Copied
		}
		s.counts = l
	}
	s.last = *x
}

// start starts a process and its node.
func (s *slot) start(ctx context.Context) error {
	s.lives++
	f, err := os.Create(filepath.Join(s.h.dir, fmt.Sprintf("%s-%d.log", s.name(), s.lives)))
	if err != nil {
		return err
	}
	o := s.h.cfg.Child
	o.Name, o.Stderr = s.name(), f
	l := &life{log: f}
	if l.child, err = cli.Start(o); err != nil {
		return err
	}
	a := startArgs{Listen: s.h.net.Back(s.place()), Advertise: s.h.net.Addr(s.place()).String(), Dir: s.disk(),
		Break: s.h.cfg.Break, Zero: s.h.zero, Founders: nodes, HandOn: s.handsOn()}
	s.mu.Lock()
	forms := s.forms || s.number == 0 && s.lives == 1
	s.forms = false
	s.mu.Unlock()
	for _, other := range s.h.slots {
		if other != s && !forms {
			a.Seeds = append(a.Seeds, s.h.net.Addr(other.place()).String())
		}
	}
	if err = l.child.CallWithin(ctx, startTime, "start", a, &l.startReply); err != nil {
		l.child.Kill()
		return errors.Join(fmt.Errorf("%w: %s", err, short(l.child.Said())), f.Close())
	}
	s.mu.Lock()
	s.now = l
	s.mu.Unlock()
	s.h.line("%s has started: process %d", s.name(), l.child.PID())
	return nil
}

// supervise starts the process again when it has ended, until ctx ends; then it ends the process.
func (s *slot) supervise(ctx context.Context) {
	for first := true; ; first = false {
		if l := s.current(); l != nil {
			s.await(ctx, l)
		}
		s.mu.Lock()
		rest, between := max(s.rest, restLeast), s.between
		s.rest, s.between = 0, nil
		s.mu.Unlock()
		if between != nil {
			between()
		}
		if !first && !cli.Pause(ctx, rest) {
			return
		}
		s.held.Lock()
		err := s.start(ctx)
		s.held.Unlock()
		if err != nil && ctx.Err() == nil {
			s.failed(err)
		}
		if ctx.Err() != nil && s.current() == nil {
			return
		}
	}
}

// short is the beginning of why a process has crashed; its log has all.
func short(said string) string {
	if at := strings.Index(said, "panic: "); at >= 0 {
		said = said[at:]
	}
	return cli.OneLine(said[:min(len(said), 200)])
}

// full reports whether the disk has no room now.
func (s *slot) full() bool {
	_, err := os.Stat(s.disk() + fullMark)
	return err == nil
}

// failed says what it is that a process does not start, or crashes: a full disk or a damaged one, which is emptied, as
// an operator does; or a fault of the product.
func (s *slot) failed(err error) {
	s.mu.Lock()
	damaged := s.damaged
	s.damaged = false
	s.mu.Unlock()
	switch {
	case s.full():
		s.h.line("%s has no room: %v", s.name(), err)
	case damaged:
		s.h.line("%s has a damaged disk, which is emptied: %v", s.name(), err)
		_ = os.RemoveAll(s.disk())
		s.h.mu.Lock()
		s.h.replaced++
		s.h.mu.Unlock()
	default:
		s.h.line("VIOLATION: %s: %v", s.name(), err)
		s.h.mu.Lock()
		s.h.crashed++
		s.h.mu.Unlock()
	}
}

// await waits until a process has ended, or ends it when ctx ends.
func (s *slot) await(ctx context.Context, l *life) {
	select {
	case <-l.child.Done():
	case <-ctx.Done():
		_ = l.child.Close(closeTime)
	}
	s.mu.Lock()
	s.now = nil
	s.mu.Unlock()
	_ = l.log.Close()
	code, x := 0, (*exec.ExitError)(nil)
	if errors.As(l.child.Err(), &x) {
		code = x.ExitCode() // -1: a signal
	}
	if code == 1 || code == 2 || strings.Contains(l.child.Said(), "\nfatal error: ") {
		s.failed(fmt.Errorf("crashed: %s", short(l.child.Said())))
	} else if ctx.Err() == nil {
		s.h.line("%s has ended, code %d", s.name(), code)
	}
}
