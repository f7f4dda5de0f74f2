// Message: one kind of message that entities take, as values instead of bytes, and the codec for what need not be fast.

package kith

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/valyala/bytebufferpool"

	"github.com/kith-io/kith/route"
)

// Bounds of a Message.
const (
	DefaultWithin  = 10 * time.Second
	MaxMessageName = 64
)

// Message is one kind of message that the entities of a type take: an M, answered with an R. Declare each once, as a
// variable that senders and handlers see:
//
//	var request = kith.Message[Request, Quote]{Type: "trip", Name: "request"}
//
//	quote, err := request.Ask(c, "trip-7", &Request{From: here})                     // in a handler: c is its Context
//	quote, err := request.Ask(kith.From(ctx, node), "trip-7", &Request{From: here}) // anywhere else
//
// A type handles it by a method (On, Methods), and may take several. A singleton's id is the name of its type. All
// fields but Within must agree on all nodes.
type Message[M, R any] struct {
	// Type is the name of the entities that take it.
	Type string
	// Name tells it from other messages of its type: 1 to MaxMessageName bytes of letters, digits and "-_.". On the way it
	// stands before the encoded M, with a space between. Empty: the type takes no other message, and nothing stands there.
	Name string
	// Within is how long Ask waits for the answer at most; zero means 10 s. The context of From may end sooner.
	Within time.Duration
	// Message and Reply encode and decode; nil: as JSON.
	Message Codec[M]
	Reply   Codec[R]
}

// Sender is from where a message leaves. In a handler, and in a daemon, it is the *Context, or what its With returns,
// which adds headers; anywhere else what From returns; in package sim what Cluster.Node and Entity.Sender return.
type Sender interface {
	// Tell sends to the entity id of a type, or with no id to any worker of a Pool, as Context.Tell does.
	Tell(typ, id string, payload []byte) error
	// Ask asks it and waits at most d, as Context.Ask does.
	Ask(d time.Duration, typ, id string, payload []byte) ([]byte, error)
}

// errNil is what is wrong with a value that is not there.
var errNil = errors.New("the message is nil")

// Tell sends v to an entity, as Context.Tell and Region.Tell do: accepted, or a typed error. v is encoded before Tell
// returns. ErrBadPayload wraps the codec's error, and is the error of a nil v: then nothing was sent.
func (m Message[M, R]) Tell(from Sender, id string, v *M) error {
	buf := bytebufferpool.Get()
	defer bytebufferpool.Put(buf)
	if err := m.encode(buf, v); err != nil {
		return err
	}
	return from.Tell(m.Type, id, buf.B)
}

// Ask sends v to an entity and waits for the answer, at most Within. It blocks: only Blocking handlers may call it.
// Errors are those of Context.Ask in a handler and of Region.Ask elsewhere, and ErrBadPayload, which wraps that of
// either codec; MayHaveRun tells whether it is of v, or of the reply.
func (m Message[M, R]) Ask(from Sender, id string, v *M) (r R, err error) {
	buf := bytebufferpool.Get()
	defer bytebufferpool.Put(buf)
	if err := m.encode(buf, v); err != nil {
		return r, err
	}
	within := m.Within
	if within == 0 {
		within = DefaultWithin
	}
	b, err := from.Ask(within, m.Type, id, buf.B)
	if err != nil {
		return r, err
	}
	return r, m.parse(b, &r)
}

// SetTimer has the entity that c is about get v in d, as Context.SetTimer says: by the method of this message, which
// must be one of its type. What the method returns is dropped. ErrBadPayload as for Tell.
func (m Message[M, R]) SetTimer(c *Context, name string, d time.Duration, v *M) error {
	buf := bytebufferpool.Get()
	defer bytebufferpool.Put(buf)
	if err := m.encode(buf, v); err != nil {
		return err
	}
	return c.SetTimer(name, d, buf.B)
}

// Of returns the message that payload is, and whether it is one of this kind that its codec reads: for tests that look
// at what an entity has sent, and for Around.
func (m Message[M, R]) Of(payload []byte) (*M, bool) {
	if m.Name != "" {
		name, body := cut(payload)
		if string(name) != m.Name {
			return nil, false
		}
		payload = body
	}
	v := new(M)
	return v, codecOf(m.Message).ParseInto(payload, v) == nil
}

// In returns the message over a region of its type, for callers that send much from outside of handlers: with limits,
// buffers and functions as the region's verbs have them.
func (m Message[M, R]) In(r *Region) *TypedRegion[M, R] { return &TypedRegion[M, R]{r, m} }

// encode writes the message into a buffer.
func (m *Message[M, R]) encode(buf *bytebufferpool.ByteBuffer, v *M) error {
	if v == nil {
		return route.NotRun(fmt.Errorf("%w: %w", ErrBadPayload, errNil))
	}
	dst := buf.B[:0]
	if m.Name != "" {
		dst = append(append(dst, m.Name...), ' ')
	}
	b, err := codecOf(m.Message).Append(dst, v)
	if err != nil {
		return route.NotRun(fmt.Errorf("%w: %w", ErrBadPayload, err))
	}
	buf.B = b
	return nil
}

// cut returns the name of a message, and the rest. A name that is none is cut.
func cut(payload []byte) (name, body []byte) {
	n := bytes.IndexByte(payload[:min(len(payload), MaxMessageName+1)], ' ')
	if n < 0 {
		n = min(len(payload), MaxMessageName+1)
		return payload[:n], payload[n:]
	}
	return payload[:n], payload[n+1:]
}

// parse reads a reply.
func (m *Message[M, R]) parse(b []byte, r *R) error {
	if err := codecOf(m.Reply).ParseInto(b, r); err != nil {
		return route.Ran(fmt.Errorf("%w: the reply: %w", ErrBadPayload, err))
	}
	return nil
}

// codecOf returns c, or JSON.
func codecOf[T any](c Codec[T]) Codec[T] {
	if c == nil {
		return jsonCodec[T]{}
	}
	return c
}

// TypedRegion is a Message over a region of its type (Message.In). All methods are safe for concurrent use.
type TypedRegion[M, R any] struct {
	region *Region
	m      Message[M, R]
}

// Region returns the untyped region.
func (t *TypedRegion[M, R]) Region() *Region { return t.region }

// With is Region.With: the typed region for messages that go with headers.
func (t *TypedRegion[M, R]) With(headers []byte) *TypedRegion[M, R] {
	return t.m.In(t.region.With(headers))
}

// Tell is Region.Tell with a value; see Message.Tell.
func (t *TypedRegion[M, R]) Tell(id string, v *M) error {
	buf := bytebufferpool.Get()
	defer bytebufferpool.Put(buf)
	if err := t.m.encode(buf, v); err != nil {
		return err
	}
	return t.region.Tell(id, buf.B)
}

// TellWait is Region.TellWait with a value.
func (t *TypedRegion[M, R]) TellWait(ctx context.Context, id string, v *M) error {
	buf := bytebufferpool.Get()
	defer bytebufferpool.Put(buf)
	if err := t.m.encode(buf, v); err != nil {
		return err
	}
	return t.region.TellWait(ctx, id, buf.B)
}

// Ask is Region.Ask with values: the context says how long, not Message.Within. ErrBadPayload as for Message.Ask.
func (t *TypedRegion[M, R]) Ask(ctx context.Context, id string, v *M) (r R, err error) {
	buf := bytebufferpool.Get()
	defer bytebufferpool.Put(buf)
	if err := t.m.encode(buf, v); err != nil {
		return r, err
	}
	b, err := t.region.Ask(ctx, id, buf.B)
	if err != nil {
		return r, err
	}
	return r, t.m.parse(b, &r)
}

// AskWithin is Region.AskWithin with values: the reply is parsed into r. It allocates nothing when both codecs do not.
func (t *TypedRegion[M, R]) AskWithin(d time.Duration, id string, v *M, r *R) error {
	buf, into := bytebufferpool.Get(), bytebufferpool.Get()
	defer bytebufferpool.Put(buf)
	defer bytebufferpool.Put(into)
	if err := t.m.encode(buf, v); err != nil {
		return err
	}
	b, err := t.region.AskWithin(d, id, buf.B, into.B)
	if err != nil {
		return err
	}
	into.B = b
	return t.m.parse(b, r)
}

// AskFunc is Region.AskFunc with values; the reply is a value of f's own. It does not block, so handlers of every mode
// may call it.
func (t *TypedRegion[M, R]) AskFunc(d time.Duration, id string, v *M, f func(r R, err error)) error {
	buf := bytebufferpool.Get()
	defer bytebufferpool.Put(buf)
	if err := t.m.encode(buf, v); err != nil {
		return err
	}
	return t.region.AskFunc(d, id, buf.B, t.m.answering(f))
}

// answering returns f as what takes the bytes of a reply.
func (m *Message[M, R]) answering(f func(r R, err error)) func(reply []byte, err error) {
	return func(b []byte, err error) {
		var r R
		if err == nil {
			err = m.parse(b, &r)
		}
		f(r, err)
	}
}

// JSON returns a codec of T by encoding/json: fields may be added, unknown ones are ignored. It allocates; codecs of a
// hot path are written by hand.
func JSON[T any]() Codec[T] { return jsonCodec[T]{} }

type jsonCodec[T any] struct{}

// Append implements Codec.
func (jsonCodec[T]) Append(dst []byte, m *T) ([]byte, error) {
	b, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	return append(dst, b...), nil
}

// ParseInto implements Codec. Nothing of what m was before is left in it.
func (jsonCodec[T]) ParseInto(b []byte, m *T) error {
	var fresh T
	err := json.Unmarshal(b, &fresh)
	if err == nil {
		*m = fresh
	}
	return err
}
