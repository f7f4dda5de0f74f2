// Loop: one gnet event loop with a queue of tasks, writers that have their turn at the end of a read pass, and a
// wake-up that does not allocate.

package loop

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/panjf2000/gnet/v2"

	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

// Bounds of a loop.
const (
	maxTasks   = 1 << 16   // tasks queued by Execute
	rounds     = 4         // rounds of tasks before sockets are looked at again
	ReadBuffer = 128 << 10 // bytes read at once; one buffer per loop

	// yieldBelow is the size of a read pass up to which the loop lets goroutines run that the pass has woken, before it
	// ends: what they send meanwhile leaves at once, with neither ring nor poll in between. With one request under way
	// on one core that nearly halves its time (docs/contributing/transport.md); a busy pass would only be held up.
	yieldBelow = 4 << 10
)

// Errors of a loop that takes no task.
var (
	ErrClosed = fmt.Errorf("event loop closed: %w", route.ErrStopped)
	ErrFull   = errors.New("event loop: too many tasks are queued")
)

// Task is something to be run on a loop.
type Task interface {
	// Run runs on the loop's goroutine and must not block.
	Run(on *Loop)
}

// Writer is a Task that writes out what has gathered, and may do so in the middle of a read pass.
type Writer interface {
	Task
	// Writes does nothing: it says what the task is.
	Writes()
}

// Config is what a loop is made of. Only Logger and, for a loop with connections that say Passes, PassDone must be set.
type Config struct {
	Index    int           // of a data loop, from 0
	Lane     wire.Lane     // of the connections that live on it; the control loop parks, data loops may poll
	PollFor  time.Duration // it looks for work for so long before it sleeps; zero: it does not; at most MaxPollFor
	Control  *Loop         // that a data loop listens for while it is busy; nil: none
	PassDone func(*Loop)   // ends a read pass in which Passes was called, before writers have their turn
	Logger   *slog.Logger
	Enrol    func(nc net.Conn, s Socket) error // how it takes a connection; nil: gnet's way. Tests play the loop with it.
}

// Loop is one event loop. Methods are safe for concurrent use, but for those that say "on the loop".
type Loop struct {
	cfg    Config
	client *gnet.Client
	waker  waker

	mu      sync.Mutex
	pending []Task
	busy    bool // a pass is running and will look at pending before it ends
	woken   bool // a ring is on its way
	closed  bool
	waking  atomic.Int32 // goroutines about to ring; the waker is closed when none is

	// Owned by the loop's goroutine.
	depth      int
	running    []Task
	dirty      []Task
	coalescing []Task // that wait for more to gather
	again      []Task // that go on when sockets have been looked at
	passed     bool   // Data was called in this pass

	passBytes int // delivered by Data in this pass

	plain []byte // plaintext of one read; made by the first TLS connection

	polled     polled
	pollerWait pollerWait
	listener   listener
	listened   time.Time // when a data loop last listened for the control loop

	stats counts
}

// New returns a loop that has not started: what is queued to it waits.
func New(cfg Config) *Loop {
	return &Loop{cfg: cfg, waker: waker{fd: -1}, polled: polled{every: cfg.PollFor}}
}

// Index numbers the data loops from 0.
func (l *Loop) Index() int { return l.cfg.Index }

// Running reports whether the loop was started, and not stopped.
func (l *Loop) Running() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.client != nil && !l.closed
}

// Plain returns where the plaintext of one read gathers: a buffer of the loop, nil until somebody makes it. On the
// loop.
func (l *Loop) Plain() *[]byte { return &l.plain }

// AtEnd runs a task at the end of the read pass. On the loop.
func (l *Loop) AtEnd(t Task) { l.dirty = append(l.dirty, t) }

// Execute queues t to run on the loop. ErrClosed after Stop, ErrFull when 65,536 tasks are queued.
func (l *Loop) Execute(t Task) error { return l.queue(t, maxTasks) }

// Again lets a task that runs go on later: sockets are looked at first. On the loop.
func Again(t Task, l *Loop) { l.again = append(l.again, t) }

// Post queues t without that bound: for tasks of which there is a fixed number per peer. After Stop it does nothing.
func (l *Loop) Post(t Task) { _ = l.queue(t, int(^uint(0)>>1)) }

func (l *Loop) queue(t Task, bound int) error {
	l.mu.Lock()
	if l.closed || len(l.pending) >= bound {
		closed := l.closed
		l.mu.Unlock()
		if closed {
			return ErrClosed
		}
		return ErrFull
	}
	l.pending = append(l.pending, t)
	ring := !l.busy && !l.woken
	if ring {
		l.woken = true
		l.waking.Add(1)
	}
	l.mu.Unlock()
	if ring {
		l.waker.wake()
		l.waking.Add(-1)
		l.stats.wakes.Add(1)
	}
	return nil
}

// begin and end bracket everything that runs on the loop. Only the outermost end works off tasks and dirty links.
func (l *Loop) begin() {
	if l.depth++; l.depth == 1 {
		l.mu.Lock()
		l.busy = true
		l.mu.Unlock()
	}
}

func (l *Loop) end() {
	if l.depth > 1 {
		l.depth--
		return
	}
	if l.passed {
		l.passed = false
		l.cfg.PassDone(l)
		if l.passBytes <= yieldBelow {
			runtime.Gosched()
		}
		l.passBytes = 0
	}
	for round := 0; ; round++ {
		l.runDirty()
		if len(l.again) == 0 && l.poll() {
			round = 0 // nothing is to be read
		}
		if !l.takeTasks(round >= rounds) {
			if l.rest() {
				continue
			}
			break
		}
		for i, t := range l.running {
			t.Run(l)
			l.running[i] = nil
		}
	}
	l.depth--
}

// Between runs writers that have something to send, in the middle of a read pass: what was made of the first part of a
// long read is on its way while the rest is worked off, so that both ends are busy. Other tasks wait for the end. On
// the loop.
func (l *Loop) Between() {
	l.runDirty()
	l.mu.Lock()
	kept := l.pending[:0]
	for _, t := range l.pending {
		if _, ok := t.(Writer); ok {
			l.dirty = append(l.dirty, t)
		} else {
			kept = append(kept, t)
		}
	}
	clear(l.pending[len(kept):])
	l.pending = kept
	l.mu.Unlock()
	l.runDirty()
}

func (l *Loop) runDirty() {
	for i := 0; i < len(l.dirty); i++ {
		l.dirty[i].Run(l)
	}
	clear(l.dirty)
	l.dirty = l.dirty[:0]
}

// takeTasks moves the queued tasks to running. It returns false, and the loop is no longer busy, when there is none or
// when the loop should look at its sockets first; then a ring brings it back.
func (l *Loop) takeTasks(enough bool) bool {
	l.mu.Lock()
	if len(l.pending) > 0 && !enough {
		l.pending, l.running = l.running[:0], l.pending
		l.mu.Unlock()
		return true
	}
	l.busy = false
	l.pending = append(l.pending, l.again...)
	clear(l.again)
	l.again = l.again[:0]
	ring := len(l.pending) > 0 && !l.woken && !l.closed
	if ring {
		l.woken = true
	}
	l.mu.Unlock()
	if ring {
		l.waker.wake() // on the loop itself, which closes the waker only after it has ended
	}
	return false
}

// Start runs the loop. An error says that the system did not let it; the loop is of no use then.
func (l *Loop) Start() error {
	if err := supported(); err != nil {
		return fmt.Errorf("transport: event loop: %w", err)
	}
	l.openPollerWait()
	client, err := gnet.NewClient(l.Handler(),
		gnet.WithNumEventLoop(1), gnet.WithReadBufferCap(ReadBuffer), gnet.WithTCPNoDelay(gnet.TCPNoDelay),
		gnet.WithLogger(gnetLogger{l.cfg.Logger}))
	if err != nil {
		l.closePollerWait()
		return fmt.Errorf("transport: event loop: %w", err)
	}
	l.client = client
	if err := client.Start(); err != nil {
		l.closePollerWait()
		l.client = nil
		return fmt.Errorf("transport: event loop: %w", err)
	}
	if err := l.waker.enrol(l); err != nil {
		_ = client.Stop()
		l.closePollerWait()
		l.client = nil
		return fmt.Errorf("transport: wake-up of event loop: %w", err)
	}
	return nil
}

// Enrol hands a connection to the loop, which owns its socket from then on; Opened has run when it returns nil.
func (l *Loop) Enrol(nc net.Conn, s Socket) error {
	if l.cfg.Enrol != nil {
		return l.cfg.Enrol(nc, s)
	}
	l.hold()
	defer l.release()
	_, err := l.client.EnrollContext(nc, s)
	return err
}

// Stop ends the loop and closes its connections; it does nothing to one that has not started. Nothing may be enrolled
// into it any more, and it must not be called on a loop.
func (l *Loop) Stop() {
	if l.close() {
		l.stop()
	}
}

// StopWithin is Stop that waits at most for patience, and reports whether the loop has ended. One that stands in an
// upcall does when that returns.
func (l *Loop) StopWithin(patience time.Duration) bool {
	if !l.close() {
		return true
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		l.stop()
	}()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-ended:
		return true
	case <-timer.C:
		return false
	}
}

// close makes the loop take nothing any more, and reports whether it is to be stopped.
func (l *Loop) close() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	started := l.client != nil && !l.closed
	l.closed = true
	return started
}

func (l *Loop) stop() {
	l.endPollerWait()
	if err := l.client.Stop(); err != nil {
		l.cfg.Logger.Warn("event loop ended with an error", "loop", l.cfg.Index, "lane", l.cfg.Lane, "error", err)
	}
	for l.waking.Load() != 0 {
		runtime.Gosched()
	}
	l.waker.close()
	l.closePollerWait()
}

// Socket is the state behind one enrolled connection. All methods run on the loop; Opened and Traffic close the
// connection by what they return.
type Socket interface {
	Opened(c gnet.Conn) gnet.Action  // the loop has taken it
	Traffic(c gnet.Conn) gnet.Action // something was read
	Closed(err error)                // it is gone; once
}

// Handler is how gnet reaches the loop; a test that plays gnet reaches it by this too.
func (l *Loop) Handler() gnet.EventHandler { return &engine{loop: l} }

// engine adapts a loop to gnet.
type engine struct {
	gnet.BuiltinEventEngine
	loop *Loop
}

// OnOpen runs when a connection was enrolled.
func (e *engine) OnOpen(c gnet.Conn) ([]byte, gnet.Action) {
	s := c.Context().(Socket)
	e.loop.begin()
	e.loop.watch(c)
	action := s.Opened(c)
	e.loop.end()
	return nil, action
}

// OnTraffic runs when bytes were read: one read pass.
func (e *engine) OnTraffic(c gnet.Conn) gnet.Action {
	s := c.Context().(Socket)
	e.loop.begin()
	action := s.Traffic(c)
	e.loop.end()
	if e.loop.cfg.Lane == wire.LaneData {
		e.loop.listen()
	} else if action == gnet.None {
		e.loop.waitInPoller()
	}
	return action
}

// OnClose runs once when a connection is gone.
func (e *engine) OnClose(c gnet.Conn, err error) gnet.Action {
	s := c.Context().(Socket)
	e.loop.begin()
	e.loop.unwatch(c)
	s.Closed(err)
	e.loop.end()
	return gnet.None
}
