// Codec: elements, keys and contents as bytes, and identities in front of what they did.

package replicated

import (
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// What values of a Go type are written as.
const (
	asText   = "text" // strings
	asBytes  = "bytes"
	asInt    = "int"
	asUint   = "uint"
	asBool   = "bool"
	asBinary = "binary" // encoding.BinaryMarshaler
	asJSON   = "json"
)

// formOf says what values of type T are written as.
func formOf[T any]() string {
	t := reflect.TypeFor[T]()
	_, reads := any(new(T)).(encoding.BinaryUnmarshaler)
	switch k := t.Kind(); {
	case t.Implements(reflect.TypeFor[encoding.BinaryMarshaler]()) && reads:
		return asBinary
	case k == reflect.String:
		return asText
	case k == reflect.Slice && t.Elem().Kind() == reflect.Uint8:
		return asBytes
	case k >= reflect.Int && k <= reflect.Int64:
		return asInt
	case k >= reflect.Uint && k <= reflect.Uint64:
		return asUint
	case k == reflect.Bool:
		return asBool
	}
	return asJSON
}

// appendOne appends a value of any type, without its length.
func appendOne[T any](b []byte, v T) ([]byte, error) {
	rv := reflect.ValueOf(&v).Elem()
	switch formOf[T]() {
	case asText:
		return append(b, rv.String()...), nil
	case asBytes:
		return append(b, rv.Bytes()...), nil
	case asInt:
		return wire.AppendU64(b, uint64(rv.Int())), nil
	case asUint:
		return wire.AppendU64(b, rv.Uint()), nil
	case asBool:
		return wire.AppendBool(b, rv.Bool()), nil
	case asBinary:
		text, err := any(v).(encoding.BinaryMarshaler).MarshalBinary()
		return append(b, text...), err
	}
	text, err := json.Marshal(v)
	return append(b, text...), err
}

// parseOne reads what appendOne appended.
func parseOne[T any](b []byte) (v T, err error) {
	rv := reflect.ValueOf(&v).Elem()
	r := wire.NewReader(0, b)
	switch formOf[T]() {
	case asText:
		rv.SetString(string(r.Rest()))
	case asBytes:
		rv.SetBytes(append([]byte{}, r.Rest()...))
	case asInt:
		n := int64(r.U64())
		if rv.OverflowInt(n) {
			return v, errOverflow
		}
		rv.SetInt(n)
	case asUint:
		n := r.U64()
		if rv.OverflowUint(n) {
			return v, errOverflow
		}
		rv.SetUint(n)
	case asBool:
		rv.SetBool(r.Bool())
	case asBinary:
		return v, any(&v).(encoding.BinaryUnmarshaler).UnmarshalBinary(r.Rest())
	default:
		return v, json.Unmarshal(r.Rest(), &v)
	}
	return v, r.Done()
}

var errOverflow = errors.New("a number that the type does not hold")

// lengths of parts, in bytes: a value that is longer is refused as a whole before they matter.
const maxPart = 16 << 20

// appendPart appends a value behind its length.
func appendPart[T any](b []byte, v T) ([]byte, error) {
	part, err := appendOne(nil, v)
	return wire.AppendBytes(b, part), err
}

// readPart reads what appendPart appended; errors go into r.
func readPart[T any](r *wire.Reader) (v T) {
	b := r.Bytes(maxPart)
	if r.Err() != nil {
		return v
	}
	v, err := parseOne[T](b)
	if err != nil {
		r.Fail(err)
	}
	return v
}

// done ends the reading of a value.
func done[V any](v V, r *wire.Reader) (V, error) {
	if err := r.Done(); err != nil {
		var none V
		return none, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return v, nil
}

// Bounds of counts, checked against the bytes that are there, too.
const maxCount = 1 << 24

// appendCounts appends numbers by identity, in the order of identities.
func appendCounts(b []byte, counts map[peer.ID]uint64) []byte {
	b = wire.AppendUvarint(b, uint64(len(counts)))
	for _, id := range sortedIDs(counts) {
		b = wire.AppendUvarint(peer.AppendID(b, id), counts[id])
	}
	return b
}

// readCounts reads what appendCounts appended.
func readCounts(r *wire.Reader) map[peer.ID]uint64 {
	n := r.Count(peer.MinIDSize+1, maxCount)
	if n == 0 {
		return nil
	}
	counts := make(map[peer.ID]uint64, n)
	last := peer.ID{}
	for i := range n {
		id, v := peer.ReadID(r), r.Uvarint()
		if r.Err() != nil || i > 0 && !last.Less(id) || v == 0 {
			r.Fail(wire.ErrBadValue)
			return nil
		}
		counts[id], last = v, id
	}
	return counts
}
