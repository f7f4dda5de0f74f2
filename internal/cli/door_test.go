// Tests of children, the last line and progress. The test binary itself is the child.

package cli

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

const childEnv = "KITH_DOOR_CHILD=1"

func TestMain(m *testing.M) {
	if os.Getenv("KITH_DOOR_CHILD") != "" {
		serveTest()
		return
	}
	os.Exit(m.Run())
}

type echo struct{ Text string }

type place struct {
	PID, Procs int
	CPUs       []int
}

func serveTest() {
	ops := Ops{
		"echo": Op(func(_ context.Context, a echo) (echo, error) { return a, nil }),
		"fail": Op(func(context.Context, None) (None, error) { return None{}, errors.New("told to fail") }),
		"place": Op(func(context.Context, None) (place, error) {
			cpus, err := CPUs()
			return place{os.Getpid(), runtime.GOMAXPROCS(0), cpus}, err
		}),
		"exit": Op(func(context.Context, None) (None, error) {
			os.Stderr.WriteString("last words\n")
			os.Exit(7)
			return None{}, nil
		}),
		"garbage": Op(func(context.Context, None) (None, error) { os.Stdout.WriteString("not json\n"); return None{}, nil }),
		"hang":    Op(func(ctx context.Context, _ None) (None, error) { <-ctx.Done(); return None{}, ctx.Err() }),
		"polled": Op(func(context.Context, None) (bool, error) {
			flags, err := unix.FcntlInt(os.Stdin.Fd(), unix.F_GETFL, 0)
			return flags&unix.O_NONBLOCK != 0, err
		}),
		"stuck": Op(func(context.Context, None) (None, error) { select {} }),
	}
	if err := Serve(os.Stdin, os.Stdout, ops); err != nil {
		os.Exit(3)
	}
}

func start(t *testing.T, cpus ...int) *Child {
	t.Helper()
	c, err := Start(Options{Name: "child", Env: []string{childEnv}, CPUs: cpus})
	require.NoError(t, err)
	t.Cleanup(c.Kill)
	return c
}

func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

func TestChildAnswersCalls(t *testing.T) {
	c, ctx := start(t), within(t, 20*time.Second)
	var got echo
	for _, text := range []string{"", "one", strings.Repeat("long", 100_000)} {
		require.NoError(t, c.Call(ctx, "echo", echo{text}, &got))
		require.Equal(t, text, got.Text)
	}
	require.ErrorContains(t, c.Call(ctx, "fail", None{}, nil), "child: fail: told to fail")
	require.ErrorContains(t, c.Call(ctx, "nothing", None{}, nil), `unknown op "nothing"`)
	require.ErrorContains(t, c.Call(ctx, "echo", map[string]int{"Other": 1}, nil), "Other")
	require.NoError(t, c.Close(10*time.Second))
	require.ErrorIs(t, c.Call(ctx, "echo", echo{}, nil), ErrChildGone)
}

// A call under way does not hold up another one, ends with the parent's pipe, and a stuck one holds up nothing.
func TestChildEndsWithItsPipe(t *testing.T) {
	for _, op := range []string{"hang", "stuck"} {
		c, ctx := start(t), within(t, 20*time.Second)
		errs := make(chan error, 1)
		go func() { errs <- c.Call(ctx, op, None{}, nil) }()
		require.NoError(t, c.Call(ctx, "echo", echo{}, nil))
		require.NoError(t, c.Close(10*time.Second), op)
		require.Error(t, <-errs)
	}
}

func TestChildThatExitsGivesItsLastWords(t *testing.T) {
	c := start(t)
	err := c.Call(within(t, 20*time.Second), "exit", None{}, nil)
	require.ErrorIs(t, err, ErrChildGone)
	require.ErrorContains(t, err, "exit status 7")
	require.ErrorContains(t, err, "last words")
	<-c.Done()
	require.ErrorContains(t, c.Close(time.Second), "exit status 7")
}

func TestChildThatTalksNonsenseIsEnded(t *testing.T) {
	c := start(t)
	_ = c.Call(within(t, 20*time.Second), "garbage", None{}, nil)
	select {
	case <-c.Done():
	case <-time.After(time.Minute):
		t.Fatal("still running")
	}
	require.ErrorContains(t, c.Err(), "not the protocol's")
}

func TestCallEndsWithItsContext(t *testing.T) {
	c := start(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	require.ErrorIs(t, c.Call(ctx, "hang", None{}, nil), context.Canceled)
	require.Empty(t, c.waiting)
}

// Ctrl-C is for the parent alone.
func TestChildIgnoresInterrupt(t *testing.T) {
	c, ctx := start(t), within(t, 20*time.Second)
	require.NoError(t, c.Call(ctx, "echo", echo{}, nil))
	require.NoError(t, c.Process().Signal(syscall.SIGINT))
	require.NoError(t, c.Call(ctx, "echo", echo{}, nil))
	group, err := syscall.Getpgid(c.PID())
	require.NoError(t, err)
	require.NotEqual(t, syscall.Getpgrp(), group)
}

func TestPinnedChildSeesItsCoreOnly(t *testing.T) {
	if !CanPin {
		t.Skip("not on this system")
	}
	cpus, err := CPUs()
	require.NoError(t, err)
	last := cpus[len(cpus)-1]
	var got place
	require.NoError(t, start(t, last).Call(within(t, 20*time.Second), "place", None{}, &got))
	require.Equal(t, []int{last}, got.CPUs)
	require.Equal(t, 1, got.Procs)
	require.NoError(t, start(t).Call(within(t, 20*time.Second), "place", None{}, &got))
	require.Equal(t, cpus, got.CPUs, "the parent's own affinity is untouched")
	_, err = Start(Options{Name: "nowhere", Env: []string{childEnv}, CPUs: []int{1000}})
	require.Error(t, err)
}

func TestStartOfWhatIsNotThere(t *testing.T) {
	_, err := Start(Options{Name: "ghost", Path: "/nowhere/ghost"})
	require.ErrorContains(t, err, "start ghost")
}

func TestServeRefusesNonsense(t *testing.T) {
	var out bytes.Buffer
	require.Error(t, Serve(strings.NewReader("{}x\n"), &out, Ops{}))
	require.NoError(t, Serve(strings.NewReader(""), &out, Ops{}))
	require.Empty(t, out.String())
}

func TestLastLine(t *testing.T) {
	var b bytes.Buffer
	b.WriteString("a table\n")
	require.NoError(t, Line(&b, "bench", map[string]int{"rate": 3}))
	require.Equal(t, "a table\nbench {\"rate\":3}\n", b.String())
	var got map[string]int
	require.NoError(t, ParseLine(b.Bytes(), "bench", &got))
	require.Equal(t, 3, got["rate"])
	require.ErrorIs(t, ParseLine(b.Bytes(), "summary", &got), ErrNoLine)
	require.ErrorIs(t, ParseLine(nil, "bench", &got), ErrNoLine)
	require.Error(t, ParseLine([]byte("bench {"), "bench", &got))
	require.Error(t, Line(&b, "bench", make(chan int)))
}

func TestProgressIsOffWithoutATerminal(t *testing.T) {
	f, err := os.CreateTemp(t.TempDir(), "")
	require.NoError(t, err)
	defer f.Close()
	off := NewProgress(f, false)
	require.False(t, off.On())
	off.Printf("unseen")
	on := NewProgress(f, true)
	require.True(t, on.On())
	on.Printf("seen %d", 1)
	got, err := os.ReadFile(f.Name())
	require.NoError(t, err)
	require.Equal(t, "seen 1\n", string(got))
}

func TestTailKeepsTheEnd(t *testing.T) {
	var to bytes.Buffer
	x := &tail{to: &to}
	require.Empty(t, x.String())
	for range 1000 {
		_, _ = x.Write([]byte("0123456789"))
	}
	_, _ = x.Write([]byte("end"))
	require.Equal(t, 10_003, to.Len())
	require.Len(t, x.end, tailBytes)
	require.True(t, strings.HasSuffix(x.String(), "9end"))
}

// Reading calls holds up nothing else in the process: a pipe that blocks, as stdin of a child is, is polled (CARD-3).
func TestServePollsItsPipe(t *testing.T) {
	var fds [2]int
	require.NoError(t, syscall.Pipe(fds[:]))
	in, w := os.NewFile(uintptr(fds[0]), "in"), os.NewFile(uintptr(fds[1]), "out")
	defer w.Close()
	require.ErrorIs(t, in.SetReadDeadline(time.Time{}), os.ErrNoDeadline, "it blocks")
	polled := pollable(in)
	require.NoError(t, polled.(*os.File).SetReadDeadline(time.Now().Add(-time.Second)))
	_, err := polled.Read(make([]byte, 1))
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	require.Same(t, polled, pollable(polled), "once is enough")

	var is bool
	require.NoError(t, start(t).Call(within(t, 20*time.Second), "polled", None{}, &is))
	require.True(t, is, "a child does so with its own")

	// Nothing but a pipe is changed: a file, a terminal, a reader of no file.
	null, err := os.Open(os.DevNull)
	require.NoError(t, err)
	defer null.Close()
	require.Equal(t, io.Reader(null), pollable(null))
	text := strings.NewReader("")
	require.Equal(t, io.Reader(text), pollable(text))
}
