// JSON: the codec for messages that need not be fast.

package kith

import "encoding/json"

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
