// A slot: the place of one node, with the process that runs there now, its log, and what starts it again.

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
	"syscall"
	"time"

	"github.com/kith-io/kith/internal/cli"
	"github.com/kith-io/kith/internal/cli/fleet"
)

// life is one process of a slot.
type life struct {
	child *cli.Child
	log   *os.File
	began time.Duration
	startReply
}

// slot is the place of one node.
type slot struct {
	h      *harness
	number int

	mu      sync.Mutex
	now     *life
	addr    string        // of the last process
	rest    time.Duration // what is waited before the next start
	between func()        // what is done before it
	at      int           // its address, of two: a new disk may come to another one
	disks   int           // that have left for good
	filled  bool          // its disk was full since the last start
}

// The pauses before a process is started again, and the bound of a start.
const (
	restLeast = 200 * time.Millisecond
	startTime = 90 * time.Second
	closeTime = 20 * time.Second
)

func (s *slot) name() string { return fleet.Name(s.number) }

// current returns the process that runs in the slot, nil between two.
func (s *slot) current() *life {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

// place returns which of the proxies is that of the node, where the store is the nodes' disks.
func (s *slot) place() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.number + s.at*s.h.cfg.Nodes
}

// node is the name of the node: another one comes with another disk.
func (s *slot) node() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.disks == 0 {
		return s.name()
	}
	return fmt.Sprintf("%s-%d", s.name(), s.disks)
}

// seeds returns the addresses of the other nodes, as they were last.
func (s *slot) seeds() (list []string) {
	for _, o := range s.h.slots {
		o.mu.Lock()
		if o != s && o.addr != "" {
			list = append(list, o.addr)
		}
		o.mu.Unlock()
	}
	return list
}

// start starts a process and its node.
func (s *slot) start(ctx context.Context) error {
	s.h.mu.Lock()
	s.h.senders++
	sender := s.h.senders
	s.h.mu.Unlock()
	f, err := os.Create(filepath.Join(s.h.dir, fmt.Sprintf("%s-%d.log", s.name(), sender)))
	if err != nil {
		return err
	}
	o := s.h.cfg.Child
	o.Name, o.Stderr = s.name(), f
	l := &life{log: f, began: s.h.clock.Now()}
	if l.child, err = cli.Start(o); err != nil {
		return err
	}
	source := s.h.back.source()
	if s.h.cfg.Engine == quorumEngine {
		source = s.h.diskOf(s)
	}
	if err := s.comes(); err != nil {
		l.child.Kill()
		return errors.Join(err, f.Close())
	}
	listen, advertise := s.listen()
	s.mu.Lock()
	if _, err := os.Stat(s.h.diskOf(s) + fullMark); err != nil {
		s.filled = false
	}
	s.mu.Unlock()
	err = l.child.CallWithin(ctx, startTime, "start", startArgs{Name: s.node(), Sender: sender, Seeds: s.seeds(),
		Listen: listen, Advertise: advertise, Nodes: s.h.cfg.Nodes, Dir: s.h.dir, Engine: s.h.cfg.Engine, Source: source, Break: s.h.cfg.Break, Shards: shards,
		StableAfter: s.h.cfg.StableAfter, Idle: s.h.cfg.Idle, Zero: s.h.zero}, &l.startReply)
	if err != nil {
		l.child.Kill()
		s.gone()
		return errors.Join(err, f.Close())
	}
	s.mu.Lock()
	s.now, s.addr = l, l.Addr
	s.mu.Unlock()
	s.h.line("%s has started: process %d, number %d", s.name(), l.child.PID(), sender)
	return nil
}

// shards of each type.
const shards = 32

// supervise starts the process again when it has ended, until ctx ends; then it has the process close its node.
func (s *slot) supervise(ctx context.Context) {
	for {
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
		if !cli.Pause(ctx, rest) {
			return
		}
		if err := s.start(ctx); err != nil && ctx.Err() == nil {
			s.h.line("%s does not start: %v", s.name(), err)
		}
	}
}

// await waits until a process has ended, or closes it when ctx ends.
func (s *slot) await(ctx context.Context, l *life) {
	select {
	case <-l.child.Done():
	case <-ctx.Done():
		_ = l.child.Close(closeTime)
	}
	s.gone()
	s.mu.Lock()
	s.now = nil
	full := s.filled && strings.Contains(l.child.Said(), syscall.ENOSPC.Error())
	s.mu.Unlock()
	_ = l.log.Close()
	code, x := 0, (*exec.ExitError)(nil)
	if errors.As(l.child.Err(), &x) {
		code = x.ExitCode() // -1: a signal
	}
	crash := code == 1 || code == 2 || strings.Contains(l.child.Said(), "\nfatal error: ")
	if ctx.Err() == nil || crash {
		s.h.line("%s has ended, code %d", s.name(), code)
	}
	if crash && !full {
		s.h.mu.Lock()
		s.h.crashed++
		s.h.mu.Unlock()
		s.h.line("VIOLATION: %s has crashed: %s", s.name(), cli.OneLine(l.child.Said()))
	}
	if code == codeNeeded {
		s.h.needs("VIOLATION: %s has left, and its disk is needed still", s.name())
	}
}
