// Package otelkith shows kith to OpenTelemetry: spans over tells, asks, handlers, moves of shards and decisions of the
// resolver; the metrics of a node; the trace in log records. It is a module of its own, so a program without it has
// none of its dependencies.
//
// Without a span in the context of a caller nothing is done: no span, no header, no allocation. docs/tracing.md.
package otelkith
