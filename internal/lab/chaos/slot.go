// A slot: the place of one node, with the process that runs there now, its log, and the supervisor that starts it
// again.

package chaos

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/kith-io/kith/internal/cli"
	"github.com/kith-io/kith/internal/cli/fleet"
)

// life is one process of a slot.
type life struct {
	slot   int
	sender uint32
	admin  string // where its admin interface is, if it has one
	child  *cli.Child
	log    *logFile
	began  time.Duration

	mu     sync.Mutex
	last   status
	at     time.Duration // of last
	asked  bool          // a status call is under way
	end    time.Duration // when the process was seen ended; zero: it runs
	over   bool          // it ended before the run did
	code   int           // with which exit code, as exitOf has it
	shards []uint32
}

// name is how a slot is called.
func name(slot int) string { return fleet.Name(slot) }

// logFile takes the stderr of a process and looks out for crashes of it.
type logFile struct {
	f *os.File

	mu    sync.Mutex
	part  []byte // of a line
	crash string // the first line that speaks of one
}

// crashes begin a line of a Go program that dies of its own mistake.
var crashes = []string{"panic: ", "fatal error: ", "SIGSEGV", "unexpected fault address", "[signal "}

// linePart bounds what is kept of a line that has not ended.
const linePart = 4 << 10

// Write never fails: a child must not stop for its log.
func (l *logFile) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, _ = l.f.Write(b)
	l.part = append(l.part, b...)
	for {
		line, rest, found := bytes.Cut(l.part, []byte("\n"))
		if !found {
			break
		}
		l.look(string(line))
		l.part = append(l.part[:0], rest...)
	}
	if len(l.part) > linePart {
		l.part = l.part[:0]
	}
	return len(b), nil
}

func (l *logFile) look(line string) {
	for _, c := range crashes {
		if l.crash == "" && bytes.HasPrefix([]byte(line), []byte(c)) {
			l.crash = line
		}
	}
}

// crashed returns the line that reports a crash, or nothing.
func (l *logFile) crashed() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.crash
}

// nodeSlot is the place of one node.
type nodeSlot struct {
	h      *harness
	number int
	addr   string // by which the others know it

	mu   sync.Mutex
	now  *life
	rest time.Duration // what the supervisor waits before the next start
}

// current returns the process that runs in the slot, nil between two.
func (s *nodeSlot) current() *life {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

// The supervisor's pauses: at least, and at most when process after process ends soon.
const (
	restLeast = 200 * time.Millisecond
	restMost  = 5 * time.Second
	restSoon  = 10 * time.Second // a process that lived longer was a good one
)

// supervise keeps a process running in the slot until ctx ends, and waits for its end then.
func (s *nodeSlot) supervise(ctx context.Context) {
	back := restLeast
	for ctx.Err() == nil {
		l, err := s.start(ctx)
		if err != nil && ctx.Err() == nil {
			s.h.line.printf("%s does not start: %v", name(s.number), err)
		}
		var lived time.Duration
		if l != nil {
			s.await(ctx, l)
			lived = s.h.clock.Now() - l.began
		}
		s.mu.Lock()
		s.now = nil
		rest := s.rest
		s.rest = 0
		s.mu.Unlock()
		if lived > restSoon {
			back = restLeast
		}
		if rest == 0 || rest >= restLeast { // else it is to be there at once
			rest = max(rest, back)
		}
		cli.Pause(ctx, rest)
		back = min(2*back, restMost)
	}
}

// start starts a process and its node.
func (s *nodeSlot) start(ctx context.Context) (*life, error) {
	listen, advertise, err := s.h.net.place(s.number)
	if err != nil {
		return nil, err
	}
	l := &life{slot: s.number, sender: s.h.nextSender(), began: s.h.clock.Now()}
	path := filepath.Join(s.h.dir, fmt.Sprintf("%s-%d.log", name(s.number), l.sender))
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	l.log = &logFile{f: f}
	o := s.h.cfg.Child
	o.Name, o.Stderr = name(s.number), l.log
	s.h.net.wrap(s.number, &o)
	if l.child, err = cli.Start(o); err != nil {
		return nil, err
	}
	var r startReply
	err = l.child.CallWithin(ctx, startTime, "start", startArgs{Node: name(s.number), Cluster: "chaos", Listen: listen,
		Advertise: advertise, Seeds: s.h.seeds, Insecure: true, Sender: l.sender, Dir: s.h.dir, Store: s.h.sock,
		Zero: s.h.zero, Load: s.h.cfg.Load, Proof: s.h.cfg.Proof, Unproven: s.h.cfg.Unproven, Trace: s.h.cfg.Trace,
		Patience: s.h.cfg.Patience, StableAfter: s.h.cfg.StableAfter, Admin: s.h.cfg.Admin,
		Session: s.h.leases.of(s.number), Tenure: s.h.cfg.Sessions.Tenure}, &r)
	if err != nil {
		l.child.Kill()
		return nil, err
	}
	l.shards, l.admin = r.Shards, r.Admin
	if err := s.h.book.open(l); err != nil {
		l.child.Kill()
		return nil, err
	}
	s.mu.Lock()
	s.now, s.addr = l, advertise
	s.mu.Unlock()
	s.h.line.printf("%s starts: process %d, sender %d", name(s.number), l.child.PID(), l.sender)
	return l, nil
}

// startTime bounds the start of a process; a stopped one takes what it takes.
const startTime = 60 * time.Second

// await waits until the process has ended, and tells how. When ctx ends it is killed.
func (s *nodeSlot) await(ctx context.Context, l *life) {
	select {
	case <-l.child.Done():
	case <-ctx.Done():
		l.child.Kill()
	}
	code := exitOf(l.child.Err())
	l.mu.Lock()
	l.end, l.over, l.code = s.h.clock.Now(), ctx.Err() == nil, code
	l.mu.Unlock()
	_ = l.log.f.Close()
	if ctx.Err() == nil {
		s.h.ended(l, code)
	}
}

// exitOf says how a process ended: its exit code, or -1 for a signal.
func exitOf(err error) int {
	if err == nil {
		return codeLeft
	}
	if x := (*exec.ExitError)(nil); errors.As(err, &x) {
		return x.ExitCode()
	}
	return codeFailed
}

// signal sends a signal to the process of a life, which may have ended.
func (l *life) signal(sig syscall.Signal) { _ = l.child.Process().Signal(sig) }

// running reports whether the process runs.
func (l *life) running() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.end == 0
}

// endedAfter reports whether the process has ended after a moment, so soon that it may have taken with it what was sent
// then. The end of the run is no such end.
func (l *life) endedAfter(at time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.over && l.end >= at && l.end < at+endTime
}

// told returns the last reported status and when it came; ok is false before the first.
func (l *life) told() (s status, at time.Duration, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last, l.at, l.at > 0
}

// statusTime bounds one call for the status, orderTime one that has a process do something.
const (
	statusTime = time.Second
	orderTime  = 5 * time.Second
)

// ask asks for the status, unless the last call has not ended: a process that stands still is asked once.
func (l *life) ask(ctx context.Context, c cli.Clock, gone func()) {
	l.mu.Lock()
	busy := l.asked
	l.asked = true
	l.mu.Unlock()
	if busy {
		gone()
		return
	}
	go func() {
		defer gone()
		var s status
		err := l.child.CallWithin(ctx, statusTime, "status", cli.None{}, &s)
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.asked = false; err == nil {
			l.last, l.at = s, c.Now()
		}
	}()
}
