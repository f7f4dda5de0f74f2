// Watch: spans over what the cluster does by itself: moves of shards, and decisions of the resolver.

package otelkith

import (
	"context"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/shard"
)

// maxOpen bounds the moves that have a span at one time; a further one has none.
const maxOpen = 4096

// decisionsEvery is how often it is looked for decisions; the span of one has the time at which it was made.
const decisionsEvery = time.Second

// move names one move of a shard.
type move struct {
	typ    string
	shard  kith.ShardID
	number shard.Number
}

// Watch makes spans of the moves that this node coordinates (kith.move, from begin to end), of the steps of a move that
// happen on it as the owner that a shard leaves (kith.move-marked, kith.move-handed-over, kith.move-untaken; events of
// the span when it is both), and of what its resolver decides (kith.resolver), until ctx or the node ends. It blocks:
// give it a goroutine. A decision is reported once; those that were made before Watch are reported, too.
func (t *Tracer) Watch(ctx context.Context, n *kith.Node) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	events := make(chan kith.ShardEvent)
	go func() {
		defer cancel() // the node has ended, or ctx
		for e := range n.ShardEvents(ctx) {
			select {
			case events <- e:
			case <-ctx.Done():
				return
			}
		}
	}()
	w := watch{t: t, n: n, open: map[move]trace.Span{}}
	tick := time.NewTicker(decisionsEvery)
	defer tick.Stop()
	for {
		select {
		case e := <-events:
			w.shard(ctx, &e)
		case <-tick.C:
			w.decisions()
		case <-ctx.Done():
			w.decisions()
			w.close()
			return
		}
	}
}

// watch is one Watch.
type watch struct {
	t    *Tracer
	n    *kith.Node
	open map[move]trace.Span
	told time.Time // of the last decision
}

// shard follows one move.
func (w *watch) shard(ctx context.Context, e *kith.ShardEvent) {
	m := move{e.Name, e.Shard, e.Number}
	span := w.open[m]
	switch e.Kind {
	case 0: // some events are missing: it is not known which moves are over
		w.close()
	case kith.MoveBegan:
		if len(w.open) >= maxOpen {
			return
		}
		_, w.open[m] = w.t.tracer.Start(ctx, "kith.move", attributes(e)...)
	case kith.MoveMarked, kith.MoveHandedOver, kith.MoveUntaken:
		if span != nil {
			span.AddEvent(e.Kind.String(), trace.WithTimestamp(e.At), trace.WithAttributes(why(e)...))
			return
		}
		// Another node coordinates the type.
		_, span = w.t.tracer.Start(ctx, "kith."+e.Kind.String(), attributes(e)...)
		if e.Err != nil {
			span.SetStatus(codes.Error, e.Err.Error())
		}
		span.End(trace.WithTimestamp(e.At))
	case kith.MoveDone, kith.MoveAborted, kith.MoveReturned:
		if span == nil {
			return
		}
		switch e.Kind {
		case kith.MoveAborted:
			span.SetStatus(codes.Error, "aborted")
		case kith.MoveReturned:
			span.SetStatus(codes.Error, "returned")
		}
		span.End(trace.WithTimestamp(e.At))
		delete(w.open, m)
	}
}

// attributes are what every span of a move begins with; kith.move, term and sequence, is the same on all nodes.
func attributes(e *kith.ShardEvent) []trace.SpanStartOption {
	return []trace.SpanStartOption{trace.WithTimestamp(e.At), trace.WithNewRoot(), trace.WithAttributes(
		KeyType.String(e.Name), KeyShard.Int64(int64(e.Shard)), KeyFrom.String(e.Home.String()), KeyTo.String(e.To.String()),
		KeyMove.String(fmt.Sprintf("%d.%d", e.Number.Term, e.Number.Seq)))}
}

// why is the reason that an event gives, if it gives one.
func why(e *kith.ShardEvent) []attribute.KeyValue {
	if e.Err == nil {
		return nil
	}
	return []attribute.KeyValue{KeyOutcome.String(e.Err.Error())}
}

// close ends the spans of moves that are still open.
func (w *watch) close() {
	for m, span := range w.open {
		span.SetStatus(codes.Error, "its end is not known")
		span.End()
		delete(w.open, m)
	}
}

// decisions makes a span of each decision that is new.
func (w *watch) decisions() {
	for _, d := range w.n.Decisions() {
		if !d.Time.After(w.told) {
			continue
		}
		w.told = d.Time
		down := make([]string, len(d.Down))
		for i, id := range d.Down {
			down[i] = id.String()
		}
		_, span := w.t.tracer.Start(context.Background(), "kith.resolver", trace.WithTimestamp(d.Time), trace.WithNewRoot(),
			trace.WithAttributes(KeyNode.String(w.n.ID().String()), KeyLives.Bool(d.Lives), KeyLeader.Bool(d.Leader),
				KeyDown.StringSlice(down), KeyOutcome.String(d.String())))
		span.End(trace.WithTimestamp(d.Time))
	}
}
