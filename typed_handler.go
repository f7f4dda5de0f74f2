// Methods: how a handler takes messages that are values, each kind by a method of its own.

package kith

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"sync"

	"github.com/kith-io/kith/entity"
)

// Method is how handlers H take one kind of message (On), or how their state moves (HandOver). Methods wants some.
type Method[H any] struct {
	typ, name string
	fault     error
	take      func(h H, c *Context, body []byte) error
	moves     func(h H, inner Handler) Handler // of HandOver; nil: it takes a message
}

// On has f handle the messages m, as On(request, (*trip).request). The R that f returns answers an ask, unless
// Context.Reply or Detach was called before; of a tell or a timer it is dropped. An error answers as that of
// Handler.Receive does. v, and what its codec left of its bytes in it, is valid until f returns. A message that the
// codec does not read reaches no method: it counts as failed, and an asker gets ErrBadPayload with the codec's text,
// after which MayHaveRun is false. When the codec refuses the reply, the asker gets ErrHandler. Nothing is allocated
// for a message but what codecs and f allocate.
func On[H, M, R any](m Message[M, R], f func(h H, c *Context, v *M) (R, error)) Method[H] {
	on := &taking[H, M, R]{codecOf(m.Message), codecOf(m.Reply), f, sync.Pool{New: func() any { return &frame[M, R]{} }}}
	k := Method[H]{typ: m.Type, name: m.Name, take: on.take, fault: checkName(m.Name)}
	if f == nil {
		k.fault = errors.Join(k.fault, fmt.Errorf("the method of message %q is nil", m.Name))
	}
	return k
}

// checkName returns what is wrong with the name of a message.
func checkName(name string) error {
	for _, b := range []byte(name) {
		if !bytes.ContainsRune([]byte("-_."), rune(b)) && (b < '0' || b > '9') && (b|0x20 < 'a' || b|0x20 > 'z') {
			return fmt.Errorf("the name of message %.80q has other characters than letters, digits and \"-_.\"", name)
		}
	}
	if len(name) > MaxMessageName {
		return fmt.Errorf("the name of message %.80q has %d bytes, must have at most %d", name, len(name), MaxMessageName)
	}
	return nil
}

// Methods makes the handlers of EntityType.Typed and Singleton.Typed: open makes an H, as EntityType.Open does. Each
// message goes to its method. One that the type does not take, as that of a newer version, reaches none: an asker gets
// ErrBadPayload, which names it, and MayHaveRun is false.
//
// An H that has a Receive, as Handler has it, gets by it what the node itself says and no method is for: timers that
// carry no Message, the end of an entity that it watches (Context.Ended), and EntityType.StopMessage. Without one these
// count as failed. One that is Stateful hands over its state as bytes; HandOver takes a codec.
func Methods[H interface{ Stop(c *Context) }](open func(c *Context) (H, error), list ...Method[H]) Opener {
	of := &methods[H]{open: open, list: list, byName: make(map[string]*Method[H], len(list))}
	for i := range list {
		switch m := &list[i]; {
		case m.moves != nil:
			of.moves = m.moves
		case m.name == "":
			of.only = m
		default:
			of.byName[m.name] = m
		}
	}
	return of
}

// methods is what all handlers of one type share.
type methods[H any] struct {
	open   func(c *Context) (H, error)
	list   []Method[H]
	byName map[string]*Method[H]
	only   *Method[H] // of a message without a name
	moves  func(h H, inner Handler) Handler
}

// Validate implements Opener.
func (of *methods[H]) Validate(typ string) error {
	var errs []error
	if of.open == nil {
		errs = append(errs, errors.New("the function that makes handlers is nil"))
	}
	seen, states := map[string]bool{}, 0
	for _, m := range of.list {
		errs = append(errs, m.fault)
		switch {
		case m.moves != nil:
			states++
			continue
		case m.take == nil:
			errs = append(errs, errors.New("a Method is of neither On nor HandOver"))
			continue
		case m.typ != typ:
			errs = append(errs, fmt.Errorf("message %q is of type %.80q", m.name, m.typ))
		case seen[m.name]:
			errs = append(errs, fmt.Errorf("message %q has two methods", m.name))
		}
		seen[m.name] = true
	}
	switch {
	case len(seen) == 0:
		errs = append(errs, errors.New("no method takes a message"))
	case seen[""] && len(seen) > 1:
		errs = append(errs, errors.New("a message has no Name, and is not the only one"))
	}
	if _, is := any(*new(H)).(Stateful); states > 1 || states > 0 && is {
		errs = append(errs, errors.New("the state is handed over in two ways"))
	}
	return errors.Join(errs...)
}

// Open implements Opener.
func (of *methods[H]) Open(c *Context) (Handler, error) {
	h, err := of.open(c)
	if v := reflect.ValueOf(h); err != nil || !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return nil, err
	}
	t := &typedHandler[H]{h, of}
	if s, is := any(h).(Stateful); is {
		return &statefulHandler[H]{*t, s}, nil
	}
	if of.moves != nil {
		return of.moves(h, t), nil
	}
	return t, nil
}

// typedHandler is a handler of values as entities call it.
type typedHandler[H any] struct {
	h  H
	of *methods[H]
}

// errNoReceive is what becomes of what the node says to a handler that has no method for it.
var errNoReceive = errors.New("no method is for it, and there is no Receive")

// Receive implements Handler.
func (t *typedHandler[H]) Receive(c *Context, payload []byte) error {
	m, body := t.of.only, payload
	var name []byte
	if m == nil {
		name, body = cut(payload)
		m = t.of.byName[string(name)]
	}
	switch {
	case m != nil && (len(payload) > 0 || !own(c)):
		return m.take(t.h, c, body)
	case !own(c):
		return entity.BadPayload(fmt.Errorf("type %q takes no message %.64q", c.Type(), name))
	}
	if h, is := any(t.h).(receiver); is {
		return h.Receive(c, payload)
	}
	return entity.BadPayload(errNoReceive)
}

// receiver is a handler that hears what its node says.
type receiver interface {
	Receive(c *Context, payload []byte) error
}

// own reports whether a message is none of others: of a timer, of the end of another entity, or of the stop.
func own(c *Context) bool {
	_, timer := c.Timer()
	_, end := c.Ended()
	return timer || end || c.StopReason() != NotStopping
}

// Stop implements Handler.
func (t *typedHandler[H]) Stop(c *Context) { any(t.h).(interface{ Stop(c *Context) }).Stop(c) }

// statefulHandler is a typedHandler of one that is Stateful: others do not have its methods.
type statefulHandler[H any] struct {
	typedHandler[H]
	Stateful
}

// taking is a message with its method.
type taking[H, M, R any] struct {
	message Codec[M]
	reply   Codec[R]
	f       func(h H, c *Context, v *M) (R, error)
	frames  sync.Pool
}

// frame is what one call needs. Idle entities hold none.
type frame[M, R any] struct {
	m   M
	r   R
	buf []byte
}

// keepReply is the largest buffer of a reply that is kept for later calls.
const keepReply = 64 << 10

// take handles one message. After a panic the frame is not used again.
func (t *taking[H, M, R]) take(h H, c *Context, body []byte) error {
	f := t.frames.Get().(*frame[M, R])
	err := t.takeIn(f, h, c, body)
	var m M
	var r R
	f.m, f.r = m, r // what they refer to is free to go
	if cap(f.buf) > keepReply {
		f.buf = nil
	}
	t.frames.Put(f)
	return err
}

func (t *taking[H, M, R]) takeIn(f *frame[M, R], h H, c *Context, body []byte) (err error) {
	if err = t.message.ParseInto(body, &f.m); err != nil {
		return entity.BadPayload(err)
	}
	if f.r, err = t.f(h, c, &f.m); err != nil || !c.Asked() {
		return err
	}
	b, err := t.reply.Append(f.buf[:0], &f.r)
	if err != nil {
		return fmt.Errorf("the reply: %w: %w", ErrBadPayload, err)
	}
	f.buf = b
	if err = c.Reply(b); errors.Is(err, ErrReplied) {
		return nil // by the method itself, or by a token that it has
	}
	return err
}

// HandOver has the state of an H move with its entity as a value, when its shard moves to another node: give returns
// what the next instance is to know, nil for nothing; take gives it to that, before its first message. state is valid
// until take returns. An error of either, and what the codec refuses (nil: JSON), loses the entity's state, counted and
// with an incident that names it; an error of take ends the instance, too. Handlers that are Stateful do it with bytes.
func HandOver[H, S any](codec Codec[S], give func(h H, c *Context) (*S, error),
	take func(h H, c *Context, state *S) error,
) Method[H] {
	codec = codecOf(codec)
	k := Method[H]{moves: func(h H, inner Handler) Handler { return &typedState[H, S]{inner, h, codec, give, take} }}
	if give == nil || take == nil {
		k.fault = errors.New("HandOver has a function that is nil")
	}
	return k
}

// typedState is a typedHandler with its state as bytes.
type typedState[H, S any] struct {
	Handler
	h     H
	codec Codec[S]
	give  func(h H, c *Context) (*S, error)
	take  func(h H, c *Context, state *S) error
}

// HandOver implements Stateful.
func (t *typedState[H, S]) HandOver(c *Context) ([]byte, error) {
	s, err := t.give(t.h, c)
	if err != nil || s == nil {
		return nil, err
	}
	b, err := t.codec.Append([]byte{}, s)
	if err != nil {
		return nil, fmt.Errorf("the state: %w: %w", ErrBadPayload, err)
	}
	return b, nil
}

// TakeUp implements Stateful.
func (t *typedState[H, S]) TakeUp(c *Context, state []byte) error {
	var s S
	if err := t.codec.ParseInto(state, &s); err != nil {
		return fmt.Errorf("the state: %w: %w", ErrBadPayload, err)
	}
	return t.take(t.h, c, &s)
}
