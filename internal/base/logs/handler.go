// Handler: the logger's end of the queue. Nothing here calls the embedder's handler but what the queue carries out.

package logs

import (
	"context"
	"fmt"
	"log/slog"
	"reflect"
	"sync/atomic"
	"time"
)

// staleAfter is how old what is known of a level may be before the handler is asked again.
const staleAfter = time.Second

// handler queues records. What it holds of the handler behind is made and called by the queue's goroutine alone.
type handler struct {
	q     *Queue
	build func() slog.Handler
	real  slog.Handler // nil before it was made

	levels [4]level // of debug, info, warn and error
}

// level is what the handler said of one level: twice the moment, plus one when it is enabled. Zero: it was not asked.
type level struct {
	said atomic.Int64
	asks atomic.Bool // it is being asked
}

func (h *handler) behind() slog.Handler {
	if h.real == nil {
		h.real = h.build()
	}
	return h.real
}

// level returns what is kept of a level, nil of one that nobody has a name for.
func (h *handler) level(l slog.Level) *level {
	if l < slog.LevelDebug || l > slog.LevelError || l%4 != 0 {
		return nil
	}
	return &h.levels[(l-slog.LevelDebug)/4]
}

// Enabled says what the handler behind said of the level a second ago or less, and true of what it was not asked yet:
// such records are dropped where they are carried to it. A level that is switched on counts within a second.
func (h *handler) Enabled(_ context.Context, l slog.Level) bool {
	known := h.level(l)
	if known == nil {
		return true
	}
	said := known.said.Load()
	if said == 0 {
		return true
	}
	if on := said&1 == 1; on || time.Since(began)-time.Duration(said>>1) < staleAfter {
		return on
	}
	if known.asks.CompareAndSwap(false, true) && !h.q.put(job{looks: true, run: func() {
		defer known.asks.Store(false)
		h.enabled(context.Background(), l)
	}}) {
		known.asks.Store(false)
	}
	return false
}

// enabled asks the handler behind, and keeps what it says. The queue's goroutine.
func (h *handler) enabled(ctx context.Context, l slog.Level) bool {
	on := h.behind().Enabled(ctx, l)
	if known := h.level(l); known != nil {
		said := sinceBegan() << 1
		if on {
			said |= 1
		}
		known.said.Store(said)
	}
	return on
}

// Handle queues the record, with what is to be read now in it. The context keeps its values and has no end.
func (h *handler) Handle(ctx context.Context, r slog.Record) error {
	out := slog.NewRecord(r.Time, r.Level, r.Message, r.PC)
	r.Attrs(func(a slog.Attr) bool {
		out.AddAttrs(settled(a))
		return true
	})
	ctx = context.WithoutCancel(ctx)
	h.q.put(job{run: func() {
		if h.enabled(ctx, out.Level) {
			_ = h.behind().Handle(ctx, out)
		}
	}})
	return nil
}

// WithAttrs returns a handler of the same queue.
func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	list := settledAll(attrs)
	return &handler{q: h.q, build: func() slog.Handler { return h.behind().WithAttrs(list) }}
}

// WithGroup returns a handler of the same queue.
func (h *handler) WithGroup(name string) slog.Handler {
	return &handler{q: h.q, build: func() slog.Handler { return h.behind().WithGroup(name) }}
}

// settled returns an attribute that says later what it says now: values that compute themselves are computed, what has
// a String method is that string (a JSON handler would write a peer's identity as an empty object), lists are copied.
// Errors are left to the handler, which knows them.
func settled(a slog.Attr) slog.Attr {
	a.Value = a.Value.Resolve()
	switch a.Value.Kind() {
	case slog.KindGroup:
		a.Value = slog.GroupValue(settledAll(a.Value.Group())...)
		return a
	case slog.KindAny:
	default:
		return a
	}
	switch v := a.Value.Any().(type) {
	case nil, error:
	case fmt.Stringer:
		a.Value = slog.StringValue(fmt.Sprint(v)) // which bears a String that panics
	default:
		if list := reflect.ValueOf(v); list.Kind() == reflect.Slice && !list.IsNil() {
			kept := reflect.MakeSlice(list.Type(), list.Len(), list.Len())
			reflect.Copy(kept, list)
			a.Value = slog.AnyValue(kept.Interface())
		}
	}
	return a
}

func settledAll(attrs []slog.Attr) []slog.Attr {
	list := make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		list[i] = settled(a)
	}
	return list
}
