// Tests of a loop that runs: tasks, connections, and the order of what runs in a pass.

package loop

import (
	"log/slog"
	"net"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/panjf2000/gnet/v2"
	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

// echo is a socket that passes on what it reads.
type echo struct {
	on     *Loop
	got    chan string
	closed chan error
}

func (e *echo) Opened(gnet.Conn) gnet.Action { return gnet.None }
func (e *echo) Closed(err error)             { e.closed <- err }

func (e *echo) Traffic(c gnet.Conn) gnet.Action {
	b, _ := c.Next(-1)
	e.on.Read(len(b))
	e.on.Delivered(1)
	e.on.Passes(len(b))
	e.got <- string(b)
	return gnet.None
}

// running starts a loop that ends with the test.
func running(t *testing.T, cfg Config) *Loop {
	cfg.Logger = slog.New(slog.DiscardHandler)
	l := New(cfg)
	require.NoError(t, l.Start())
	t.Cleanup(l.Stop)
	return l
}

// enrolled gives a loop one end of a connection, and returns the other one.
func enrolled(t *testing.T, l *Loop) (*echo, net.Conn) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer ln.Close()
	theirs, err := net.Dial("tcp", ln.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() { theirs.Close() })
	ours, err := ln.Accept()
	require.NoError(t, err)
	e := &echo{on: l, got: make(chan string, 10), closed: make(chan error, 1)}
	require.NoError(t, l.Enrol(ours, e))
	return e, theirs
}

// A loop of either lane runs tasks, hears of its connections, tells the end of each pass, watches a connection for as
// long as it is there, and takes nothing once it has stopped.
func TestLoopRuns(t *testing.T) {
	for _, lane := range []wire.Lane{wire.LaneControl, wire.LaneData} {
		passes := make(chan *Loop, 10)
		l := running(t, Config{Lane: lane, PollFor: 10 * time.Microsecond, PassDone: func(l *Loop) { passes <- l }})
		require.True(t, l.Running())
		ran := make(chan int, 10)
		require.NoError(t, l.Execute(taskFunc(func() { ran <- 1 })))
		require.Equal(t, 1, want(t, ran))

		e, theirs := enrolled(t, l)
		_, err := theirs.Write([]byte("hello"))
		require.NoError(t, err)
		require.Equal(t, "hello", want(t, e.got))
		require.Equal(t, l, want(t, passes))
		s := l.Stats()
		require.Equal(t, []uint64{5, 1, 1, 1}, []uint64{s.BytesIn, s.Frames, s.Batches, s.Reads})
		watched := func() int {
			require.NoError(t, l.Execute(taskFunc(func() { ran <- len(l.polled.fds) })))
			return want(t, ran)
		}
		require.Equal(t, 2, watched(), "the waker and the connection")
		require.NoError(t, theirs.Close())
		want(t, e.closed)
		require.Equal(t, 1, watched())

		l.Stop()
		require.False(t, l.Running())
		require.ErrorIs(t, l.Execute(taskFunc(nil)), ErrClosed)
		require.ErrorIs(t, ErrClosed, route.ErrStopped)
		l.Post(taskFunc(nil))
		l.Stop()
	}
}

// writes is a Writer that notes its turn.
type writes struct{ turn func() }

func (w writes) Run(*Loop) { w.turn() }
func (w writes) Writes()   {}

// Between the pieces of a long read only writers have their turn, in the order in which they came; other tasks wait for
// the end of the pass (CARD-3).
func TestOnlyWritersRunBetween(t *testing.T) {
	l := New(Config{})
	var order []string
	note := func(s string) func() { return func() { order = append(order, s) } }
	l.begin()
	l.Post(taskFunc(note("task")))
	l.Post(writes{note("queued")})
	l.AtEnd(writes{note("at end")})
	l.Between()
	require.Equal(t, []string{"at end", "queued"}, order)
	l.AtEnd(writes{note("again")})
	l.end()
	require.Equal(t, []string{"at end", "queued", "again", "task"}, order)
}

// The queue is bounded for callers of Execute, and not for what a peer has a fixed number of.
func TestTasksAreBounded(t *testing.T) {
	l := New(Config{})
	for range maxTasks {
		require.NoError(t, l.Execute(taskFunc(nil)))
	}
	require.ErrorIs(t, l.Execute(taskFunc(nil)), ErrFull)
	l.Post(taskFunc(nil))
	require.Len(t, l.pending, maxTasks+1)
}

// Waking a loop allocates nothing (CARD-4).
func TestWakingAllocatesNothing(t *testing.T) {
	l := running(t, Config{Lane: wire.LaneData})
	done := make(chan struct{}, 1)
	task := Task(writes{func() { done <- struct{}{} }})
	for range 100 { // the queues have grown
		l.Post(task)
		<-done
	}
	runtime.GC()
	require.Less(t, testing.AllocsPerRun(500, func() {
		l.Post(task)
		<-done
	}), 0.5)
}

// sockets returns a connected pair of sockets that do not block.
func sockets(t *testing.T) (ours, theirs int) {
	t.Helper()
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _, _ = syscall.Close(fds[0]), syscall.Close(fds[1]) })
	return fds[0], fds[1]
}
