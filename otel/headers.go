// Headers: the trace context of W3C, and baggage, as the opaque headers of a message.

package otelkith

import (
	"bytes"
	"context"

	"go.opentelemetry.io/otel/propagation"

	"github.com/kith-io/kith"
)

// maxHeaders is what a message may carry beside its payload.
const maxHeaders = 4 << 10

// carrier is fields of a propagator. There are few, so they are a list.
type carrier []field

type field struct{ key, value string }

// Get returns a value, empty when there is none.
func (c *carrier) Get(key string) string {
	for _, f := range *c {
		if f.key == key {
			return f.value
		}
	}
	return ""
}

// Set adds a value, or replaces it.
func (c *carrier) Set(key, value string) {
	for i := range *c {
		if (*c)[i].key == key {
			(*c)[i].value = value
			return
		}
	}
	*c = append(*c, field{key, value})
}

// Keys lists the keys.
func (c *carrier) Keys() []string {
	keys := make([]string, len(*c))
	for i, f := range *c {
		keys[i] = f.key
	}
	return keys
}

// Inject returns headers that carry the trace of ctx, followed by own, for kith.Region.With and kith.Context.With:
// lines "key: value", an empty line, own. What does not fit in 4 KiB beside own is left out: baggage and other fields
// first, then tracestate, then the trace itself. Without a span in ctx it returns own.
func Inject(ctx context.Context, p propagation.TextMapPropagator, own []byte) []byte {
	var c carrier
	if p.Inject(ctx, &c); c.Get(traceparent) == "" {
		return own
	}
	for _, keep := range []func(string) bool{func(string) bool { return true },
		func(key string) bool { return key == traceparent || key == tracestate },
		func(key string) bool { return key == traceparent }} {
		b := make([]byte, 0, 256+len(own))
		for _, f := range c {
			if keep(f.key) && !bytes.ContainsAny([]byte(f.key+f.value), "\n\r") {
				b = append(append(append(append(b, f.key...), ": "...), f.value...), '\n')
			}
		}
		if b = append(append(b, '\n'), own...); len(b) <= maxHeaders {
			return b
		}
	}
	return own
}

// The fields of W3C trace context.
const (
	traceparent = "traceparent"
	tracestate  = "tracestate"
)

// begins are how headers of Inject begin, whatever the order of fields: with the name of one.
var begins = [][]byte{[]byte(traceparent + ": "), []byte(tracestate + ": "), []byte("baggage: ")}

// Extract returns ctx with the trace that headers carry, and the headers that the sender gave beside it, a view.
// Headers that are not of Inject are the sender's own: ctx is returned as it is.
func Extract(ctx context.Context, p propagation.TextMapPropagator, headers []byte) (context.Context, []byte) {
	known := false
	for _, b := range begins {
		known = known || bytes.HasPrefix(headers, b)
	}
	end := bytes.Index(headers, []byte("\n\n"))
	if !known || end < 0 {
		return ctx, headers
	}
	var c carrier
	for line := range bytes.Lines(headers[:end+1]) {
		key, value, ok := bytes.Cut(bytes.TrimSuffix(line, []byte("\n")), []byte(": "))
		if !ok {
			return ctx, headers
		}
		c.Set(string(key), string(value))
	}
	return p.Extract(ctx, &c), headers[end+2:]
}

// Own returns the headers that the sender gave beside the trace of a message, a view as kith.Context.Headers is.
func (t *Tracer) Own(c *kith.Context) []byte {
	if len(c.Headers()) == 0 {
		return nil
	}
	_, own := Extract(context.Background(), t.propagator, c.Headers())
	return own
}
