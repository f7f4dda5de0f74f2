// Tests with real nodes and the SDK's exporter in memory.

package otelkith

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/metrics"
)

const patience = 2 * time.Minute

// traces is a tracer with spans that stay in memory.
func traces(t testing.TB) (*Tracer, *tracetest.InMemoryExporter, trace.Tracer) {
	out := tracetest.NewInMemoryExporter()
	p := sdk.NewTracerProvider(sdk.WithSyncer(out))
	t.Cleanup(func() { _ = p.Shutdown(context.Background()) })
	return New(Config{TracerProvider: p}), out, p.Tracer("test")
}

// node starts a node with these types, and waits until it is Up.
func node(t testing.TB, cfg kith.Config, types ...kith.EntityType) (*kith.Node, map[string]*kith.Region) {
	t.Helper()
	n, err := kith.Start(context.Background(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { _ = n.Close() })
	regions := map[string]*kith.Region{}
	for _, typ := range types {
		regions[typ.Name], err = n.Register(typ)
		require.NoError(t, err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	require.NoError(t, n.Ready(ctx))
	return n, regions
}

// relay is an entity that wants the trace of its messages: it notes it, and asks on.
type relay struct {
	t     *Tracer
	next  string // type that it asks; empty: it answers
	notes *notes
}

type notes struct {
	mu   sync.Mutex
	list []string
}

func (n *notes) add(format string, args ...any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.list = append(n.list, fmt.Sprintf(format, args...))
}

func (n *notes) all() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.list)
}

func (r *relay) Receive(c *kith.Context, p []byte) error {
	r.notes.add("plain %s own %q", p, r.t.Own(c))
	return r.ReceiveTraced(c.Context(), c, p)
}

func (r *relay) ReceiveTraced(ctx context.Context, c *kith.Context, p []byte) error {
	if s := trace.SpanContextFromContext(ctx); s.IsValid() {
		r.notes.add("%s in %s own %q baggage %q", p, s.TraceID(), r.t.Own(c), baggage.FromContext(ctx))
	}
	switch {
	case string(p) == "fail":
		return errors.New("as was asked for")
	case string(p) == "panic":
		panic("as was asked for")
	case r.next != "":
		b, err := r.t.In(ctx, c).Ask(patience, r.next, c.ID, p)
		if err != nil {
			return err
		}
		return c.Reply(append(b, '!'))
	case c.Asked():
		return c.Reply(p)
	}
	return nil
}

func (r *relay) Stop(*kith.Context) {}

// of returns a type of relays.
func of(t *Tracer, n *notes, name, next string) kith.EntityType {
	return t.Type(kith.EntityType{Name: name, Shards: 4,
		New: func(string, kith.Fence) kith.Handler { return &relay{t, next, n} }})
}

// named finds the span of a name, once it has ended.
func spanNamed(t testing.TB, out *tracetest.InMemoryExporter, name string) (found tracetest.SpanStub) {
	t.Helper()
	require.Eventually(t, func() bool {
		for _, s := range out.GetSpans() {
			if s.Name == name {
				found = s
				return true
			}
		}
		return false
	}, patience, time.Millisecond, "no span %q in %v", name, names(out))
	return found
}

func names(out *tracetest.InMemoryExporter) (list []string) {
	for _, s := range out.GetSpans() {
		list = append(list, s.Name)
	}
	return list
}

// One trace goes from a caller through an entity on another node to a third, and back; each call has its span, under
// that of its caller, and the sender's own headers and baggage come along.
func TestOneTrace(t *testing.T) {
	tr, out, user := traces(t)
	var n notes
	first, _ := node(t, kith.Config{}, of(tr, &n, "front", "back"), of(tr, &n, "back", ""))
	_, regions := node(t, kith.Config{Seeds: []string{first.Addr().String()}}, of(tr, &n, "front", "back"),
		of(tr, &n, "back", ""))
	front := tr.Region(regions["front"]).With([]byte("tenant 7"))
	member, err := baggage.NewMember("who", "me")
	require.NoError(t, err)
	bag, err := baggage.New(member)
	require.NoError(t, err)
	ctx, root := user.Start(baggage.ContextWithBaggage(t.Context(), bag), "root")
	got, err := front.Ask(ctx, "x", []byte("hello"))
	require.NoError(t, err)
	require.Equal(t, "hello!", string(got))
	root.End()
	id := root.SpanContext().TraceID()
	require.Equal(t, []string{
		fmt.Sprintf("hello in %s own %q baggage %q", id, "tenant 7", "who=me"),
		fmt.Sprintf("hello in %s own %q baggage %q", id, "", "who=me")}, n.all())
	parent := root.SpanContext().SpanID()
	for _, want := range []struct {
		name string
		kind trace.SpanKind
	}{{"ask front", trace.SpanKindClient}, {"receive front", trace.SpanKindServer}, {"ask back", trace.SpanKindClient},
		{"receive back", trace.SpanKindServer}} {
		s := spanNamed(t, out, want.name)
		require.Equal(t, id, s.SpanContext.TraceID(), want.name)
		require.Equal(t, parent, s.Parent.SpanID(), want.name)
		require.Equal(t, want.kind, s.SpanKind, want.name)
		require.Contains(t, s.Attributes, KeyEntity.String("x"))
		parent = s.SpanContext.SpanID()
	}
}

// fare is what a trip costs, and word what is reported of a trace.
type (
	fare struct{ Cents int }
	word struct{ Trace string }
)

var (
	ride  = kith.Message[word, fare]{Type: "trip", Name: "ride"}
	quote = kith.Message[word, fare]{Type: "meter", Name: "quote"}
	note  = kith.Message[word, struct{}]{Type: "meter", Name: "note"}
)

// trip and meter have methods for values, and know of no trace but for their logs.
type (
	trip  struct{ t *Tracer }
	meter struct {
		t     *Tracer
		notes *notes
	}
)

func (p *trip) ride(c *kith.Context, w *word) (fare, error) {
	if err := note.Tell(c, "rome", w); err != nil {
		return fare{}, err
	}
	return quote.Ask(c, "rome", &word{trace.SpanContextFromContext(p.t.Context(c)).TraceID().String()})
}

func (m *meter) quote(c *kith.Context, w *word) (fare, error) {
	m.notes.add("quote %s in %s", w.Trace, trace.SpanContextFromContext(m.t.Context(c)).TraceID())
	return fare{7}, nil
}

func (m *meter) note(c *kith.Context, _ *word) (struct{}, error) { return struct{}{}, nil }

func (*trip) Stop(*kith.Context)  {}
func (*meter) Stop(*kith.Context) {}

// A trace goes through methods that get values: from a caller outside through an entity on another node to a third,
// though no handler does anything for it. Without a trace the same handlers send no headers.
func TestTraceOfValues(t *testing.T) {
	tr, out, user := traces(t)
	var n notes
	types := []kith.EntityType{
		tr.Type(kith.EntityType{Name: "trip", Shards: 4, Typed: kith.Methods(
			func(*kith.Context) (*trip, error) { return &trip{tr}, nil }, kith.On(ride, (*trip).ride))}),
		tr.Type(kith.EntityType{Name: "meter", Shards: 4, Typed: kith.Methods(
			func(*kith.Context) (*meter, error) { return &meter{tr, &n}, nil },
			kith.On(quote, (*meter).quote), kith.On(note, (*meter).note))}),
	}
	first, _ := node(t, kith.Config{}, types...)
	second, _ := node(t, kith.Config{Seeds: []string{first.Addr().String()}}, types...)
	ctx, root := user.Start(t.Context(), "root")
	got, err := ride.Ask(tr.From(ctx, second), "7", &word{})
	require.NoError(t, err)
	require.Equal(t, fare{7}, got)
	root.End()
	id := root.SpanContext().TraceID()
	require.Equal(t, []string{fmt.Sprintf("quote %s in %s", id, id)}, n.all())
	asked, received := spanNamed(t, out, "ask trip"), spanNamed(t, out, "receive trip")
	require.Equal(t, root.SpanContext().SpanID(), asked.Parent.SpanID())
	require.Equal(t, asked.SpanContext.SpanID(), received.Parent.SpanID())
	require.Eventually(t, func() bool { return len(out.GetSpans()) == 5 }, patience, time.Millisecond, "told, too")
	for _, s := range out.GetSpans() {
		require.Equal(t, id, s.SpanContext.TraceID(), s.Name)
		if s.Name == "receive meter" {
			require.Equal(t, received.SpanContext.SpanID(), s.Parent.SpanID())
		}
	}
	out.Reset()
	_, err = ride.Ask(tr.From(t.Context(), second), "7", &word{})
	require.NoError(t, err)
	require.Empty(t, out.GetSpans())
	require.Equal(t, fmt.Sprintf("quote %032d in %032d", 0, 0), n.all()[1])
	require.NoError(t, note.Tell(tr.From(ctx, second), "rome", &word{}))
	require.Equal(t, trace.SpanKindProducer, spanNamed(t, out, "tell meter").SpanKind)
}

// A singleton's calls have spans as an entity's have, in each form that it may have.
func TestTraceOfSingletons(t *testing.T) {
	tr, out, user := traces(t)
	var n notes
	made := func(*kith.Context) (kith.Handler, error) { return &relay{tr, "", &n}, nil }
	all := []kith.Singleton{
		{Name: "new", New: func(kith.Fence) kith.Handler { return &relay{tr, "", &n} }}, {Name: "open", Open: made},
		{Name: "meter", Typed: kith.Methods(func(*kith.Context) (*meter, error) { return &meter{tr, &n}, nil },
			kith.On(quote, (*meter).quote))},
	}
	on, _ := node(t, kith.Config{})
	for _, s := range all {
		_, err := on.Singleton(tr.Singleton(s))
		require.NoError(t, err)
	}
	ctx, root := user.Start(t.Context(), "root")
	for _, name := range []string{"new", "open"} {
		_, err := tr.From(ctx, on).Ask(patience, name, name, []byte("x"))
		require.NoError(t, err)
	}
	_, err := quote.Ask(tr.From(ctx, on), "meter", &word{})
	require.NoError(t, err)
	root.End()
	for _, s := range all {
		require.Equal(t, root.SpanContext().TraceID(), spanNamed(t, out, "receive "+s.Name).SpanContext.TraceID())
	}
}

// Faults in the methods of a type are reported through the tracer.
func TestTypedFaults(t *testing.T) {
	tr, _, _ := traces(t)
	typ := tr.Type(kith.EntityType{Name: "other", Typed: kith.Methods(
		func(*kith.Context) (*trip, error) { return nil, nil }, kith.On(ride, (*trip).ride))})
	require.ErrorContains(t, typ.WithDefaults().Validate(), `message "ride" is of type "trip"`)
}

// Tells have spans of their own kinds, and what goes wrong stands in them: an error of the handler, a panic, a refusal.
func TestOutcomes(t *testing.T) {
	tr, out, user := traces(t)
	var n notes
	_, regions := node(t, kith.Config{}, of(tr, &n, "back", ""))
	back := tr.Region(regions["back"])
	ctx, root := user.Start(t.Context(), "root")
	defer root.End()
	require.NoError(t, back.Tell(ctx, "x", []byte("told")))
	require.Equal(t, trace.SpanKindConsumer, spanNamed(t, out, "receive back").SpanKind)
	require.Equal(t, trace.SpanKindProducer, spanNamed(t, out, "tell back").SpanKind)
	require.NoError(t, back.TellWait(ctx, "x", []byte("told")))
	require.Eventually(t, func() bool { return len(out.GetSpans()) == 4 }, patience, time.Millisecond)
	for _, what := range []string{"fail", "panic"} {
		out.Reset()
		_, err := back.Ask(ctx, "x", []byte(what))
		require.Error(t, err)
		require.Equal(t, codes.Error, spanNamed(t, out, "receive back").Status.Code, what)
		s := spanNamed(t, out, "ask back")
		require.Equal(t, codes.Error, s.Status.Code)
		require.Len(t, s.Events, 1, "the error is recorded")
	}
	out.Reset()
	require.ErrorIs(t, back.Tell(ctx, "", nil), kith.ErrBadID)
	require.Equal(t, codes.Error, spanNamed(t, out, "tell back").Status.Code)
	require.Same(t, regions["back"], back.Plain())
}

// Without a span nothing is made, sent or allocated beside what kith does, and a handler is called as without a tracer.
func TestNothingWithoutASpan(t *testing.T) {
	tr, out, _ := traces(t)
	var n notes
	_, regions := node(t, kith.Config{}, of(tr, &n, "front", "back"), of(tr, &n, "back", ""))
	own := tr.Region(regions["front"]).With([]byte("mine"))
	_, err := own.Ask(t.Context(), "x", []byte("hello"))
	require.NoError(t, err)
	require.Equal(t, []string{`plain hello own "mine"`, `plain hello own ""`}, n.all())
	require.Empty(t, out.GetSpans())
	plain, region, payload := regions["back"], tr.Region(regions["back"]), []byte("x")
	without := testing.AllocsPerRun(200, func() { _ = plain.Tell("", payload) }) // refused: no handler runs beside
	with := testing.AllocsPerRun(200, func() { _ = region.Tell(context.Background(), "", payload) })
	require.Equal(t, without, with)
	require.Zero(t, testing.AllocsPerRun(200, func() { _ = traced(context.Background()) }))
}

// keeper is an entity with state, which a handler around it must not hide.
type keeper struct{ relay }

func (k *keeper) HandOver(*kith.Context) ([]byte, error) { return []byte("kept"), nil }
func (k *keeper) TakeUp(*kith.Context, []byte) error     { return nil }

// What a handler can, the one around it can: no more and no less, and what is none stays none.
func TestHandlersStayWhatTheyAre(t *testing.T) {
	tr, _, _ := traces(t)
	failed := errors.New("no store")
	typ := tr.Type(kith.EntityType{Open: func(c *kith.Context) (kith.Handler, error) {
		switch c {
		case nil:
			return nil, failed
		}
		return &keeper{}, nil
	}})
	_, err := typ.Open(nil)
	require.ErrorIs(t, err, failed)
	h, err := typ.Open(&kith.Context{})
	require.NoError(t, err)
	state, err := h.(kith.Stateful).HandOver(nil)
	require.NoError(t, err)
	require.Equal(t, "kept", string(state))
	_, stateful := tr.handler(&relay{}).(kith.Stateful)
	require.False(t, stateful)
	require.Nil(t, tr.handler(nil))
	require.Nil(t, tr.Type(kith.EntityType{}).New)
}

// Headers come back as they were given; what is too long loses baggage first, then the state of the trace, then all of
// it, never the sender's own; what is not ours is the sender's own.
func TestHeaders(t *testing.T) {
	p := propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{})
	state, err := trace.ParseTraceState("vendor=" + strings.Repeat("v", 200))
	require.NoError(t, err)
	span := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2},
		TraceFlags: trace.FlagsSampled, TraceState: state})
	bag, err := baggage.Parse("k=" + strings.Repeat("b", 300))
	require.NoError(t, err)
	ctx := baggage.ContextWithBaggage(trace.ContextWithSpanContext(t.Context(), span), bag)
	for _, c := range []struct {
		own                   int
		trace, state, baggage bool
	}{{0, true, true, true}, {1000, true, true, true}, {3600, true, true, false}, {3900, true, false, false},
		{4080, false, false, false}} {
		own := bytes.Repeat([]byte("o\n"), c.own/2)
		b := Inject(ctx, p, own)
		require.LessOrEqual(t, len(b), maxHeaders)
		got, rest := Extract(context.Background(), p, b)
		require.Equal(t, string(own), string(rest))
		s := trace.SpanContextFromContext(got)
		require.Equal(t, c.trace, s.IsValid() && s.TraceID() == span.TraceID(), c.own)
		require.Equal(t, c.state, s.TraceState().Len() > 0, c.own)
		require.Equal(t, c.baggage, baggage.FromContext(got).Len() > 0, c.own)
	}
	require.Nil(t, Inject(t.Context(), p, nil))
	for _, foreign := range []string{"", "mine", "traceparent: x", "traceparent: x\n", "traceparent: x\nnonsense\n\nrest",
		"trace\n\nparent"} {
		got, rest := Extract(t.Context(), p, []byte(foreign))
		require.False(t, traced(got), foreign)
		require.Equal(t, foreign, string(rest))
	}
}

// FuzzExtract: whatever a peer sends as headers, it is a trace or the sender's own.
func FuzzExtract(f *testing.F) {
	p := propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{})
	f.Add([]byte("traceparent: 00-01000000000000000000000000000000-0200000000000000-01\n\nown"))
	f.Fuzz(func(t *testing.T, b []byte) {
		_, own := Extract(context.Background(), p, b)
		require.True(t, bytes.HasSuffix(b, own))
	})
}

// A move by hand has a span from its begin to its end, and the decision of a resolver one with its reason.
func TestWatch(t *testing.T) {
	tr, out, _ := traces(t)
	var notes notes
	typ := of(tr, &notes, "back", "")
	a, regions := node(t, kith.Config{}, typ)
	b, _ := node(t, kith.Config{Seeds: []string{a.Addr().String()}}, typ)
	ctx, cancel := context.WithCancel(t.Context())
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		tr.Watch(ctx, a)
	}()
	_, err := regions["back"].Ask(t.Context(), "x", []byte("hello"))
	require.NoError(t, err)
	to := b.ID()
	require.Eventually(t, func() bool { // to and fro, until the watch has begun
		err := regions["back"].Move(t.Context(), regions["back"].Shard("x"), to)
		if errors.Is(err, kith.ErrAtHome) && to == a.ID() {
			to = b.ID()
		} else if errors.Is(err, kith.ErrAtHome) {
			to = a.ID()
		}
		return slices.Contains(names(out), "kith.move")
	}, patience, 10*time.Millisecond)
	s := spanNamed(t, out, "kith.move")
	require.Equal(t, codes.Unset, s.Status.Code)
	require.Contains(t, s.Attributes, KeyType.String("back"))
	require.True(t, s.EndTime.After(s.StartTime))
	cancel()
	<-watched
}

// A decision becomes one span, however often it is looked for.
func TestDecisions(t *testing.T) {
	tr, out, _ := traces(t)
	a, _ := node(t, kith.Config{})
	b, _ := node(t, kith.Config{Seeds: []string{a.Addr().String()}})
	require.NoError(t, b.Close()) // it is lost, and the lower address decides
	require.Eventually(t, func() bool { return len(a.Decisions()) > 0 }, patience, time.Millisecond)
	w := watch{t: tr, n: a}
	w.decisions()
	w.decisions()
	list := a.Decisions()
	require.Len(t, out.GetSpans(), len(list))
	s := out.GetSpans()[0]
	require.Equal(t, "kith.resolver", s.Name)
	require.Contains(t, s.Attributes, KeyOutcome.String(list[0].String()))
	require.True(t, s.StartTime.Equal(list[0].Time))
}

// A move without a known end does not stay open, and no more than are bounded are.
func TestOpenMovesAreBounded(t *testing.T) {
	tr, out, _ := traces(t)
	w := watch{t: tr, open: map[move]trace.Span{}}
	at := func(kind kith.ShardEventKind, shard int) *kith.ShardEvent {
		e := &kith.ShardEvent{Name: "back", At: time.Unix(int64(shard), 0)}
		e.Kind, e.Shard = kind, kith.ShardID(shard)
		return e
	}
	for i := range maxOpen + 1 {
		w.shard(t.Context(), at(kith.MoveBegan, i))
	}
	require.Len(t, w.open, maxOpen)
	w.shard(t.Context(), at(kith.MoveMarked, 1))
	w.shard(t.Context(), at(kith.MoveAborted, 1))
	w.shard(t.Context(), at(kith.MoveDone, maxOpen)) // had no span
	require.Equal(t, codes.Error, spanNamed(t, out, "kith.move").Status.Code)
	require.Len(t, spanNamed(t, out, "kith.move").Events, 1)
	w.shard(t.Context(), at(kith.ShardEventsBegin, 0))
	require.Empty(t, w.open)
	w.shard(t.Context(), at(kith.MoveHandedOver, 7)) // as the owner alone
	spanNamed(t, out, "kith."+kith.MoveHandedOver.String())
}

// A move with a rest that is not taken ends with an error, and says why: as an event of the span where the owner
// coordinates the type itself, else as a span of the owner's.
func TestMoveThatCameBack(t *testing.T) {
	tr, out, _ := traces(t)
	w := watch{t: tr, open: map[move]trace.Span{}}
	at := func(kind kith.ShardEventKind, err error) *kith.ShardEvent {
		e := &kith.ShardEvent{Name: "back", At: time.Unix(1, 0)}
		e.Kind, e.Err = kind, err
		return e
	}
	w.shard(t.Context(), at(kith.MoveUntaken, kith.ErrNotTaken))
	s := spanNamed(t, out, "kith.move-untaken")
	require.Equal(t, codes.Error, s.Status.Code)
	require.Equal(t, kith.ErrNotTaken.Error(), s.Status.Description)
	w.shard(t.Context(), at(kith.MoveBegan, nil))
	w.shard(t.Context(), at(kith.MoveUntaken, kith.ErrNotTaken))
	w.shard(t.Context(), at(kith.MoveReturned, nil))
	require.Empty(t, w.open)
	s = spanNamed(t, out, "kith.move")
	require.Equal(t, codes.Error, s.Status.Code)
	require.Equal(t, "returned", s.Status.Description)
	require.Len(t, s.Events, 1)
	require.Contains(t, s.Events[0].Attributes, KeyOutcome.String(kith.ErrNotTaken.Error()))
}

// A record that is logged with a span has its ids, within groups too; others are as they were.
func TestLogHandler(t *testing.T) {
	_, _, user := traces(t)
	var out bytes.Buffer
	log := slog.New(LogHandler(slog.NewJSONHandler(&out, nil))).With("a", 1)
	log.Info("plain")
	require.NotContains(t, out.String(), LogTraceID)
	out.Reset()
	ctx, span := user.Start(t.Context(), "root")
	log.WithGroup("g").InfoContext(ctx, "traced", "b", 2)
	var got struct {
		A int
		G map[string]any
	}
	require.NoError(t, json.Unmarshal(out.Bytes(), &got))
	require.Equal(t, 1, got.A)
	require.Equal(t, span.SpanContext().TraceID().String(), got.G[LogTraceID])
	require.Equal(t, span.SpanContext().SpanID().String(), got.G[LogSpanID])
}

// A reader of OpenTelemetry gets the metrics of a node.
func TestMetrics(t *testing.T) {
	m, err := metrics.New(metrics.Config{})
	require.NoError(t, err)
	n, _ := node(t, kith.Config{Latency: m.Observe})
	m.Watch(n)
	p, err := Metrics(m)
	require.NoError(t, err)
	reader := metric.NewManualReader(metric.WithProducer(p))
	provider := metric.NewMeterProvider(metric.WithReader(reader))
	defer func() { _ = provider.Shutdown(context.Background()) }()
	var got metricdata.ResourceMetrics
	require.NoError(t, reader.Collect(t.Context(), &got))
	found := map[string]bool{}
	for _, s := range got.ScopeMetrics {
		for _, one := range s.Metrics {
			found[one.Name] = true
		}
	}
	require.True(t, found["kith_members"] && found["kith_ready"], found)
	_, err = Metrics(m)
	require.NoError(t, err, "each has a registry of its own")
}

// BenchmarkTell is a tell to an entity of this node: as kith does it, through a tracer without a span, and with one.
func BenchmarkTell(b *testing.B) {
	tr, _, _ := traces(b)
	p := sdk.NewTracerProvider() // nowhere
	tr.tracer = p.Tracer(scope)
	quiet := kith.EntityType{Name: "quiet", Mode: kith.Inline,
		New: func(string, kith.Fence) kith.Handler { return sink{} }}
	_, regions := node(b, kith.Config{}, tr.Type(quiet))
	plain, region, payload := regions["quiet"], tr.Region(regions["quiet"]), make([]byte, 64)
	ctx, root := p.Tracer("bench").Start(context.Background(), "root")
	defer root.End()
	for _, c := range []struct {
		name string
		tell func() error
	}{
		{"plain", func() error { return plain.Tell("x", payload) }},
		{"no-span", func() error { return region.Tell(context.Background(), "x", payload) }},
		{"span", func() error { return region.Tell(ctx, "x", payload) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				for c.tell() != nil { // full: the worker comes behind
					time.Sleep(time.Microsecond)
				}
			}
		})
	}
}

// sink takes everything.
type sink struct{}

func (sink) Receive(*kith.Context, []byte) error { return nil }
func (sink) Stop(*kith.Context)                  {}
