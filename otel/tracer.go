// Tracer: spans over tells, asks and handlers.

package otelkith

import (
	"context"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/kith-io/kith"
)

// scope names the instrumentation.
const scope = "github.com/kith-io/kith/otel"

// Keys of attributes.
const (
	KeyType    = attribute.Key("kith.type")
	KeyEntity  = attribute.Key("kith.entity")
	KeyShard   = attribute.Key("kith.shard")
	KeyFence   = attribute.Key("kith.fence")
	KeyFrom    = attribute.Key("kith.from") // of a move: the node that had the shard
	KeyTo      = attribute.Key("kith.to")
	KeyMove    = attribute.Key("kith.move") // term.sequence
	KeyNode    = attribute.Key("kith.node")
	KeyLives   = attribute.Key("kith.lives") // of a decision: this node stays
	KeyLeader  = attribute.Key("kith.leader")
	KeyDown    = attribute.Key("kith.down") // the members that go
	KeyOutcome = attribute.Key("kith.outcome")
)

// Config says where spans go. The zero value takes what the program has made the default of OpenTelemetry.
type Config struct {
	TracerProvider trace.TracerProvider          // nil: otel.GetTracerProvider
	Propagator     propagation.TextMapPropagator // nil: W3C trace context and baggage
}

// Tracer makes spans. All methods are safe for concurrent use.
type Tracer struct {
	tracer     trace.Tracer
	propagator propagation.TextMapPropagator
}

// New returns a tracer.
func New(cfg Config) *Tracer {
	if cfg.TracerProvider == nil {
		cfg.TracerProvider = otel.GetTracerProvider()
	}
	if cfg.Propagator == nil {
		cfg.Propagator = propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{})
	}
	return &Tracer{cfg.TracerProvider.Tracer(scope), cfg.Propagator}
}

// traced reports whether a caller has a span, recorded or not: only then anything is done.
func traced(ctx context.Context) bool { return trace.SpanContextFromContext(ctx).IsValid() }

// end ends a span with the outcome of what it is over.
func end(span trace.Span, err error) {
	if err != nil {
		span.RecordError(err)
		span.SetStatus(codes.Error, err.Error())
	}
	span.End()
}

// start begins a span over a message to an entity.
func (t *Tracer) start(ctx context.Context, verb string, kind trace.SpanKind, typ, id string) (context.Context,
	trace.Span) {
	return t.tracer.Start(ctx, verb+" "+typ, trace.WithSpanKind(kind),
		trace.WithAttributes(KeyType.String(typ), KeyEntity.String(id)))
}

// Region is a kith.Region with messages that carry the trace of their caller. It has one for messages of callers
// without a span, which go as they would without it.
type Region struct {
	t     *Tracer
	plain *kith.Region
	own   []byte
	typ   string
}

// Region returns the region r with spans.
func (t *Tracer) Region(r *kith.Region) *Region { return &Region{t: t, plain: r, typ: r.Type().Name} }

// With is kith.Region.With: headers of your own go beside the trace; a handler gets them by Tracer.Own.
func (r *Region) With(headers []byte) *Region {
	return &Region{r.t, r.plain.With(headers), headers, r.typ}
}

// Plain returns the region without spans.
func (r *Region) Plain() *kith.Region { return r.plain }

// to returns the region with messages that carry the trace of ctx.
func (r *Region) to(ctx context.Context) *kith.Region {
	return r.plain.With(Inject(ctx, r.t.propagator, r.own))
}

// Tell is kith.Region.Tell under a span of kind producer.
func (r *Region) Tell(ctx context.Context, id string, payload []byte) error {
	if !traced(ctx) {
		return r.plain.Tell(id, payload)
	}
	ctx, span := r.t.start(ctx, "tell", trace.SpanKindProducer, r.typ, id)
	err := r.to(ctx).Tell(id, payload)
	end(span, err)
	return err
}

// TellWait is kith.Region.TellWait under a span of kind producer, which is as long as it waits for room.
func (r *Region) TellWait(ctx context.Context, id string, payload []byte) error {
	if !traced(ctx) {
		return r.plain.TellWait(ctx, id, payload)
	}
	ctx, span := r.t.start(ctx, "tell", trace.SpanKindProducer, r.typ, id)
	err := r.to(ctx).TellWait(ctx, id, payload)
	end(span, err)
	return err
}

// Ask is kith.Region.Ask under a span of kind client.
func (r *Region) Ask(ctx context.Context, id string, payload []byte) ([]byte, error) {
	if !traced(ctx) {
		return r.plain.Ask(ctx, id, payload)
	}
	ctx, span := r.t.start(ctx, "ask", trace.SpanKindClient, r.typ, id)
	b, err := r.to(ctx).Ask(ctx, id, payload)
	end(span, err)
	return b, err
}

// Sender sends under spans of its own, with the trace of a context: it is a kith.Sender.
type Sender struct {
	t    *Tracer
	ctx  context.Context
	from kith.Sender
	c    *kith.Context // of a handler; nil: another sends
}

// In returns what sends for a handler with the trace of ctx: that of ReceiveTraced, or of Context.
func (t *Tracer) In(ctx context.Context, c *kith.Context) *Sender {
	return &Sender{t, ctx, c, c}
}

// From is kith.From, of what sends with the trace of ctx.
func (t *Tracer) From(ctx context.Context, n *kith.Node) *Sender {
	return &Sender{t, ctx, kith.From(ctx, n), nil}
}

// with returns what sends with the trace of a span.
func (s *Sender) with(ctx context.Context) kith.Sender {
	headers := Inject(ctx, s.t.propagator, nil)
	if s.c != nil {
		return s.c.With(headers)
	}
	return s.from.(*kith.NodeSender).With(headers)
}

// Tell is that of kith.Sender under a span of kind producer.
func (s *Sender) Tell(typ, id string, payload []byte) error {
	if !traced(s.ctx) {
		return s.from.Tell(typ, id, payload)
	}
	ctx, span := s.t.start(s.ctx, "tell", trace.SpanKindProducer, s.named(typ), id)
	err := s.with(ctx).Tell(typ, id, payload)
	end(span, err)
	return err
}

// Ask is that of kith.Sender under a span of kind client.
func (s *Sender) Ask(d time.Duration, typ, id string, payload []byte) ([]byte, error) {
	if !traced(s.ctx) {
		return s.from.Ask(d, typ, id, payload)
	}
	ctx, span := s.t.start(s.ctx, "ask", trace.SpanKindClient, s.named(typ), id)
	b, err := s.with(ctx).Ask(d, typ, id, payload)
	end(span, err)
	return b, err
}

// named returns the type that a message goes to: in a handler empty is its own.
func (s *Sender) named(typ string) string {
	if typ == "" && s.c != nil {
		return s.c.Type()
	}
	return typ
}

// Context returns c.Context with the trace of the call, for logs and spans of a method that gets values: its parent is
// the span of the call. Without a trace it is c.Context.
func (t *Tracer) Context(c *kith.Context) context.Context {
	headers := c.SetHeaders(nil) // those of Type
	c.SetHeaders(headers)
	ctx, _ := Extract(c.Context(), t.propagator, headers)
	return ctx
}

// Handler is a kith.Handler that wants the trace of its messages: for its own spans, its logs, and what it sends.
type Handler interface {
	kith.Handler
	// ReceiveTraced is called instead of Receive for a message that carries a trace. ctx is that of kith.Context.Context
	// with the span of the call, and ends with it.
	ReceiveTraced(ctx context.Context, c *kith.Context, payload []byte) error
}

// Type returns t with handlers that give their calls spans, of kind server for asks and consumer for tells, when their
// message carries a trace, and what they send by their Context carries it on. Others are called as without it.
func (t *Tracer) Type(typ kith.EntityType) kith.EntityType {
	if f := typ.New; f != nil {
		typ.New = func(id string, fence kith.Fence) kith.Handler { return t.handler(f(id, fence)) }
	}
	typ.Open, typ.Typed = t.open(typ.Open), t.opener(typ.Typed)
	return typ
}

// Singleton returns s with a handler that gives its calls spans, as Type does.
func (t *Tracer) Singleton(s kith.Singleton) kith.Singleton {
	if f := s.New; f != nil {
		s.New = func(fence kith.Fence) kith.Handler { return t.handler(f(fence)) }
	}
	s.Open, s.Typed = t.open(s.Open), t.opener(s.Typed)
	return s
}

// open returns f with handlers that have spans; nil for nil.
func (t *Tracer) open(f func(c *kith.Context) (kith.Handler, error)) func(c *kith.Context) (kith.Handler, error) {
	if f == nil {
		return nil
	}
	return func(c *kith.Context) (kith.Handler, error) {
		h, err := f(c)
		if err != nil {
			return nil, err
		}
		return t.handler(h), nil
	}
}

// opener is the same of values.
func (t *Tracer) opener(o kith.Opener) kith.Opener {
	if o == nil {
		return nil
	}
	return opener{o, t}
}

// opener makes handlers with spans.
type opener struct {
	kith.Opener
	t *Tracer
}

// Open makes one.
func (o opener) Open(c *kith.Context) (kith.Handler, error) { return o.t.open(o.Opener.Open)(c) }

func (t *Tracer) handler(h kith.Handler) kith.Handler {
	if h == nil {
		return nil // for kith to judge
	}
	traced, _ := h.(Handler)
	on := handler{h, traced, t}
	if s, ok := h.(kith.Stateful); ok {
		return statefulHandler{on, s}
	}
	return on
}

// handler has a span over each call of the handler in it.
type handler struct {
	kith.Handler
	traced Handler // nil: it does not want the trace
	t      *Tracer
}

// statefulHandler is the same of one with a state that moves with its entity.
type statefulHandler struct {
	handler
	kith.Stateful
}

// Receive calls the handler, under a span if the message carries a trace.
func (h handler) Receive(c *kith.Context, payload []byte) error {
	if len(c.Headers()) == 0 {
		return h.Handler.Receive(c, payload)
	}
	ctx, _ := Extract(c.Context(), h.t.propagator, c.Headers())
	if !traced(ctx) {
		return h.Handler.Receive(c, payload)
	}
	kind := trace.SpanKindConsumer
	if c.Asked() {
		kind = trace.SpanKindServer
	}
	ctx, span := h.t.start(ctx, "receive", kind, c.Type(), c.ID)
	c.SetHeaders(Inject(ctx, h.t.propagator, nil)) // so that what the handler sends goes on with the trace
	span.SetAttributes(KeyShard.Int64(int64(c.Shard)), KeyFence.String(c.Fence.String()))
	done := false
	defer func() {
		if !done { // it panics: kith takes that, and the span says it
			span.SetStatus(codes.Error, "panic")
			span.End()
		}
	}()
	var err error
	if h.traced != nil {
		err = h.traced.ReceiveTraced(ctx, c, payload)
	} else {
		err = h.Handler.Receive(c, payload)
	}
	done = true
	end(span, err)
	return err
}
