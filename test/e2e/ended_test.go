// Verbs that are given a context which has ended, or no time: they do nothing and say why.

package e2e_test

import (
	"context"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
)

// verbs are all methods that take a context, by receiver and name. Those without a
// function act on nothing: they look, and say what is so until the context ends.
var verbs = map[string]func(w *tried, ctx context.Context) error{
	"Node.Ready":       nil,
	"Node.Events":      nil,
	"Node.ShardEvents": nil,
	"Node.OnShutdown":  nil, // the context is the task's
	"Node.Drain":       func(w *tried, ctx context.Context) error { return w.n.Drain(ctx) },
	"Node.Undrain":     func(w *tried, ctx context.Context) error { return w.n.Undrain(ctx) },
	"Node.Leave":       func(w *tried, ctx context.Context) error { return w.n.Leave(ctx) },
	"Node.Down":        func(w *tried, ctx context.Context) error { return w.n.Down(ctx, w.other.Addr().String()) },
	"Node.Convergence": func(w *tried, ctx context.Context) error { _, err := w.n.Convergence(ctx); return err },
	"Node.Versions":    func(w *tried, ctx context.Context) error { _, err := w.n.Versions(ctx); return err },
	"Node.Suspicions":  func(w *tried, ctx context.Context) error { _, err := w.n.Suspicions(ctx); return err },
	"Node.SetMetadata": func(w *tried, ctx context.Context) error { return w.n.SetMetadata(ctx, "a", []byte("b")) },
	"Node.UseSeeds":    func(w *tried, ctx context.Context) error { return w.n.UseSeeds(ctx, w.seeds()) },
	"Node.JoinCluster": func(w *tried, ctx context.Context) error {
		_, err := w.n.JoinCluster(ctx, w.seeds())
		return err
	},
	"Node.LeaveAndJoin": func(w *tried, ctx context.Context) error {
		_, err := w.n.LeaveAndJoin(ctx, w.seeds())
		return err
	},
	"Node.Shutdown":     func(w *tried, ctx context.Context) error { return w.n.Shutdown(ctx, kith.ReasonLeft) },
	"Node.ShutdownFrom": func(w *tried, ctx context.Context) error { return w.n.ShutdownFrom(ctx, kith.ReasonLeft, "") },
	"Node.PrepareForFullShutdown": func(w *tried, ctx context.Context) error {
		return w.n.PrepareForFullShutdown(ctx)
	},
	"Node.Refound":           func(w *tried, ctx context.Context) error { return w.n.Refound(ctx) },
	"Node.PauseRebalancing":  func(w *tried, ctx context.Context) error { return w.n.PauseRebalancing(ctx) },
	"Node.ResumeRebalancing": func(w *tried, ctx context.Context) error { return w.n.ResumeRebalancing(ctx) },
	"Node.WriteFlightRecord": func(w *tried, ctx context.Context) error { return w.n.WriteFlightRecord(ctx, io.Discard) },
	"Region.Move":            func(w *tried, ctx context.Context) error { return w.r.Move(ctx, 0, w.other.ID()) },
	"Region.SetReady":        func(w *tried, ctx context.Context) error { return w.r.SetReady(ctx, false) },
	"Region.SetHomes":        func(w *tried, ctx context.Context) error { return w.r.SetHomes(ctx, 1, nil) },
	"Region.Report":          func(w *tried, ctx context.Context) error { _, err := w.r.Report(ctx); return err },
	"Region.TellWait":        func(w *tried, ctx context.Context) error { return w.r.TellWait(ctx, "a", nil) },
	"Region.TellBulk":        func(w *tried, ctx context.Context) error { return w.r.TellBulk(ctx, "a", nil, nil) },
	"Region.Ask":             func(w *tried, ctx context.Context) error { _, err := w.r.Ask(ctx, "a", nil); return err },
	"SingletonRef.TellWait":  func(w *tried, ctx context.Context) error { return w.one.TellWait(ctx, nil) },
	"SingletonRef.Ask":       func(w *tried, ctx context.Context) error { _, err := w.one.Ask(ctx, nil); return err },
	"TypedRegion.TellWait":   func(w *tried, ctx context.Context) error { s := ""; return w.typed.TellWait(ctx, "a", &s) },
	"TypedRegion.Ask": func(w *tried, ctx context.Context) error {
		s := ""
		_, err := w.typed.Ask(ctx, "a", &s)
		return err
	},
}

// tried is what the verbs are tried on.
type tried struct {
	n, other *kith.Node
	r        *kith.Region
	typed    *kith.TypedRegion[string, string]
	one      *kith.SingletonRef
	calls    chan string
}

func (w *tried) seeds() []string { return []string{w.other.Addr().String()} }

func newTried(t *testing.T) *tried {
	w := &tried{calls: make(chan string, 64)}
	nodes := cluster(t, 2, nil, func(i int, n *kith.Node) {
		handler := func(id string, _ kith.Fence) kith.Handler {
			return &actor{receive: func(c *kith.Context, _ []byte) error {
				w.calls <- id
				return nil
			}}
		}
		r, err := n.Register(kith.EntityType{Name: "x", New: handler})
		require.NoError(t, err)
		one, err := n.Singleton(kith.Singleton{Name: "one",
			New: func(f kith.Fence) kith.Handler { return handler("one", f) }})
		require.NoError(t, err)
		if i == 0 {
			w.r, w.one = r, one
			w.typed = kith.Message[string, string]{Type: r.Type().Name}.In(r)
		}
	})
	w.n, w.other = nodes[0], nodes[1]
	return w
}

// untouched demands that nothing has come of what was tried.
func (w *tried) untouched(t *testing.T) {
	t.Helper()
	require.NoError(t, w.n.Err())
	require.Empty(t, w.n.ShutdownReason())
	require.False(t, w.n.Health().Draining)
	v := w.n.View()
	require.Equal(t, 2, v.CountUp())
	_, set := v.MetadataValue("a")
	require.False(t, set)
	_, set = v.MetadataValue(kith.RebalancingPausedKey)
	require.False(t, set)
	require.Empty(t, w.calls)
}

// A verb with an ended context returns the context's error, and is not carried out (OPS-1).
func TestVerbsHeedAContextThatHasEnded(t *testing.T) {
	t.Parallel()
	w := newTried(t)
	for _, typ := range []reflect.Type{reflect.TypeFor[*kith.Node](), reflect.TypeFor[*kith.Region](),
		reflect.TypeFor[*kith.SingletonRef](), reflect.TypeFor[*kith.DaemonsRef](),
		reflect.TypeFor[*kith.TypedRegion[string, string]]()} {
		for i := range typ.NumMethod() {
			m := typ.Method(i)
			for in := range m.Type.NumIn() {
				if m.Type.In(in) == reflect.TypeFor[context.Context]() {
					name, _, _ := strings.Cut(typ.Elem().Name(), "[")
					require.Contains(t, verbs, name+"."+m.Name, "a verb that this test does not know")
				}
			}
		}
	}
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	late, end := context.WithDeadline(context.Background(), time.Unix(1, 0))
	defer end()
	why := errors.New("the caller's own reason")
	caused, because := context.WithCancelCause(context.Background())
	because(why)
	for name, verb := range verbs {
		for _, ctx := range []context.Context{cancelled, late, caused} {
			if verb != nil {
				err := verb(w, ctx)
				require.ErrorIs(t, err, ctx.Err(), name)
				if strings.Contains(name, "Tell") || strings.HasSuffix(name, "Ask") {
					require.False(t, kith.MayHaveRun(err), name)
				}
			}
		}
	}
	require.NoError(t, w.r.TellWait(within(t), "a", nil))
	require.Equal(t, "a", <-w.calls, "the first message that came")
	w.untouched(t)
}

// Asks that leave no time for an answer are refused as Ask refuses a context that is over: no handler is called.
func TestAsksWithNoTime(t *testing.T) {
	t.Parallel()
	w := newTried(t)
	for _, d := range []time.Duration{0, -1, -time.Hour} {
		_, err := w.r.AskWithin(d, "a", nil, nil)
		require.ErrorIs(t, err, kith.ErrTimeout)
		require.False(t, kith.MayHaveRun(err))
		err = w.r.AskFunc(d, "a", nil, func([]byte, error) { t.Error("called") })
		require.ErrorIs(t, err, kith.ErrTimeout)
		require.False(t, kith.MayHaveRun(err))
		s := ""
		require.ErrorIs(t, w.typed.AskWithin(d, "a", &s, &s), kith.ErrTimeout)
		require.ErrorIs(t, w.typed.AskFunc(d, "a", &s, func(string, error) { t.Error("called") }), kith.ErrTimeout)
	}
	require.NoError(t, w.r.TellWait(within(t), "b", nil))
	require.Equal(t, "b", <-w.calls, "the first message that came")
	w.untouched(t)
}
