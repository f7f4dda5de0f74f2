// Typed: Tell and Ask with values instead of bytes, over the same region.

package kith

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/valyala/bytebufferpool"

	"github.com/kith-io/kith/route"
)

// TypedRegion sends values of type Q and gets replies of type R.
type TypedRegion[Q, R any] struct {
	region *Region
	ask    Codec[Q]
	reply  Codec[R]
}

// Typed returns a typed layer over r. Codecs encode into pooled scratch before any lock is taken.
func Typed[Q, R any](r *Region, ask Codec[Q], reply Codec[R]) *TypedRegion[Q, R] {
	return &TypedRegion[Q, R]{r, ask, reply}
}

// Region returns the untyped region.
func (t *TypedRegion[Q, R]) Region() *Region { return t.region }

// With is Region.With: the typed region for messages that go with headers.
func (t *TypedRegion[Q, R]) With(headers []byte) *TypedRegion[Q, R] {
	return &TypedRegion[Q, R]{t.region.With(headers), t.ask, t.reply}
}

// Home is Region.Home: where an entity lives, as this node knows it.
func (t *TypedRegion[Q, R]) Home(id string) (Home, error) { return t.region.Home(id) }

func (t *TypedRegion[Q, R]) encode(m *Q) (*bytebufferpool.ByteBuffer, error) {
	buf := bytebufferpool.Get()
	b, err := t.ask.Append(buf.B[:0], m)
	if err != nil {
		bytebufferpool.Put(buf)
		return nil, fmt.Errorf("%w: %w", ErrBadPayload, err)
	}
	buf.B = b
	return buf, nil
}

// Tell is Region.Tell with a value. ErrBadPayload wraps the codec's error.
func (t *TypedRegion[Q, R]) Tell(id string, m *Q) error {
	buf, err := t.encode(m)
	if err != nil {
		return err
	}
	defer bytebufferpool.Put(buf)
	return t.region.Tell(id, buf.B)
}

// TellWait is Region.TellWait with a value.
func (t *TypedRegion[Q, R]) TellWait(ctx context.Context, id string, m *Q) error {
	buf, err := t.encode(m)
	if err != nil {
		return err
	}
	defer bytebufferpool.Put(buf)
	return t.region.TellWait(ctx, id, buf.B)
}

// Ask is Region.Ask with values. ErrBadPayload wraps the error of either codec.
func (t *TypedRegion[Q, R]) Ask(ctx context.Context, id string, m *Q) (R, error) {
	var r R
	buf, err := t.encode(m)
	if err != nil {
		return r, err
	}
	b, err := t.region.Ask(ctx, id, buf.B)
	bytebufferpool.Put(buf)
	if err != nil {
		return r, err
	}
	return r, t.parse(b, &r)
}

// AskWithin is Region.AskWithin with values: the reply is parsed into r. It allocates nothing when both codecs do not.
func (t *TypedRegion[Q, R]) AskWithin(d time.Duration, id string, m *Q, r *R) error {
	buf, err := t.encode(m)
	if err != nil {
		return err
	}
	defer bytebufferpool.Put(buf)
	into := bytebufferpool.Get()
	defer bytebufferpool.Put(into)
	b, err := t.region.AskWithin(d, id, buf.B, into.B)
	if err != nil {
		return err
	}
	into.B = b
	return t.parse(b, r)
}

// AskFunc is Region.AskFunc with values; the reply is a value of f's own.
func (t *TypedRegion[Q, R]) AskFunc(d time.Duration, id string, m *Q, f func(r R, err error)) error {
	buf, err := t.encode(m)
	if err != nil {
		return err
	}
	defer bytebufferpool.Put(buf)
	return t.region.AskFunc(d, id, buf.B, func(b []byte, err error) {
		var r R
		if err == nil {
			err = t.parse(b, &r)
		}
		f(r, err)
	})
}

func (t *TypedRegion[Q, R]) parse(b []byte, r *R) error {
	if err := t.reply.ParseInto(b, r); err != nil {
		return route.Ran(fmt.Errorf("%w: %w", ErrBadPayload, err)) // the reply
	}
	return nil
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
