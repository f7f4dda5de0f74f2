// Contents: what shards hand over, messages and states of users, is in no record, but for how long it is. No machine
// looks at it, so a replay goes the same way with zeros in its place.

package flight

import (
	"fmt"
	"reflect"

	"github.com/kith-io/kith/internal/core/courier"
	"github.com/kith-io/kith/shard"
	"github.com/kith-io/kith/wire"
)

// handedOver are the fields that hold such contents, by the types that they are in.
var handedOver = map[string]string{"shard.HandOverCommand": "Left", "shard.handoff": "left", "shard.coming": "bytes",
	"shard.kept": "bytes"}

// letters is the type of messages of the courier; their bodies may end with such contents.
const letters = "courier.message"

// contentOf returns how many bytes at the end of a control frame are such contents.
func contentOf(kind wire.Kind, body []byte) int {
	if kind == wire.KindSegment {
		p, err := courier.ParseSegment(body)
		if err != nil {
			return 0
		}
		kind, body = p.Kind, p.Body
	}
	return shard.ContentOf(kind, body)
}

// contents appends the length of what is left out of a field, if that is to be done, and reports whether it is.
func (e *encoder) contents(in reflect.Value, name string, v reflect.Value) bool {
	switch t := in.Type().String(); {
	case handedOver[t] == name:
		if v.IsNil() {
			e.uvarint(0)
		} else {
			e.uvarint(uint64(v.Len()) + 1)
		}
		return true
	case t == letters && name == "body" && !v.IsNil():
		body := v.Bytes()
		n := shard.ContentOf(wire.Kind(in.FieldByName("kind").Uint()), body)
		e.uvarint(uint64(len(body)-n) + 1)
		e.b = append(e.b, body[:len(body)-n]...)
		e.uvarint(uint64(n))
		return true
	}
	return false
}

// contents reads what the encoder's has appended.
func (d *decoder) contents(in reflect.Value, name string, v reflect.Value) (is bool, err error) {
	switch t := in.Type().String(); {
	case handedOver[t] == name:
		n, err := d.uvarint(v)
		if err != nil || n == 0 {
			v.SetZero()
			return true, err
		}
		return true, d.zeros(v, nil, n-1)
	case t == letters && name == "body":
		n, isNil, err := d.some(v, 1)
		if err != nil || isNil {
			v.SetZero()
			return true, err
		}
		b, err := d.take(v, uint64(n))
		if err != nil {
			return true, err
		}
		left, err := d.uvarint(v)
		if err != nil {
			return true, err
		}
		return true, d.zeros(v, b, left)
	}
	return false, nil
}

// zeros sets v to b and n zeros behind it.
func (d *decoder) zeros(v reflect.Value, b []byte, n uint64) error {
	if d.left += n; d.left > shard.MaxMaxHandOver {
		return d.fail(v, "contents beyond their bound")
	}
	all := make([]byte, uint64(len(b))+n)
	copy(all, b)
	v.SetBytes(all)
	return nil
}

// bare reads the length of what was left out of a frame, and gives it zeros.
func (s *entries) bare(e *entry) error {
	n, err := s.uvarint()
	if err != nil {
		return err
	}
	if n > wire.MaxControlFrame {
		return fmt.Errorf("%w: %d bytes of contents", errCut, n)
	}
	all := make([]byte, uint64(len(e.body))+n)
	copy(all, e.body)
	e.body = all
	return nil
}
