// Tests of the queue in front of loggers: nobody waits, nothing is lost in ordinary runs, and what is lost is reported
// (OPS-1).

package logs

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// gate is a writer that stands still while it is closed.
type gate struct {
	mu   sync.Mutex
	text bytes.Buffer
	shut chan struct{} // closed: it writes
	in   chan struct{} // gets one when a write has begun
}

func newGate() *gate { return &gate{shut: make(chan struct{}), in: make(chan struct{}, 1)} }

func (g *gate) Write(p []byte) (int, error) {
	select {
	case g.in <- struct{}{}:
	default:
	}
	<-g.shut
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.text.Write(p)
}

func (g *gate) lines() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return strings.Split(strings.TrimSuffix(g.text.String(), "\n"), "\n")
}

// bare is text without times.
func bare(g *gate) slog.Handler {
	return slog.NewTextHandler(g, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey || a.Key == "since" {
			return slog.Attr{}
		}
		return a
	}})
}

// Records and writes come in their order, all of them, and Flush waits for them.
func TestNothingIsLost(t *testing.T) {
	g := newGate()
	close(g.shut)
	log, q := Behind(slog.New(bare(g)))
	out := q.Writer(g)
	var want []string
	for i := range MaxWaiting / 4 {
		log.Info("record", "n", i)
		fmt.Fprintln(out, "written", i)
		want = append(want, "level=INFO msg=record n="+strconv.Itoa(i), "written "+strconv.Itoa(i))
	}
	require.True(t, q.Flush(time.Minute))
	require.Equal(t, want, g.lines())
	require.Zero(t, q.Dropped())
	require.Eventually(t, func() bool { return q.Stalled() == 0 }, time.Minute, time.Millisecond)
	require.True(t, q.Flush(0), "nothing waits")
}

// A logger that stands still holds nobody up; what found no room is counted, and reported behind what came before it.
func TestAStuckLoggerHoldsNobodyUp(t *testing.T) {
	g := newGate()
	log, q := Behind(slog.New(bare(g)))
	for i := range MaxWaiting + 10 {
		log.Info("record", "n", i)
	}
	<-g.in
	require.EqualValues(t, 10, q.Dropped())
	require.False(t, q.Flush(time.Millisecond))
	require.Positive(t, q.Stalled())
	close(g.shut)
	require.True(t, q.Flush(time.Minute))
	log.Info("after")
	require.True(t, q.Flush(time.Minute))
	lines := g.lines()
	require.Len(t, lines, MaxWaiting+2)
	require.Equal(t, "level=INFO msg=record n="+strconv.Itoa(MaxWaiting-1), lines[MaxWaiting-1])
	require.Equal(t, `level=WARN msg="log records dropped: the logger stood still" dropped=10`, lines[MaxWaiting])
	require.Equal(t, "level=INFO msg=after", lines[MaxWaiting+1])
}

// What waits for a writer is bounded in bytes, too.
func TestWritesAreBoundedInBytes(t *testing.T) {
	g := newGate()
	q := New(bare(g))
	out := q.Writer(g)
	for range 5 {
		n, err := out.Write(make([]byte, MaxWaitingBytes/4))
		require.NoError(t, err)
		require.Equal(t, MaxWaitingBytes/4, n)
	}
	require.EqualValues(t, 1, q.Dropped())
	close(g.shut)
	require.True(t, q.Flush(time.Minute))
	_, _ = out.Write(make([]byte, MaxWaitingBytes+1))
	require.True(t, q.Flush(time.Minute))
	require.EqualValues(t, 1, q.Dropped(), "one that is larger goes alone")
}

// stuck is a handler: every method of it stands still.
type stuck chan struct{}

func (s stuck) Enabled(context.Context, slog.Level) bool  { <-s; return true }
func (s stuck) Handle(context.Context, slog.Record) error { <-s; return nil }
func (s stuck) WithAttrs([]slog.Attr) (h slog.Handler)    { <-s; return s }
func (s stuck) WithGroup(string) (h slog.Handler)         { <-s; return s }
func (s stuck) String() string                            { panic("a name that panics") }
func (s stuck) LogValue() slog.Value                      { panic("a value that panics") }

// A handler of which every method stands still, Enabled too, holds nobody up.
func TestEveryMethodMayStandStill(t *testing.T) {
	s := make(stuck)
	q := New(s)
	log := q.Logger().With("a", 1).WithGroup("g").With("b", 2)
	require.True(t, log.Enabled(t.Context(), slog.LevelDebug), "not known")
	log.Debug("text", "value", s)
	require.True(t, log.Enabled(t.Context(), slog.LevelDebug), "still not known")
	require.False(t, q.Flush(time.Millisecond))
	close(s)
	require.True(t, q.Flush(time.Minute))
}

// A level that is off costs one record at first, and counts again soon after it was switched on; one that nobody has a
// name for is judged where it is carried to.
func TestLevels(t *testing.T) {
	g := newGate()
	close(g.shut)
	var least slog.LevelVar
	log, q := Behind(slog.New(slog.NewTextHandler(g, &slog.HandlerOptions{Level: &least})))
	log.Debug("never")
	log.Log(t.Context(), slog.LevelInfo-1, "never")
	require.True(t, q.Flush(time.Minute))
	require.False(t, log.Enabled(t.Context(), slog.LevelDebug))
	require.True(t, log.Enabled(t.Context(), slog.LevelInfo-1))
	least.Set(slog.LevelDebug)
	require.Eventually(t, func() bool { return log.Enabled(t.Context(), slog.LevelDebug) }, time.Minute, time.Millisecond)
	log.Debug("now")
	require.True(t, q.Flush(time.Minute))
	least.Set(slog.LevelError)
	log.Debug("no more")
	require.True(t, q.Flush(time.Minute))
	require.Contains(t, g.text.String(), "msg=now")
	require.NotContains(t, g.text.String(), "never")
	require.False(t, log.Enabled(t.Context(), slog.LevelDebug))
}

// value computes itself.
type value struct{ n *atomic.Int64 }

func (v value) LogValue() slog.Value { return slog.Int64Value(v.n.Load()) }

// name has a name.
type name int

func (n name) String() string { return "name" + strconv.Itoa(int(n)) }

// What a record says is what was so when it was logged, by name, whatever becomes of what it was made of; an error
// stays one, and the context keeps its values and does not end.
func TestRecordsSayWhatWasSo(t *testing.T) {
	var n atomic.Int64
	n.Store(1)
	shut := make(chan struct{})
	var text bytes.Buffer
	cause := errors.New("why")
	type key struct{}
	h := &asked{Handler: slog.NewJSONHandler(&text, nil), ask: func(ctx context.Context, r slog.Record) {
		<-shut
		require.NoError(t, ctx.Err())
		require.Equal(t, "span", ctx.Value(key{}))
		r.Attrs(func(a slog.Attr) bool {
			if a.Key == "error" {
				require.ErrorIs(t, a.Value.Any().(error), cause)
			}
			return true
		})
	}}
	log, q := Behind(slog.New(h))
	list := []string{"a"}
	ctx, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, "span"))
	log.With("with", name(1)).WithGroup("g").InfoContext(ctx, "text", "value", value{&n}, "name", name(2), "list", list,
		"error", fmt.Errorf("so: %w", cause), slog.Group("in", "name", name(3), "value", value{&n}), "bad", stuck(nil))
	cancel()
	n.Store(2)
	list[0] = "b"
	close(shut)
	require.True(t, q.Flush(time.Minute))
	var said map[string]any
	require.NoError(t, json.Unmarshal(text.Bytes(), &said), text.String())
	require.Equal(t, "name1", said["with"])
	g := said["g"].(map[string]any)
	require.Contains(t, fmt.Sprint(g["bad"]), "panic")
	delete(g, "bad")
	require.Equal(t, map[string]any{"value": 1.0, "name": "name2", "list": []any{"a"}, "error": "so: why",
		"in": map[string]any{"name": "name3", "value": 1.0}}, g)
}

// asked is a handler that asks first.
type asked struct {
	slog.Handler
	ask func(context.Context, slog.Record)
}

func (a *asked) Handle(ctx context.Context, r slog.Record) error {
	a.ask(ctx, r)
	return a.Handler.Handle(ctx, r)
}
func (a *asked) WithAttrs(l []slog.Attr) slog.Handler { return &asked{a.Handler.WithAttrs(l), a.ask} }
func (a *asked) WithGroup(g string) slog.Handler      { return &asked{a.Handler.WithGroup(g), a.ask} }

// A logger that panics loses what it was given and nothing else; one that logs itself is no endless wait.
func TestALoggerThatPanicsOrLogs(t *testing.T) {
	var text bytes.Buffer
	var log *slog.Logger
	h := &asked{Handler: slog.NewTextHandler(&text, nil), ask: func(_ context.Context, r slog.Record) {
		switch r.Message {
		case "bad":
			panic("a bad logger")
		case "outer":
			log.Info("inner")
		}
	}}
	log, q := Behind(slog.New(h))
	log.Info("bad")
	log.Info("outer")
	require.True(t, q.Flush(time.Minute))
	require.True(t, q.Flush(time.Minute))
	require.Contains(t, text.String(), "msg=outer")
	require.Contains(t, text.String(), "msg=inner")
	require.EqualValues(t, 1, q.Dropped())
}

// One queue is enough, and nil is silent.
func TestBehind(t *testing.T) {
	log, q := Behind(slog.New(slog.DiscardHandler))
	again, same := Behind(log.With("a", 1))
	require.Same(t, q, same)
	again.Info("text")
	silent, q := Behind(nil)
	silent.Error("text")
	require.True(t, q.Flush(time.Minute))
}
