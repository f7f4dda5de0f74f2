// Typed state: typed handlers whose state moves with their entity, as a value.

package kith

import "fmt"

// TypedStateful is a TypedHandler whose state, an S, moves with its entity when its shard moves to another node. It is
// asked as a Stateful handler is. TypedStatefulType makes an EntityType of it.
type TypedStateful[Q, R, S any] interface {
	TypedHandler[Q, R]
	// HandOver returns what the next instance is to know, nil for nothing; an error loses it.
	HandOver(c *Context) (*S, error)
	// TakeUp gives it to the next instance, before its first message. state is valid until it returns; an error ends the
	// instance.
	TakeUp(c *Context, state *S) error
}

// TypedStatefulType is TypedType of handlers whose state travels by a codec. What the codec refuses is lost as what
// HandOver or TakeUp refuses: the entity's state alone, counted, with an incident that names it.
func TypedStatefulType[Q, R, S any](t EntityType, ask Codec[Q], reply Codec[R], state Codec[S],
	open func(c *Context) (TypedStateful[Q, R, S], error),
) EntityType {
	return TypedType(t, ask, reply, func(c *Context) (TypedHandler[Q, R], error) {
		h, err := open(c)
		if err != nil || h == nil {
			return nil, err
		}
		return &typedState[Q, R, S]{h, state}, nil
	})
}

// typedState is a TypedHandler with its state as bytes.
type typedState[Q, R, S any] struct {
	TypedStateful[Q, R, S]
	codec Codec[S]
}

// HandOver implements Stateful.
func (t *typedState[Q, R, S]) HandOver(c *Context) ([]byte, error) {
	s, err := t.TypedStateful.HandOver(c)
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
func (t *typedState[Q, R, S]) TakeUp(c *Context, state []byte) error {
	var s S
	if err := t.codec.ParseInto(state, &s); err != nil {
		return fmt.Errorf("the state: %w: %w", ErrBadPayload, err)
	}
	return t.TypedStateful.TakeUp(c, &s)
}
