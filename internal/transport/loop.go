// Loop: one gnet event loop with a queue of tasks, dirty links that leave at the end of a read pass, and a wake-up that
// does not allocate.

package transport

import (
	"fmt"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/panjf2000/gnet/v2"

	"github.com/kith-io/kith/wire"
)

// Bounds of a loop.
const (
	maxLoopTasks = 1 << 16   // tasks queued by Execute
	loopRounds   = 4         // rounds of tasks before sockets are looked at again
	readBuffer   = 128 << 10 // bytes read at once; one buffer per loop
	turnBytes    = 1 << 20   // bytes that one link writes before others have their turn

	// yieldBelow is the size of a read pass up to which the loop lets goroutines run that the pass has woken, before it
	// ends: what they send meanwhile leaves at once, with neither ring nor poll in between. With one request under way
	// on one core that nearly halves its time (docs/transport.md); a busy pass would only be held up.
	yieldBelow = 4 << 10
)

// Task is something to be run on a loop. A *Link is one.
type Task interface {
	// Run runs on the loop's goroutine and must not block.
	Run(on *Loop)
}

// Loop is one event loop of the transport. Methods are safe for concurrent use.
type Loop struct {
	t      *Transport
	index  int
	lane   wire.Lane
	client *gnet.Client
	bell   bell
	// enrol hands a connection to the loop; opened has run when it returns nil. Tests play the loop with it.
	enrol func(nc net.Conn, s socket) error

	mu      sync.Mutex
	pending []Task
	busy    bool // a pass is running and will look at pending before it ends
	woken   bool // a ring is on its way
	closed  bool
	ringing atomic.Int32 // goroutines about to ring; the bell is closed when none is

	// Owned by the loop's goroutine.
	depth   int
	running []Task
	dirty   []*Link
	company []*Link // that wait for it
	passed  bool    // Data was called in this pass

	passBytes int // delivered by Data in this pass

	plain []byte // plaintext of one read; made by the first TLS connection

	polled   polled
	parking  parking
	listener listener
	listened time.Time // when a data loop last listened for the control loop

	stats loopStats
}

// Index numbers the data loops from 0.
func (l *Loop) Index() int { return l.index }

// Execute queues t to run on the loop. ErrClosed after Close, ErrLoopFull over the bound.
func (l *Loop) Execute(t Task) error { return l.queue(t, maxLoopTasks) }

// post queues t without the bound: for the transport's own tasks, of which there is a fixed number per peer.
func (l *Loop) post(t Task) { _ = l.queue(t, int(^uint(0)>>1)) }

func (l *Loop) queue(t Task, bound int) error {
	l.mu.Lock()
	if l.closed || len(l.pending) >= bound {
		closed := l.closed
		l.mu.Unlock()
		if closed {
			return ErrClosed
		}
		return ErrLoopFull
	}
	l.pending = append(l.pending, t)
	ring := !l.busy && !l.woken
	if ring {
		l.woken = true
		l.ringing.Add(1)
	}
	l.mu.Unlock()
	if ring {
		l.bell.ring()
		l.ringing.Add(-1)
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
		l.t.up.PassDone(l)
		if l.passBytes <= yieldBelow {
			runtime.Gosched()
		}
		l.passBytes = 0
	}
	for round := 0; ; round++ {
		l.runDirty()
		if l.poll() {
			round = 0 // nothing is to be read
		}
		if !l.takeTasks(round >= loopRounds) {
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

// between runs links that have something to send, in the middle of a read pass: what was made of the first part of a
// long read is on its way while the rest is worked off, so that both ends are busy. Other tasks wait for the end.
func (l *Loop) between() {
	l.runDirty()
	l.mu.Lock()
	kept := l.pending[:0]
	for _, t := range l.pending {
		if link, ok := t.(*Link); ok {
			l.dirty = append(l.dirty, link)
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
	ring := len(l.pending) > 0 && !l.woken && !l.closed
	if ring {
		l.woken = true
	}
	l.mu.Unlock()
	if ring {
		l.bell.ring() // on the loop itself, which closes the bell only after it has ended
	}
	return false
}

// start runs the gnet engine of the loop.
func (l *Loop) start() error {
	l.openParking()
	client, err := gnet.NewClient(&engine{loop: l},
		gnet.WithNumEventLoop(1), gnet.WithReadBufferCap(readBuffer), gnet.WithTCPNoDelay(gnet.TCPNoDelay),
		gnet.WithLogger(gnetLogger{l.t.cfg.Logger}))
	if err != nil {
		l.closeParking()
		return fmt.Errorf("transport: event loop: %w", err)
	}
	l.client = client
	l.enrol = func(nc net.Conn, s socket) error {
		l.hold()
		defer l.release()
		_, err := client.EnrollContext(nc, s)
		return err
	}
	if err := client.Start(); err != nil {
		l.closeParking()
		l.client = nil
		return fmt.Errorf("transport: event loop: %w", err)
	}
	if err := l.bell.hang(l); err != nil {
		_ = client.Stop()
		l.closeParking()
		l.client = nil
		return fmt.Errorf("transport: wake-up of event loop: %w", err)
	}
	return nil
}

// stop ends the loop and closes its connections. Nothing may be enrolled into it any more, and it must not be called
// on a loop.
func (l *Loop) stop() {
	l.mu.Lock()
	started := l.client != nil && !l.closed
	l.closed = true
	l.mu.Unlock()
	if !started {
		return
	}
	l.unpark()
	if err := l.client.Stop(); err != nil {
		l.t.cfg.Logger.Warn("event loop ended with an error", "loop", l.index, "lane", l.lane, "error", err)
	}
	for l.ringing.Load() != 0 {
		runtime.Gosched()
	}
	l.bell.close()
	l.closeParking()
}

// socket is the state behind one enrolled connection. All methods run on the loop.
type socket interface {
	opened(c gnet.Conn) gnet.Action
	traffic(c gnet.Conn) gnet.Action
	closed(err error)
}

// engine adapts a loop to gnet.
type engine struct {
	gnet.BuiltinEventEngine
	loop *Loop
}

// OnOpen runs when a connection was enrolled.
func (e *engine) OnOpen(c gnet.Conn) ([]byte, gnet.Action) {
	s := c.Context().(socket)
	e.loop.begin()
	e.loop.watch(c)
	action := s.opened(c)
	e.loop.end()
	return nil, action
}

// OnTraffic runs when bytes were read: one read pass.
func (e *engine) OnTraffic(c gnet.Conn) gnet.Action {
	s := c.Context().(socket)
	e.loop.begin()
	action := s.traffic(c)
	e.loop.end()
	if e.loop.lane == wire.LaneData {
		e.loop.listen()
	} else if action == gnet.None {
		e.loop.park()
	}
	return action
}

// OnClose runs once when a connection is gone.
func (e *engine) OnClose(c gnet.Conn, err error) gnet.Action {
	s := c.Context().(socket)
	e.loop.begin()
	e.loop.unwatch(c)
	s.closed(err)
	e.loop.end()
	return gnet.None
}
