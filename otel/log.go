// Log: the trace of a context in the records that are logged with it.

package otelkith

import (
	"context"
	"log/slog"

	"go.opentelemetry.io/otel/trace"
)

// Keys of log records, as OpenTelemetry names them.
const (
	LogTraceID = "trace_id"
	LogSpanID  = "span_id"
)

// LogHandler returns h with the trace in each record that is logged with a context that has a span
// (slog.Logger.InfoContext and the like). Records of others pass as they are.
func LogHandler(h slog.Handler) slog.Handler { return logHandler{h} }

type logHandler struct{ slog.Handler }

// Handle adds the trace.
func (h logHandler) Handle(ctx context.Context, r slog.Record) error {
	if s := trace.SpanContextFromContext(ctx); s.IsValid() {
		r = r.Clone()
		r.AddAttrs(slog.String(LogTraceID, s.TraceID().String()), slog.String(LogSpanID, s.SpanID().String()))
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs keeps the trace.
func (h logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return logHandler{h.Handler.WithAttrs(attrs)}
}

// WithGroup keeps the trace, within the group.
func (h logHandler) WithGroup(name string) slog.Handler { return logHandler{h.Handler.WithGroup(name)} }
