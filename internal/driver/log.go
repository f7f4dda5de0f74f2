// Logging: the embedder's handler gets names where records hold identities, lanes and states.

package driver

import (
	"context"
	"fmt"
	"log/slog"
)

// named wraps the embedder's handler: whatever has a String method is logged as that string. A JSON handler would
// write a peer's identity as an empty object otherwise.
type named struct{ slog.Handler }

func byName(l *slog.Logger) *slog.Logger { return slog.New(named{l.Handler()}) }

// Handle passes the record on with names.
func (n named) Handle(ctx context.Context, r slog.Record) error {
	out := slog.NewRecord(r.Time, r.Level, r.Message, r.PC)
	r.Attrs(func(a slog.Attr) bool {
		out.AddAttrs(nameOf(a))
		return true
	})
	return n.Handler.Handle(ctx, out)
}

// WithAttrs keeps the wrapping.
func (n named) WithAttrs(attrs []slog.Attr) slog.Handler {
	list := make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		list[i] = nameOf(a)
	}
	return named{n.Handler.WithAttrs(list)}
}

// WithGroup keeps the wrapping.
func (n named) WithGroup(name string) slog.Handler { return named{n.Handler.WithGroup(name)} }

// nameOf leaves errors to the handler, which knows them.
func nameOf(a slog.Attr) slog.Attr {
	if a.Value.Kind() != slog.KindAny {
		return a
	}
	v := a.Value.Any()
	if _, isError := v.(error); isError {
		return a
	}
	if s, ok := v.(fmt.Stringer); ok {
		return slog.String(a.Key, s.String())
	}
	return a
}
