// Package protobuf is a codec for generated protobuf messages. It is a module of its own, so that only programs that
// use it pay for google.golang.org/protobuf.
package protobuf

import (
	"google.golang.org/protobuf/proto"

	"github.com/kith-io/kith"
)

// Message is a pointer to a generated message T.
type Message[T any] interface {
	*T
	proto.Message
}

// Codec returns a codec of the generated message T: Codec[pb.Order](). Fields may be added and removed as protobuf
// says. Requests and replies are values of T, which must not be copied while they are in use, as with all of protobuf.
func Codec[T any, M Message[T]]() kith.Codec[T] { return codec[T, M]{} }

type codec[T any, M Message[T]] struct{}

// Append implements kith.Codec.
func (codec[T, M]) Append(dst []byte, m *T) ([]byte, error) {
	return proto.MarshalOptions{}.MarshalAppend(dst, M(m))
}

// ParseInto implements kith.Codec. Nothing of what m was before is left in it; nothing of b is kept.
func (codec[T, M]) ParseInto(b []byte, m *T) error { return proto.Unmarshal(b, M(m)) }
