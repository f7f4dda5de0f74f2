// Typed handlers: entities that get and answer values instead of bytes.

package kith

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/valyala/bytebufferpool"

	"github.com/kith-io/kith/entity"
)

// TypedHandler is a Handler of values: it gets messages of type Q and answers with an R. TypedType makes a Type of it.
type TypedHandler[Q, R any] interface {
	// Receive handles one message. m is valid until Receive returns. The R answers an ask, unless Context.Reply or Detach
	// was called before; of a tell or a timer it is dropped. An error answers as that of Handler.Receive does. The
	// message of a timer without payload (Context.Timer tells it) is the zero Q, as is what tells of the end of another
	// entity (Context.Ended); any other timer's payload is parsed.
	Receive(c *Context, m *Q) (R, error)
	// Stop is that of Handler.
	Stop(c *Context)
}

// TypedType returns t with handlers that take values: open makes one as EntityType.Open does, whose place it takes;
// t.New must be nil. A message that ask does not parse reaches no handler: it counts as failed, and the caller of an
// ask gets ErrBadPayload with the codec's text, after which MayHaveRun is false. When reply refuses what a handler
// returned, the caller gets ErrHandler. A handler that is Stateful hands over its state as bytes; TypedStatefulType
// takes a codec. Nothing is allocated for a message but what codecs and handler allocate.
func TypedType[Q, R any](t EntityType, ask Codec[Q], reply Codec[R],
	open func(c *Context) (TypedHandler[Q, R], error),
) EntityType {
	of := &typing[Q, R]{ask: ask, reply: reply}
	of.frames.New = func() any { return &frame[Q, R]{} }
	t.Open = func(c *Context) (Handler, error) {
		h, err := open(c)
		if err != nil || h == nil {
			return nil, err
		}
		if s, is := h.(Stateful); is {
			return &statefulHandler[Q, R]{typedHandler[Q, R]{h, of}, s}, nil
		}
		return &typedHandler[Q, R]{h, of}, nil
	}
	return t
}

// SetTimer is c.SetTimer with a value, as which a typed handler gets it when it has the same codec. ErrBadPayload wraps
// the codec's error.
func SetTimer[M any](c *Context, codec Codec[M], name string, d time.Duration, m *M) error {
	buf := bytebufferpool.Get()
	defer bytebufferpool.Put(buf)
	b, err := codec.Append(buf.B[:0], m)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrBadPayload, err)
	}
	buf.B = b
	return c.SetTimer(name, d, b)
}

// typing is what all handlers of one type share.
type typing[Q, R any] struct {
	ask    Codec[Q]
	reply  Codec[R]
	frames sync.Pool
}

// frame is what one call needs. Idle entities hold none.
type frame[Q, R any] struct {
	m   Q
	r   R
	buf []byte
}

// keepReply is the largest buffer of a reply that is kept for later calls.
const keepReply = 64 << 10

// typedHandler is a TypedHandler as entities call it.
type typedHandler[Q, R any] struct {
	h  TypedHandler[Q, R]
	of *typing[Q, R]
}

// Receive implements Handler. After a panic the frame is not used again.
func (t *typedHandler[Q, R]) Receive(c *Context, payload []byte) error {
	f := t.of.frames.Get().(*frame[Q, R])
	err := t.receive(c, f, payload)
	var m Q
	var r R
	f.m, f.r = m, r // what they refer to is free to go
	if cap(f.buf) > keepReply {
		f.buf = nil
	}
	t.of.frames.Put(f)
	return err
}

func (t *typedHandler[Q, R]) receive(c *Context, f *frame[Q, R], payload []byte) (err error) {
	if len(payload) > 0 || !own(c) {
		if err := t.of.ask.ParseInto(payload, &f.m); err != nil {
			return entity.BadPayload(err)
		}
	}
	if f.r, err = t.h.Receive(c, &f.m); err != nil || !c.Asked() {
		return err
	}
	b, err := t.of.reply.Append(f.buf[:0], &f.r)
	if err != nil {
		return fmt.Errorf("the reply: %w: %w", ErrBadPayload, err)
	}
	f.buf = b
	if err = c.Reply(b); errors.Is(err, ErrReplied) {
		return nil // by the handler itself, or by a token that it has
	}
	return err
}

// own reports whether a message is a timer's, or tells of the end of another entity.
func own(c *Context) bool {
	_, timer := c.Timer()
	_, end := c.Ended()
	return timer || end
}

// Stop implements Handler.
func (t *typedHandler[Q, R]) Stop(c *Context) { t.h.Stop(c) }

// statefulHandler is a typedHandler of one that is Stateful: others do not have its methods.
type statefulHandler[Q, R any] struct {
	typedHandler[Q, R]
	Stateful
}
